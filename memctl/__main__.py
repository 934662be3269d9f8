"""``python -m memctl`` is ``memctl``."""

from __future__ import annotations

import gc
import os
import signal
import sys
from contextlib import suppress

from memctl import __version__


def main() -> None:
    """Run the command line; an interrupt while it is being imported ends it without a word."""
    interrupted = signal.getsignal(signal.SIGINT)
    if interrupted is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    if sys.argv[1:2] == ["mcp"]:
        from memctl.server.mcp_early import answer_early

        answer_early(sys.argv[2:], chooses="MEMCTL_AGENT" in os.environ)
    if sys.argv[1:] == ["--version"] and sys.stdout is not None:
        with suppress(OSError):  # which the command line reports
            sys.stdout.write(f"memctl {__version__}\n")
            sys.stdout.flush()
            return
    from memctl.resident.client import ask

    code = ask(sys.argv[1:], __version__)
    if code is not None:
        os._exit(code)  # all is written, and to clean up would take a seventh of the time
    # OpenBLAS's threads busily wait for each other, which on a busy machine doubles the work.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    gc.disable()  # what is imported stays
    from memctl.cli.main import main as command_line

    gc.freeze()
    gc.enable()
    signal.signal(signal.SIGINT, interrupted)
    try:
        command_line()
    finally:  # else Python looks through all objects again while it ends: 0.1 s of a query
        gc.disable()
        gc.freeze()


if __name__ == "__main__":
    main()
