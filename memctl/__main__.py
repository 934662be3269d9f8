"""``python -m memctl`` is ``memctl``."""

from __future__ import annotations

import signal
import sys


def main() -> None:
    """Run the command line; an interrupt while it is being imported ends it without a word."""
    interrupted = signal.getsignal(signal.SIGINT)
    if interrupted is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    if sys.argv[1:2] == ["mcp"]:
        from memctl.server.mcp_protocol import greet_early

        greet_early(sys.argv[2:])
    from memctl.cli.main import main as command_line

    signal.signal(signal.SIGINT, interrupted)
    command_line()


if __name__ == "__main__":
    main()
