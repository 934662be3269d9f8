"""What there is to call: every command, as the command line itself has it."""

from __future__ import annotations

from functools import cache
from typing import Any

import typer

from memctl.cli.main import all_commands


@cache
def commands() -> dict[str, Any]:
    """Return every command by the words that call it."""
    found: dict[str, Any] = {}
    pending = [((), typer.main.get_command(all_commands()))]
    while pending:
        words, command = pending.pop()
        for name, child in getattr(command, "commands", {}).items():
            pending.append(((*words, name), child))
        if not hasattr(command, "commands"):
            found[" ".join(words)] = command
    return found


def takes_text(parameter: Any) -> bool:
    """Whether any text at all can be given for a parameter."""
    return parameter.type_descriptor.annotation in (str, list[str])
