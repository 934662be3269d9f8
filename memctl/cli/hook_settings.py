"""Settings of coding agents that have them run ``memctl hook``: shown, or merged into their files.

What stands in a file stays: an entry is added where none calls memctl, and nothing is taken out.
"""

from __future__ import annotations

import copy
import json
import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from memctl.errors import UsageError
from memctl.files import save_file
from memctl.paths import display_path

_OWN_HOOK = re.compile(r"memctl\b.* hook ")
_SECONDS = 10


class HookFile(Struct, frozen=True):
    """The file that says which commands an agent runs, and when."""

    client: str
    path: str
    """Below the home folder of the user, or below a project."""
    events: tuple[str, ...]
    is_flat: bool = False
    """Whether an event has commands, and not groups of them with a matcher."""
    timeout: int = _SECONDS
    extra: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""


_FILES = {
    each.client: each
    for each in (
        HookFile(
            "claude-code",
            ".claude/settings.json",
            ("SessionStart", "UserPromptSubmit", "Stop", "PreCompact"),
        ),
        HookFile(
            "codex",
            ".codex/hooks.json",
            ("SessionStart", "UserPromptSubmit", "Stop", "PreCompact"),
            note="Codex asks once whether the commands may run: /hooks",
        ),
        HookFile(
            "cursor",
            ".cursor/hooks.json",
            ("sessionStart", "stop", "preCompact"),
            is_flat=True,
            extra={"version": 1},
            note="Cursor takes context at the start of a session alone, and none with a prompt",
        ),
        HookFile(
            "gemini",
            ".gemini/settings.json",
            ("SessionStart", "BeforeAgent", "AfterAgent", "PreCompress"),
            timeout=_SECONDS * 1000,
        ),
    )
}
CLIENTS = tuple(_FILES)


def hook_file(client: str) -> HookFile:
    """Return the settings file of an agent."""
    return _FILES[client]


def memctl_command(home: Path) -> str:
    """Return the shell command that starts this program on a home."""
    from platformdirs import user_data_path

    name = Path(sys.argv[0])
    program = "memctl" if name.name == "memctl" else f"{shlex.quote(sys.executable)} -m memctl"
    if name.name == "memctl" and name.is_absolute():
        program = shlex.quote(os.fspath(name))
    is_usual = home == user_data_path("memctl", appauthor=False)
    return program if is_usual else f"{program} --home {shlex.quote(os.fspath(home))}"


def new_settings(file: HookFile, options: Sequence[str], program: str) -> dict[str, Any]:
    """Return the settings to write into an agent's file.

    Args:
        file: Of which agent.
        options: Those of ``memctl hook``, such as a user.
        program: How memctl is started.
    """
    hooks: dict[str, Any] = {}
    for event in file.events:
        words = shlex.join(["hook", event, "--client", file.client, *options])
        entry: dict[str, Any] = {"command": f"{program} {words}", "timeout": file.timeout}
        if not file.is_flat:
            entry = {"hooks": [{"type": "command", **entry}]}
        hooks[event] = [entry]
    return {**file.extra, "hooks": hooks}


def merge_hooks(known: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with new hooks; existing hooks of memctl are updated.

    Raises:
        UsageError: The hooks that stand there have another shape.
    """
    found: dict[str, Any] = {**{k: v for k, v in new.items() if k != "hooks"}, **known}
    hooks = copy.deepcopy(found.get("hooks", {}))
    if not isinstance(hooks, dict) or not all(isinstance(each, list) for each in hooks.values()):
        raise UsageError("the hooks that stand there have a shape that is not known")
    for event, entries in new["hooks"].items():
        there = hooks.setdefault(event, [])
        (command,) = _commands(entries)
        own = [each for each in _commands(there) if _OWN_HOOK.search(str(each.get("command")))]
        if own:
            own[0].update(command)
        else:
            there.extend(entries)
    return {**found, "hooks": hooks}


def _commands(entries: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the commands of an event, grouped or not."""
    found: list[dict[str, Any]] = []
    for entry in entries:
        if isinstance(entry, dict):
            group = entry.get("hooks")
            inner = group if isinstance(group, list) else [entry]
            found += [each for each in inner if isinstance(each, dict)]
    return found


def write_settings(path: Path, new: Mapping[str, Any]) -> bool:
    """Merge hooks into a file; return whether it changed. The old file is kept beside it.

    Raises:
        UsageError: What stands there is no JSON object.
    """
    text = path.read_text("utf-8") if path.exists() else ""
    try:
        known = json.loads(text) if text.strip() else {}
    except ValueError as error:
        raise UsageError(
            f"{display_path(path)} is no JSON ({error}), and is left as it is",
            "put in by hand what memctl hook install prints",
        ) from None
    if not isinstance(known, dict):
        raise UsageError(f"{display_path(path)} holds no object, and is left as it is")
    found = merge_hooks(known, new)
    if found == known:
        return False
    target = path.resolve()  # settings are often links into a folder of their own
    target.parent.mkdir(parents=True, exist_ok=True)
    if text:
        save_file(target.with_name(f"{target.name}.before-memctl"), text.encode())
    save_file(target, f"{json.dumps(found, indent=2, ensure_ascii=False)}\n".encode())
    return True
