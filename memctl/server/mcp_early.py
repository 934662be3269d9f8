"""What an MCP client asks first is answered while the rest of the program is still being imported.

A client greets the server and lists its tools before anything else, and a new server is started for
every task.  The first request is answered before anything else is imported, because imports keep
other threads waiting.  A thread then reads standard input, answers that much from what is known
without settings or knowledge bases, and hands everything from the first other request on to the
program, unread.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from contextlib import suppress
from typing import Any

from memctl.server.mcp_protocol import (
    Message,
    ProtocolError,
    check_version,
    greeting,
    has_sound_id,
    result_of,
    write_message,
)

MANIFEST = "mcp_manifest.json"
"""The tools that are offered by default, written by ``python -m memctl.server.mcp_tools``."""
_PIECE = 1 << 16
_HELP = frozenset(("-h", "--help"))
_TOOL_OPTIONS = ("--tools", "--agent", "--read-only")
"""Options that choose among tools."""


def answer_early(arguments: list[str], *, chooses: bool) -> None:
    """Answer first requests on standard output, and give the program the others to read.

    Returns once the first request has come, or the client has gone.

    On a terminal, and where help is asked for, nothing is done.

    Args:
        arguments: Those of the command.
        chooses: Whether the environment chooses among tools, as the arguments may.
    """
    if sys.stdin is None or sys.stdout is None or sys.stdin.isatty() or _HELP & {*arguments}:
        return
    chooses = chooses or any(each.startswith(_TOOL_OPTIONS) for each in arguments)
    source = os.dup(sys.stdin.fileno())
    rest, target = os.pipe()
    os.dup2(rest, sys.stdin.fileno())
    os.close(rest)
    first = os.read(source, _PIECE)
    line, newline, others = first.partition(b"\n")
    with suppress(OSError):  # the client has gone, as the next read tells
        first = others if newline and _answer(line, not chooses) else first
    threading.Thread(
        target=_relay, args=(source, target, not chooses, first), name="mcp-first", daemon=True
    ).start()


def _relay(source: int, target: int, has_manifest: bool, buffer: bytes) -> None:
    """Answer what can be; pass on the first line that cannot be, and all that follows."""
    is_early, is_open = True, True
    try:
        while is_open:
            while is_early and b"\n" in buffer:
                line, _, rest = buffer.partition(b"\n")
                is_early = _answer(line, has_manifest)
                buffer = rest if is_early else buffer
            if not is_early or len(buffer) > _PIECE:
                is_early = False
                _write_all(target, buffer)
                buffer = b""
            piece = os.read(source, _PIECE)
            buffer, is_open = buffer + piece, bool(piece)
        _write_all(target, buffer)
    except OSError:  # the client or the program has gone
        pass
    finally:
        os.close(target)


def _write_all(target: int, data: bytes) -> None:
    while data:
        data = data[os.write(target, data) :]


def _answer(line: bytes, has_manifest: bool) -> bool:
    """Answer a line, and tell whether that could be done."""
    try:
        request = json.loads(line)
        result = _result(request, has_manifest) if isinstance(request, dict) else None
    except (ValueError, RecursionError, ProtocolError):
        return False
    if result is None:
        return isinstance(request, dict) and request.get("method") == "notifications/initialized"
    if "id" not in request or not has_sound_id(request):
        return False
    write_message(sys.stdout.buffer, result_of(request, result))
    return True


def _result(request: Message, has_manifest: bool) -> Message | None:
    check_version(request)
    found = greeting(request)
    if found is None and has_manifest and request.get("method") == "tools/list":
        from pathlib import Path  # importlib.resources would take as long as starting Python

        tools: Any = json.loads(Path(__file__).with_name(MANIFEST).read_bytes())
        return {"tools": tools}
    return found
