"""The command reference, ``docs/commands.md``, written from the commands as they are declared.

``python -m memctl.cli.reference > docs/commands.md`` brings it up to date, and the same with
``summaries > memctl/cli/summaries.json`` the list of commands that ``memctl --help`` shows.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import typer

_HEAD = """\
# Commands

Generated from the commands by `python -m memctl.cli.reference`; `memctl COMMAND --help` shows the
same. Exit codes and output formats are described in the [README](../README.md#first-steps).

These options may come before any command:
"""
_SHARED = ("quiet", "verbose", "help")
"""Options that every command has; they are described once, before the commands."""


def reference() -> str:
    """Return the page: every command in the order of ``memctl --help``."""
    from memctl.cli.main import all_commands

    root = typer.main.get_command(all_commands())
    context: Any = root.context_class(root, info_name="memctl")
    shared = _option_table(_record(each, context) for each in root.get_params(context))
    parts = [_HEAD, *shared, ""]
    for group, words in _groups(root):
        parts += _section(group, words)
    return "\n".join(parts).rstrip() + "\n"


def summaries() -> str:
    """Return what each command does, by its name, as JSON: the list of them imports none."""
    from memctl.cli.main import all_commands

    commands = getattr(typer.main.get_command(all_commands()), "commands", {})
    found = {name: each.help.partition("\n\n")[0] for name, each in commands.items()}
    return json.dumps(found, ensure_ascii=False, indent=2) + "\n"


def _groups(root: Any) -> Iterator[tuple[Any, str]]:
    for name, command in getattr(root, "commands", {}).items():
        yield command, name
        yield from ((child, f"{name} {words}") for child, words in _groups(command))


def _section(command: Any, words: str) -> list[str]:
    heading = "###" if " " in words else "##"
    title = [f"{heading} memctl {words}", ""]
    if hasattr(command, "commands"):
        return [*title, command.help, ""]
    context = command.context_class(command, info_name=f"memctl {words}")
    usage = " ".join([f"memctl {words}", *command.collect_usage_pieces(context)])
    summary, examples, rest = _help_parts(command.help)
    options = [
        _record(parameter, context)
        for parameter in command.get_params(context)
        if parameter.name not in _SHARED
    ]
    parts = [*title, summary, "", "```sh", *examples, "```", "", f"Usage: `{usage}`", ""]
    if options:
        parts += [*_option_table(options), ""]
    return [*parts, *(f"{_escape(paragraph)}\n" for paragraph in rest)]


def _record(parameter: Any, context: Any) -> tuple[str, str]:
    """Return how a parameter is written, and its help."""
    if parameter.param_type_name == "argument":
        return " ".join(parameter.get_usage_pieces(context)), parameter.help or ""
    written, help_text = parameter.get_help_record(context)
    return written, help_text


def _help_parts(text: str) -> tuple[str, list[str], list[str]]:
    """Return the summary, the example lines and the paragraphs of a help text."""
    summary, *paragraphs = text.split("\n\n")
    examples = [
        line.strip()
        for paragraph in paragraphs
        if paragraph.startswith("\b")
        for line in paragraph.splitlines()[2:]
    ]
    rest = [" ".join(p.split()) for p in paragraphs if not p.startswith("\b")]
    return summary, examples, rest


def _option_table(records: Iterable[tuple[str, str]]) -> list[str]:
    rows = [f"| `{_cell(written)}` | {_escape(text)} |" for written, text in records]
    return ["| option | meaning |", "|---|---|", *rows]


def _cell(code: str) -> str:
    return code.replace("|", "\\|")


def _escape(text: str) -> str:
    """Return help text as Markdown: what looks like an option or a placeholder stays as it is."""
    return re.sub(r"([|*<_])", r"\\\1", text)


if __name__ == "__main__":
    sys.stdout.write(summaries() if sys.argv[1:] == ["summaries"] else reference())
