"""Settings are read: a flag wins over the environment, that over config.toml, then the default.

The only module that reads the environment.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from memctl.config.settings import (
    CUSTOM_JOBS,
    SECTIONS,
    Config,
    CustomJob,
    Origin,
    OutsideSource,
    is_same_host,
    settings_of,
)
from memctl.errors import ConfigError, UsageError
from memctl.kb_settings import check_name, check_overlap
from memctl.literals import Task
from memctl.paths import display_path, expand_path, os_error_hint, os_error_reason
from memctl.schedules import parse_schedule
from memctl.validation import (
    check_keys,
    check_value,
    nearest,
    parse_text,
    read_toml,
    setting_default,
    setting_keys,
)

_VARIABLE_PREFIX = "MEMCTL_"
_OTHER_VARIABLES = (
    "MEMCTL_HOME", "MEMCTL_CONFIG", "MEMCTL_KB", "MEMCTL_USER", "MEMCTL_AGENT", "MEMCTL_SESSION",
    "MEMCTL_DEBUG",
)  # fmt: skip
_log = logging.getLogger(__name__)


def load_config(
    flags: Mapping[str, str] | None = None, environ: Mapping[str, str] | None = None
) -> Config:
    """Read every setting: a flag wins over the environment, that over the file, then the default.

    A variable that is empty says nothing, but for settings that are empty by default.

    Args:
        flags: Values given on the command line, by dotted key; ``config`` is the file itself.
        environ: Instead of the process's environment.

    Raises:
        ConfigError: A setting is unknown or cannot have that value, or the file is not TOML; or
            one that is named is not there.
    """
    given = dict(flags or {})
    variables = os.environ if environ is None else environ
    chosen = _chosen_home(given, variables)
    named, path = _config_path(given.pop("config", None), chosen, variables)
    file = read_toml(path)
    if named and not path.exists():
        hint = "check the path for a typo, or write one: memctl --config FILE config init"
        raise ConfigError(f"no settings file {display_path(path)}", hint)
    sources = _Sources(given, variables, path, file)
    sources.check_file()
    values: dict[str, Any] = {"default_kb": sources.default_kb()}
    for name, section in SECTIONS.items():
        values[name] = section(
            **{key: sources.value(name, section, key) for key in setting_keys(section)}
        )
    values["sources"] = sources.outside()
    values["custom_jobs"] = sources.custom_jobs()
    check_overlap(values["new_kb"].chunk_size, values["new_kb"].chunk_overlap, str(path))
    home = sources.home(chosen)
    values |= {
        name: variables.get(f"MEMCTL_{name.upper()}") or None
        for name in ("kb", "user", "agent", "session")
    }
    return Config(home=home, path=path, origins=sources.origins, **values)


def config_path(flags: Mapping[str, str]) -> Path:
    """Return where the settings file is, or would be, whatever is in it.

    Args:
        flags: As for ``load_config``.

    Raises:
        ConfigError: The home that it would be in cannot be one.
    """
    home = _chosen_home(flags, os.environ)
    return _config_path(flags.get("config"), home, os.environ)[1]


_Home = tuple[Path, Origin]


def _chosen_home(flags: Mapping[str, str], variables: Mapping[str, str]) -> _Home | None:
    """Return the home that a flag or a variable names; the file may name another one.

    Raises:
        ConfigError: It cannot be one.
    """
    if (flag := flags.get("home")) is not None:
        if not flag.strip():
            raise ConfigError("--home: no folder is named", "name one, or leave --home out")
        return _home(expand_path(flag), Origin("flag", "--home"))
    if (variable := variables.get("MEMCTL_HOME")) and variable.strip():
        return _home(expand_path(variable), Origin("environment", "MEMCTL_HOME"))
    return None


def _home(path: Path, origin: Origin) -> _Home:
    """Refuse a path that exists and is not a folder; a missing folder will be created."""
    path = path.absolute()
    what = f"{origin.name}: {display_path(path)}"
    try:
        is_folder = stat.S_ISDIR(path.stat().st_mode)
        if is_folder:
            os.stat(f"{path}/.")  # noqa: PTH116 - of a Path the dot is left out
    except FileNotFoundError:
        is_folder = not path.is_symlink()
    except OSError as error:
        raise ConfigError(f"{what}: {os_error_reason(error)}", os_error_hint(error)) from error
    except ValueError as error:
        raise ConfigError(f"{what}: {error}", "name a folder") from error
    if not is_folder:
        raise ConfigError(f"{what} is not a folder", "name a folder; it need not be there yet")
    return path, origin


def _config_path(
    flag: str | None, home: _Home | None, variables: Mapping[str, str]
) -> tuple[bool, Path]:
    """Return the config file: named, else in a home that was chosen, else the system's place.

    Returns:
        Whether it was named, and the file.
    """
    if flag is not None and not flag.strip():
        raise ConfigError("--config: no file is named", "name one, or leave --config out")
    if named := flag or variables.get("MEMCTL_CONFIG"):
        return True, expand_path(named).absolute()
    if home is not None:
        return False, home[0] / "config.toml"
    from platformdirs import user_config_path

    return False, user_config_path("memctl", appauthor=False) / "config.toml"


class _Sources(Struct):
    """The three places where a value can be set; records which one won."""

    flags: Mapping[str, str]
    variables: Mapping[str, str]
    path: Path
    file: Mapping[str, Any]
    origins: dict[str, Origin] = field(default_factory=dict)

    def check_file(self) -> None:
        """Refuse keys that the file has and no setting is called."""
        place = str(self.path)
        check_keys(self.file, ["home", "default_kb", "sources", *SECTIONS], prefix="", place=place)
        home = self.file.get("home", "x")
        if not isinstance(home, str) or not home:
            raise ConfigError(f"{place}: home must be the path of a folder, not {home!r}")
        for name, section in SECTIONS.items():
            table = self.file.get(name, {})
            if not isinstance(table, dict):
                raise ConfigError(f"{place}: {name} must be a table", f"write [{name}] above it")
            known = [*setting_keys(section), *([CUSTOM_JOBS] if name == "upkeep" else [])]
            check_keys(table, known, prefix=f"{name}.", place=place)

    def custom_jobs(self) -> tuple[CustomJob, ...]:
        """Return the jobs of ``[[upkeep.custom]]``, which stand in the file alone.

        Raises:
            ConfigError: One has no name, no command or no schedule, or two have one name.
        """
        place, found = (
            f"{self.path}: upkeep.custom",
            self.file.get("upkeep", {}).get(CUSTOM_JOBS, []),
        )
        if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
            raise ConfigError(f"{place} must be tables", "write [[upkeep.custom]] above each")
        jobs = tuple(_custom_job(item, place) for item in found)
        names = [job.name for job in jobs]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ConfigError(f"{place}: {twice[0]!r} is there twice", "give each another name")
        return jobs

    def value(self, name: str, section: type[Any], key: str) -> Any:
        """Return the setting's value from the source that wins."""
        dotted = f"{name}.{key}" if name else key
        variable = variable_name(dotted)
        table = self.file.get(name, {}) if name else self.file
        if dotted in self.flags:
            self.origins[dotted] = Origin("flag", f"--{dotted}")
            return parse_text(section, key, self.flags[dotted], name=dotted, place="flag")
        text = self.variables.get(variable, "")
        if text or (variable in self.variables and setting_default(section, key) == ""):
            self.origins[dotted] = Origin("environment", variable)
            return parse_text(section, key, text, name=dotted, place=f"environment {variable}")
        if key in table:
            self.origins[dotted] = Origin("file", str(self.path))
            return check_value(section, key, table[key], name=dotted, place=str(self.path))
        self.origins[dotted] = Origin("default")
        return setting_default(section, key)

    def outside(self) -> dict[str, OutsideSource]:
        """Return the programs of the user's that the file names; a variable can name none.

        Raises:
            ConfigError: One has no command, or a setting that cannot be used.
        """
        place = str(self.path)
        given = self.file.get("sources", {})
        if not isinstance(given, dict) or not all(
            isinstance(each, dict) for each in given.values()
        ):
            raise ConfigError(f"{place}: sources must be tables", "write [sources.NAME] above each")
        found: dict[str, OutsideSource] = {}
        for name, table in given.items():
            prefix = f"sources.{name}."
            check_keys(table, setting_keys(OutsideSource), prefix=prefix, place=place)
            values = {
                key: check_value(OutsideSource, key, value, name=f"{prefix}{key}", place=place)
                for key, value in table.items()
            }
            if not values.get("command", "").strip():
                raise ConfigError(
                    f"{place}: {prefix}command is missing", 'write command = "PROGRAM ARGUMENTS"'
                )
            for key in setting_keys(OutsideSource):
                where = Origin("file", place) if key in table else Origin("default")
                self.origins[f"{prefix}{key}"] = where
            found[name] = OutsideSource(**values)
        return found

    def home(self, chosen: _Home | None) -> Path:
        """Return the folder of all knowledge bases; a relative one in the file is beside it.

        Args:
            chosen: What a flag or a variable names, which wins.

        Raises:
            ConfigError: It cannot be one.
        """
        if chosen is None and "home" in self.file:
            named = self.path.parent / expand_path(self.file["home"])
            chosen = _home(named, Origin("file", str(self.path)))
        if chosen is None:
            from platformdirs import user_data_path

            chosen = _home(user_data_path("memctl", appauthor=False), Origin("default"))
        path, self.origins["home"] = chosen
        return path

    def default_kb(self) -> str:
        """Return the knowledge base to write to, which must have a valid name."""
        name: str = self.value("", Config, "default_kb")
        try:
            return check_name(name)
        except UsageError as error:
            place = self.origins["default_kb"].name
            raise ConfigError(f"{place}: default_kb: {error.message}", error.hint) from None


def _custom_job(item: Mapping[str, Any], place: str) -> CustomJob:
    known = ("name", "command", "at", "every", "kbs", "timeout_seconds")
    check_keys(item, known, prefix="upkeep.custom.", place=place)
    name, shell = item.get("name"), item.get("command")
    if not isinstance(name, str) or not isinstance(shell, str) or not shell.strip():
        raise ConfigError(f"{place}: each needs a name and a command", 'such as name = "backup"')
    at, every = item.get("at"), item.get("every")
    given = f"every {every}" if at is None else at
    if (at is None) == (every is None) or not isinstance(given, str):
        raise ConfigError(f"{place}: {name!r} needs either at or every", 'such as at = "04:00"')
    kbs, seconds = item.get("kbs", []), item.get("timeout_seconds", 600.0)
    if not isinstance(kbs, list) or not all(isinstance(each, str) for each in kbs):
        raise ConfigError(f"{place}: kbs must be a list of names, not {kbs!r}")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds <= 0:
        raise ConfigError(f"{place}: timeout_seconds must be a number above 0, not {seconds!r}")
    try:
        check_name(name, "a job")
        schedule = parse_schedule(given)
    except UsageError as error:
        raise ConfigError(f"{place}: {name!r}: {error.message}", error.hint) from None
    return CustomJob(name, shell, schedule, tuple(kbs), float(seconds))


def is_debugging() -> bool:
    """Return whether ``MEMCTL_DEBUG`` asks for tracebacks."""
    return os.environ.get("MEMCTL_DEBUG", "") not in ("", "0")


def child_environment(named: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for a command of the user's, with some variables of ours."""
    return {**os.environ, **named}


@cache
def variable_name(dotted: str) -> str:
    """Return the environment variable of a setting: ``MEMCTL_WATCH_SETTLE_SECONDS``."""
    return f"{_VARIABLE_PREFIX}{dotted.replace('.', '_').upper()}"


def unknown_variables(config: Config, environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return variables that are called like settings and are none, each with a hint.

    Args:
        config: All settings; one of them may name a further variable, for a key.
        environ: Instead of the process's environment.
    """
    settings = settings_of(config)
    known = [*_OTHER_VARIABLES, *map(variable_name, settings), *map(str, settings.values())]
    given = os.environ if environ is None else environ
    found = sorted(
        name for name in given if name.startswith(_VARIABLE_PREFIX) and name not in known
    )
    # All begin alike, so it is the rest that tells which one was meant.
    rests = [
        name.removeprefix(_VARIABLE_PREFIX) for name in known if name.startswith(_VARIABLE_PREFIX)
    ]
    otherwise = "memctl config show -o json names those there are"
    return {
        name: nearest(name.removeprefix(_VARIABLE_PREFIX), rests, _VARIABLE_PREFIX) or otherwise
        for name in found
    }


def relative_home(environ: Mapping[str, str] | None = None) -> str:
    """Return the home that a variable names from the folder one is in; "" where it names none so.

    Args:
        environ: Instead of the process's environment.
    """
    named = (os.environ if environ is None else environ).get("MEMCTL_HOME", "").strip()
    return "" if not named or expand_path(named).is_absolute() else named


def endpoint_key(config: Config, task: Task, url: str) -> str:
    """Return the key for a task's endpoint, "" where there is none to send.

    A task's own key counts; else that of [endpoint], which goes to the host of its base_url alone.

    Args:
        config: All settings.
        task: What is to be done there.
        url: The address of the task's endpoint.

    Raises:
        ConfigError: The file that should hold it cannot be read, or what is there is no key.
    """
    own: str = getattr(config.models, f"{task}_key")
    if own and ("/" in own or "\\" in own):
        return _key_in_file(own, f"models.{task}_key")
    if own:
        return _key_in_variable(own)
    common = config.endpoint
    if not is_same_host(common.base_url, url):
        return ""
    if common.api_key_file:
        return _key_in_file(common.api_key_file, "endpoint.api_key_file")
    return _key_in_variable(common.api_key_env)


def _key_in_file(name: str, setting_: str) -> str:
    path = expand_path(name)
    try:
        key = path.read_text(encoding="utf-8-sig").strip()
        if os.name == "posix" and stat.S_IMODE(path.stat().st_mode) & 0o077:
            place = display_path(path)
            _log.warning("others on this machine can read %s: chmod 600 %s", place, place)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{setting_}: cannot read {display_path(path)}", "name a file with the key alone"
        ) from error
    return _sound_key(key, f"{setting_}: {display_path(path)}")


def _key_in_variable(name: str) -> str:
    return _sound_key(os.environ.get(name, "").strip(), f"environment {name}") if name else ""


def _sound_key(key: str, place: str) -> str:
    """Refuse what cannot be sent, without saying what it is."""
    if key and (not key.isascii() or not key.isprintable() or " " in key):
        raise ConfigError(
            f"{place} holds more than a key, or something else",
            "a key is one word of ASCII characters; let nothing else stand there",
        )
    return key
