"""The environment variables that settings are called by, and those that are none of them."""

from __future__ import annotations

import os
from collections.abc import Mapping

from memctl.config.settings import Config, settings_of
from memctl.rules import nearest

_PREFIX = "MEMCTL_"
_OTHER_VARIABLES = ("MEMCTL_HOME", "MEMCTL_CONFIG", "MEMCTL_KB", "MEMCTL_DEBUG")


def variable_name(dotted: str) -> str:
    """Return the environment variable of a setting: ``MEMCTL_WATCH_SETTLE_SECONDS``."""
    return f"{_PREFIX}{dotted.replace('.', '_').upper()}"


def unknown_variables(config: Config, environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return variables that are called like settings and are none, each with a hint.

    Args:
        config: All settings; one of them may name a further variable, for a key.
        environ: Instead of the process's environment.
    """
    settings = settings_of(config)
    known = [*_OTHER_VARIABLES, *map(variable_name, settings), *map(str, settings.values())]
    given = os.environ if environ is None else environ
    found = sorted(name for name in given if name.startswith(_PREFIX) and name not in known)
    # All begin alike, so it is the rest that tells which one was meant.
    rests = [name.removeprefix(_PREFIX) for name in known if name.startswith(_PREFIX)]
    otherwise = "memctl config show -o json names those there are"
    return {
        name: nearest(name.removeprefix(_PREFIX), rests, _PREFIX) or otherwise for name in found
    }
