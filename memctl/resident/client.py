"""The client: has the resident process carry out a command that reads, if there is one.

Its imports are all that a command waits for then, so it knows neither Typer nor the settings.  It
shows nothing before it has all: whatever goes wrong until then, the command is carried out here.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from memctl.resident.protocol import (
    FOLDER,
    SILENT_SECONDS,
    STREAMS,
    Connection,
    connect,
    fingerprint,
    greeting,
    identity_of,
    is_available,
)

READING: Mapping[str, frozenset[str]] = {
    "query": frozenset(),
    "context": frozenset(),
    "status": frozenset(),
    "sql": frozenset(),
    "memory": frozenset({"list", "show"}),
    "document": frozenset({"list", "show"}),
    "insight": frozenset({"list", "show"}),
    "tool": frozenset({"call"}),
    "hook": frozenset(
        {
            "start",
            "SessionStart",
            "sessionStart",
            "prompt",
            "UserPromptSubmit",
            "beforeSubmitPrompt",
            "BeforeAgent",
        }
    ),
}
"""The commands that are asked for, each with its verbs, if it has any.

A tool that changes something is refused by the process, which knows them all.
"""
_OWN = frozenset({"-", "--stream", "--feedback", "--with"})
"""Arguments of what has to be carried out by the caller: it reads standard input, shows what is not
complete yet, changes something, or has a program of the user's run."""
_READING_INPUT = frozenset({"hook"})
"""Commands that get little on standard input, which is kept in case they end up here after all."""
_PIECE = 1 << 16
_ENABLED_VARIABLE = "MEMCTL_RESIDENT_ENABLED"
_OFF = frozenset({"0", "false", "no", "off"})
_ROOT_FLAGS = frozenset({"-q", "--quiet", "-v", "--verbose"})
_INTERRUPTED = 130


def ask(arguments: Sequence[str], version: str) -> int | None:
    """Have a command carried out, and show its output.

    Returns:
        Its exit code; None where it has to be carried out here, and nothing has been shown.
    """
    if not is_available() or os.environ.get(_ENABLED_VARIABLE, "").lower() in _OFF:
        return None
    names = {argument.partition("=")[0] for argument in arguments}
    if _OWN.intersection(names) or not is_reading(arguments):
        return None
    is_fed = command_words(arguments)[0] in _READING_INPUT
    if is_fed and not _keep_input():
        return None
    home = find_home(arguments)
    connection = connect(os.path.join(home, FOLDER))  # noqa: PTH118 - as in the protocol
    if connection is None:
        return None
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        expected = greeting(version, identity_of(home), fingerprint())
        if expected.items() - connection.greeting.items():
            return None
        code = _exchange(connection, arguments, has_input=is_fed)
    except (OSError, ValueError):
        code = None
    except KeyboardInterrupt:
        os.write(2, b"error: interrupted\n")
        return _INTERRUPTED
    finally:
        connection.close()
        signal.signal(signal.SIGINT, previous)
    if code is None and is_fed:
        os.lseek(0, 0, os.SEEK_SET)
    return code


def is_reading(arguments: Sequence[str]) -> bool:
    """Return whether arguments are those of a command that reads."""
    words = command_words(arguments)
    if not words or words[0] not in READING:
        return False
    verbs = READING[words[0]]
    if verbs and words[1:2] and words[1] not in verbs:
        return False
    return not verbs or len(words) > 1


def command_words(arguments: Sequence[str]) -> list[str]:
    """Return the arguments from the command on, without the options that stand before it."""
    return _split(arguments)[1]


def _split(arguments: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Return --home and --config where they stand before the command, and what follows.

    After an option that is not known there nothing follows.
    """
    found: dict[str, str] = {}
    rest = list(arguments)
    while rest and rest[0].startswith("-"):
        name, is_pair, value = (option := rest.pop(0)).partition("=")
        if name in ("--home", "--config"):
            found[name] = value if is_pair or not rest else rest.pop(0)
        elif option not in _ROOT_FLAGS:
            return found, []
    return found, rest


def find_home(arguments: Sequence[str]) -> str:
    """Return the folder of all knowledge bases, as the settings will say.

    The process makes sure: it refuses a command of which the settings name another one.
    """
    given, _ = _split(arguments)
    home = given.get("--home") or os.environ.get("MEMCTL_HOME")
    if not home:
        config = given.get("--config") or os.environ.get("MEMCTL_CONFIG") or _default_config()
        home = _home_in(config) or _default_home()
    return os.path.abspath(os.path.expanduser(home))  # noqa: PTH100, PTH111


def _home_in(config: str) -> str:
    """Return the home that a settings file names; "" where it names none."""
    path = os.path.abspath(os.path.expanduser(config))  # noqa: PTH100, PTH111
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            content = file.read()
    except OSError:
        return ""
    if b"home" not in content:
        return ""
    import tomllib

    try:
        home = tomllib.loads(content.decode()).get("home")
    except ValueError:
        return ""
    beside = os.path.dirname(path)  # noqa: PTH120
    return os.path.join(beside, os.path.expanduser(home)) if isinstance(home, str) else ""  # noqa: PTH111, PTH118


def _default_config() -> str:
    """Return where platformdirs, which takes 4 ms to import, puts settings."""
    if sys.platform == "darwin":
        return "~/Library/Application Support/memctl/config.toml"
    return f"{os.environ.get('XDG_CONFIG_HOME', '').strip() or '~/.config'}/memctl/config.toml"


def _default_home() -> str:
    if sys.platform == "darwin":
        return "~/Library/Application Support/memctl"
    return f"{os.environ.get('XDG_DATA_HOME', '').strip() or '~/.local/share'}/memctl"


def _keep_input() -> bool:
    """Make standard input a file that can be read again, and tell whether that could be done."""
    if sys.stdin is None or os.isatty(0):
        return False
    if sys.platform == "linux":
        kept = os.memfd_create("memctl-input")
    else:
        import tempfile

        with tempfile.TemporaryFile() as file:
            kept = os.dup(file.fileno())
    while piece := os.read(0, _PIECE):
        os.write(kept, piece)
    os.lseek(kept, 0, os.SEEK_SET)
    os.dup2(kept, 0)
    os.close(kept)
    return True


def _exchange(connection: Connection, arguments: Sequence[str], *, has_input: bool) -> int | None:
    streams = (sys.stdin, sys.stdout, sys.stderr)
    if any(stream is None for stream in streams):
        return None
    directory = os.open(".", os.O_RDONLY)
    try:
        connection.socket.settimeout(SILENT_SECONDS)
        connection.send(
            {
                "arguments": list(arguments),
                "environment": dict(os.environ),
                "encodings": [stream.encoding for stream in streams],
                "input": has_input,
            },
            (*range(STREAMS), directory),
        )
    finally:
        os.close(directory)
    reply = connection.line()
    if "code" not in reply:
        return None
    pieces: list[tuple[int, bytes]] = [
        (stream, connection.content(size)) for stream, size in reply["pieces"]
    ]
    return _show(pieces, int(reply["code"]))


def _show(pieces: Sequence[tuple[int, bytes]], code: int) -> int | None:
    """Write what the command wrote, in its order."""
    is_begun = False
    try:
        for stream, content in pieces:
            written = 0
            while written < len(content):
                written += os.write(stream, content[written:])
                is_begun = True
    except BrokenPipeError:  # the reader has seen enough
        return 0
    except OSError as error:
        if not is_begun:
            return None  # the command says itself what is wrong
        os.write(2, f"error: {error.strerror}\n".encode())
        return 1
    return code


def ask_process(folder: str, question: str, seconds: float) -> dict[str, Any] | None:
    """Return what the process says to a question about itself; None where there is none.

    Args:
        folder: That of the socket.
        question: ``status`` or ``stop``.
        seconds: How long to wait for it to be free.
    """
    connection = connect(folder, seconds)
    if connection is None:
        return None
    try:
        connection.socket.settimeout(SILENT_SECONDS)
        connection.send({"question": question})
        return connection.greeting | connection.line()
    except (OSError, ValueError):
        return None
    finally:
        connection.close()
