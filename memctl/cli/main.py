"""The command line put together, and how every failure ends: one line, a hint, an exit code."""

from __future__ import annotations

import _thread
import copy
import gc
import json
import os
import re
import shlex
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from traceback import walk_tb
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TextIO

import typer

from memctl import __version__
from memctl.cli.rendering.terminal_text import verbatim
from memctl.errors import MemctlError
from memctl.paths import os_error_hint, os_error_message
from memctl.resident.client import command_words

if TYPE_CHECKING:
    from memctl.resident.hosting import Host

_PACKAGE = "memctl.cli.commands"
SUMMARIES = "summaries.json"
"""What each command does; generated, see ``memctl.cli.reference``."""
_INTERRUPTED = 130
_CALLBACK_SECONDS = 0.05
"""Within which what Python calls back while it cleans up has come to its end."""
_MAX_MESSAGE = 2_000
"""Characters of an error: it may repeat what was given, which may be anything."""
_OWNER_ONLY_UMASK = 0o077
"""Files that memctl writes are readable by their owner alone."""
_PARSER_WORDS = {
    ": Value error, ": ": ",
    "Input should be a valid integer, unable to parse string as an integer": "not a whole number",
    "Input should be a valid number, unable to parse string as a number": "not a number",
    "Input should be ": "it must be ",
    "Got unexpected extra argument(s)": "too many arguments:",
}
"""Typer 0.29 says in pydantic's words what is wrong with a value; those are ours."""
OBJECTS_BETWEEN_COLLECTIONS = 200_000
"""Rows are small objects without cycles."""
_NO_COMMAND = re.compile(r"No such command '(.*?)'")
_SHOWN_COMMANDS = 3
_HELP_FLAGS = ("-h", "--help")
_SIMILARITY = 0.75
"""How like a word is to the command that is meant by it, from 0 to 1."""
_SYNONYMS = {
    "add": "memory add",
    "search": "query",
    "ask": "query",
    "find": "query",
    "remember": "memory add",
    "recall": "context",
    "remove": "forget",
    "backup": "snapshot create",
}
"""Words that people try, each with the command that does it."""


class CommandGroup(NamedTuple):
    """Commands of one module or several, which are imported when they are needed."""

    words: tuple[str, ...]
    """What it adds to the commands: its name, or its commands where it has none."""
    module: str
    app: str = "app"
    """Its name in the module."""
    adding: str = ""
    """A module that adds commands to it."""


GROUPS = (
    CommandGroup(("demo",), "demo"),
    CommandGroup(("ingest",), "content.ingest"),
    CommandGroup(("query", "context"), "questions.query"),
    CommandGroup(("consolidate",), "content.consolidate"),
    CommandGroup(("watch", "status"), "upkeep.watch"),
    CommandGroup(("why",), "upkeep.why"),
    CommandGroup(("stats",), "upkeep.stats"),
    CommandGroup(("sql",), "questions.sql"),
    CommandGroup(("eval",), "questions.evaluate"),
    CommandGroup(("export", "import"), "content.transfer"),
    CommandGroup(("forget",), "content.forget"),
    CommandGroup(("doctor",), "upkeep.doctor"),
    CommandGroup(("kb",), "administration.kb", adding="administration.merge"),
    CommandGroup(("memory",), "content.memory"),
    CommandGroup(("insight",), "content.memory", "insight_app"),
    CommandGroup(("document",), "content.document", adding="content.links"),
    CommandGroup(("links",), "content.links"),
    CommandGroup(("job",), "upkeep.job"),
    CommandGroup(("upkeep",), "upkeep.upkeep"),
    CommandGroup(("summary", "audit"), "upkeep.upkeep", "pages_app"),
    CommandGroup(("graph",), "content.graph"),
    CommandGroup(("models",), "administration.models"),
    CommandGroup(("feedback",), "questions.feedback"),
    CommandGroup(("reflect", "enrich"), "questions.feedback", "single_app"),
    CommandGroup(("prompt",), "questions.prompt"),
    CommandGroup(("profile",), "agents.profile"),
    CommandGroup(("session",), "agents.session"),
    CommandGroup(("snapshot",), "upkeep.snapshot"),
    CommandGroup(("pool",), "agents.pool"),
    CommandGroup(("tier",), "agents.tier"),
    CommandGroup(("skill",), "agents.skill", adding="agents.skill_review"),
    CommandGroup(("user",), "administration.accounts", "user_app"),
    CommandGroup(("agent",), "administration.accounts", "agent_app"),
    CommandGroup(("team",), "administration.accounts", "team_app"),
    CommandGroup(("chat",), "questions.chat"),
    CommandGroup(("serve", "open"), "administration.serve"),
    CommandGroup(("tool",), "agents.tool"),
    CommandGroup(("mcp",), "agents.tool", "mcp_app"),
    CommandGroup(("hook",), "agents.hook"),
    CommandGroup(("work",), "agents.work"),
    CommandGroup(("config",), "administration.config"),
    CommandGroup(("resident",), "administration.resident"),
)
"""In the order of the help."""

_root = typer.Typer(
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": list(_HELP_FLAGS)},
    help="The memory that a person or an AI agent keeps on their own disk.\n\n"
    + verbatim(
        """
        memctl demo                               the whole tour, on sample files
        memctl ingest notes.md report.pdf mail/   remember files and folders
        memctl query "when is the launch?"        an answer with citations
        memctl watch                              remember what is dropped into an inbox
        """
    ),
)


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"memctl {__version__}")
        raise typer.Exit


@_root.callback()
def root(
    home: Annotated[
        str, typer.Option("--home", metavar="FOLDER", help="Where knowledge bases are kept.")
    ] = "",
    config: Annotated[
        str, typer.Option("--config", metavar="FILE", help="The settings file to use.")
    ] = "",
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Say nothing but errors.")] = False,
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="Say more; show tracebacks.")
    ] = False,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Take the options before the command; commands read them from the context."""


def all_commands() -> typer.Typer:
    """Return the whole command line; every module of it is imported."""
    return with_groups(GROUPS)


def with_groups(groups: tuple[CommandGroup, ...]) -> typer.Typer:
    """Return a command line that has only some of the commands; their modules are imported."""
    from memctl.cli.command_decorator import declare_options

    made = copy.copy(_root)
    made.registered_groups = []
    for group in groups:
        module = import_module(f"{_PACKAGE}.{group.module}")
        if group.adding:
            import_module(f"{_PACKAGE}.{group.adding}")
        made.add_typer(getattr(module, group.app))
    declare_options()
    return made


@cache
def _commands(groups: tuple[CommandGroup, ...] = GROUPS) -> Any:
    """Return commands with all their options, which take 70 ms to put together for all."""
    from memctl.cli.command_decorator import read_plain_values

    commands = typer.main.get_command(with_groups(groups))
    read_plain_values(commands, _HELP_FLAGS)
    return commands


def _commands_for(arguments: Sequence[str]) -> Any:
    """Return the commands that arguments ask for, or all if they name none."""
    words = command_words(arguments)
    if not words and arguments and set(arguments) <= set(_HELP_FLAGS):
        return _outline()
    named = tuple(group for group in GROUPS if words and words[0] in group.words)
    return _commands(named or GROUPS)


def _outline() -> Any:
    """Return commands that do nothing and have no options, which the list of them can do without.

    To import all 40 modules would take 50 ms.
    """
    outline = copy.copy(_root)
    outline.registered_commands = []
    summaries = Path(__file__).with_name(SUMMARIES).read_text("utf-8")
    for name, summary in json.loads(summaries).items():
        outline.command(name, help=summary)(lambda: None)
    return typer.main.get_command(outline)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave the process with its exit code."""
    os.umask(_OWNER_ONLY_UMASK)
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        accept_any_text(stream)
    sys.unraisablehook = interrupt_again
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    words = list(sys.argv[1:] if arguments is None else arguments)
    code = run(words)
    if code == _INTERRUPTED:
        _end(code)
    sys.exit(code)


def interrupt_again(unraisable: sys.UnraisableHookArgs) -> None:
    """Let an interrupt that came during a callback of Python end the command.

    An import does so to clean up, for example, and Python then only prints the interrupt.
    """
    if unraisable.exc_type is KeyboardInterrupt:
        later = threading.Timer(_CALLBACK_SECONDS, _thread.interrupt_main)  # not in this callback
        later.daemon = True
        later.start()
    else:
        sys.__unraisablehook__(unraisable)


def _end(code: int) -> None:
    """Leave at once with the exit code, which Python may not do after an interrupt.

    It would wait for threads that still read, whose work nobody wants any more.  And CPython 3.11
    notes an interrupt that comes while a text is executed, as every named tuple does
    in an import, as unhandled, and ends by the signal whatever exit code was asked for.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # closed, or its reader has gone
            stream.flush()
    os._exit(code)


def _open_closed_streams() -> None:
    """Read from and write to the null device where the parent process closed a stream.

    Left closed, its number would go to the next file that is opened, such as a table.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = Path(os.devnull).open(mode, encoding="utf-8")  # noqa: SIM115 - as the others
            setattr(sys, name, stream)


def accept_any_text(stream: TextIO | object) -> None:
    """Have text that the stream's encoding lacks written escaped."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")


def run(arguments: Sequence[str], host: Host | None = None) -> int:
    """Run the command line and return its exit code; failures are reported on standard error.

    Args:
        arguments: Those after the name of the program.
        host: The resident process, if it carries the command out.
    """
    try:
        commands = _commands_for(arguments)
        result = commands(list(arguments), prog_name="memctl", standalone_mode=False, obj=host)
    except MemctlError as error:
        return _report(error.message, error.hint, error.exit_code)
    except typer.TyperException as error:
        return _report_usage(error, arguments)
    except (KeyboardInterrupt, typer.Abort) as error:
        if path := _removed_bytecode(error):
            return _report(*_cut_short(path), 1, error, arguments)
        return _report("interrupted", "", _INTERRUPTED)
    except OSError as error:
        return _report(os_error_message(error), os_error_hint(error), 1, error, arguments)
    except Exception as error:  # noqa: BLE001 - here the process ends
        if path := _removed_bytecode(error):
            return _report(*_cut_short(path), 1, error, arguments)
        message = f"unexpected {type(error).__name__}: {error}"
        return _report(
            message, "run it again with MEMCTL_DEBUG=1 to see where", 1, error, arguments
        )
    if result == _INTERRUPTED:
        return _report("interrupted", "", _INTERRUPTED)
    return result if isinstance(result, int) else 0


def _removed_bytecode(error: BaseException) -> str:
    """Remove the cached bytecode that Python could not load; return where it was, or "".

    CPython 3.11 keeps what a full disk took of it, and fails at every import since: with an
    EOFError, which Typer takes for the end of what is typed, or where zeros stand in the place of
    what is lost, with a ValueError or a TypeError.
    """
    cause = error.__cause__ if isinstance(error, typer.Abort) else error
    is_of_bytecode = isinstance(cause, EOFError | ValueError | TypeError)
    for frame, _ in walk_tb(cause.__traceback__) if cause and is_of_bytecode else ():
        if frame.f_code.co_name == "_compile_bytecode":
            path = str(frame.f_locals["bytecode_path"])
            with suppress(OSError):  # whoever may not remove it is told where it is
                Path(path).unlink()
            return path
    return ""


def _cut_short(path: str) -> tuple[str, str]:
    message = f"{path} was cut short, as by a full disk"
    if Path(path).exists():
        return message, f"remove it, and run this again: rm {shlex.quote(path)}"
    return f"{message}, and has been removed", "run it again: Python makes it anew"


def _report(
    message: str,
    hint: str,
    code: int,
    error: BaseException | None = None,
    arguments: Sequence[str] = (),
) -> int:
    from memctl.cli.rendering.output_formats import print_error

    if error is not None and _wants_traceback(arguments):
        import traceback

        traceback.print_exception(error)
    print_error(message, hint, _MAX_MESSAGE)
    return code


def _wants_traceback(arguments: Sequence[str]) -> bool:
    from memctl.config import is_debugging

    return "-v" in arguments or "--verbose" in arguments or is_debugging()


def _report_usage(error: typer.TyperException, arguments: Sequence[str]) -> int:
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        sys.stderr.write(f"{error.message}\n")  # which is the help
        return error.exit_code
    path = _command_path(arguments) if context is None else context.command_path
    message = error.format_message().rstrip(".")
    for theirs, ours in _PARSER_WORDS.items():
        message = message.replace(theirs, ours)
    hint = f"see {path} --help"
    if (unknown := _NO_COMMAND.match(message)) and (meant := _suggestion(unknown[1], context)):
        message, hint = f"No such command {unknown[1]!r}", meant
    elif (option := getattr(error, "option_name", ""))[1:].isdigit():
        number = next(each for each in arguments if each.startswith(option))
        message = f"{number!r} is taken for an option"
        hint = f"a value that begins with a hyphen stands after --: {path} ... -- {number}"
    elif option in arguments:
        at = list(arguments).index(option)
        named = _command_path([*arguments[:at], *arguments[at + 2 :]])
        if named.startswith(f"{path} "):
            hint = f"options of a command stand after it: {named} {option} ..."
    elif getattr(getattr(error, "param", None), "opts", None) == ["--as"]:
        hint = f"--agent names who acts; {hint}"
    return _report(message[:1].lower() + message[1:], hint, error.exit_code)


def _suggestion(word: str, group: Any) -> str:
    """Return a hint at the command that an unknown word may mean; "" if none is similar."""
    import difflib

    # The message names such a one.
    if difflib.get_close_matches(word, group.command.commands, cutoff=_SIMILARITY):
        return ""
    found: dict[str, list[str]] = {}
    for name, command in getattr(_commands(), "commands", {}).items():
        found[name] = [name]
        for verb in getattr(command, "commands", {}):
            found.setdefault(verb, []).append(f"{name} {verb}")
    found |= {verb: [meant] for verb, meant in _SYNONYMS.items()}
    near = difflib.get_close_matches(word, found, n=1, cutoff=_SIMILARITY)
    suggestions = [f"memctl {words}" for words in found[near[0]][:_SHOWN_COMMANDS]] if near else []
    return f"did you mean {' or '.join(suggestions)}?" if suggestions else ""


def _command_path(arguments: Sequence[str]) -> str:
    """Return the command that the arguments name, for an error that does not."""
    command, path = _commands(), "memctl"
    for word in arguments:
        commands = getattr(command, "commands", {})
        if word in commands:
            command, path = commands[word], f"{path} {word}"
    return path
