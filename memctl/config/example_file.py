"""The settings file that explains every setting."""

from __future__ import annotations

from typing import Any

from memctl.config.settings import SECTIONS, Config
from memctl.rules import choices, default_of, rules

_HOME_HELP = "the folder that holds every knowledge base; the default is the system's own place"


def example() -> str:
    """Return a config file with every setting, commented out, explained, at its default."""
    lines = [
        "# Settings of memctl.  Every line that starts with `# name =` shows a default: remove the",
        "# `# ` and change the value.  Each can also be set by an environment variable, such as",
        "# MEMCTL_WATCH_SETTLE_SECONDS for settle_seconds of [watch].",
        "",
        f"# {_HOME_HELP}",
        '# home = "~/memories"',
        *_example_lines(Config),
    ]
    for name, section in SECTIONS.items():
        about = (section.__doc__ or "").replace("``", "`")
        lines += ["", f"[{name}]", f"# {about}", *_example_lines(section)]
    return "\n".join(lines) + "\n"


def _example_lines(section: type[Any]) -> list[str]:
    lines = []
    for key, rule in rules(section).items():
        words = choices(section, key)
        range_ = f" ({' | '.join(words)})" if words else ""
        if rule.low is not None and rule.high is not None:
            range_ = f" ({rule.low:g} to {rule.high:.10g})"
        lines += ["", f"# {rule.help}{range_}", f"# {key} = {_toml(default_of(section, key))}"]
    return lines


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)
