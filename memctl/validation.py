"""What a setting may be, and how a wrong one is reported: by key, place and nearest valid name.

Knows TOML and the shape of a settings class (a frozen record whose fields are ``Annotated`` with a
``Rule``); never knows which settings there are.
"""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Hashable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from msgspec import NODEFAULT, Struct

from memctl.errors import ConfigError
from memctl.files import read_head
from memctl.paths import display_path, os_error_hint, os_error_reason

LARGEST_FILE = 1 << 20
_FILE_HINT = "name a file of settings; memctl config init writes one"
_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0"})
_TYPE_NAMES: Mapping[type, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    tuple: "a list of texts",
}


class Rule(Struct, frozen=True):
    """What one setting means and which numbers it takes; ``low`` and ``high`` are inclusive."""

    help: str
    low: float | None = None
    high: float | None = None
    option: str = ""
    """The option that sets it on the command line, if there is one; ``--on/--off`` for a bool."""
    metavar: str = ""

    @property
    def allowed_range(self) -> str:
        """The range in words, or nothing."""
        if self.low is None or self.high is None:
            return ""
        return f"{self.low:g} to {self.high:.10g}"


def rule_of(section: type[Any], key: str) -> Rule:
    """Return the rule of a setting, for a class that has the same one."""
    rule: Rule = _annotations(section)[key].__metadata__[0]
    return rule


def setting_rules(section: type[Any]) -> dict[str, Rule]:
    """Return the rule of every setting of a settings class, in order."""
    return {key: rule_of(section, key) for key in setting_keys(section)}


def setting_keys(section: type[Any]) -> tuple[str, ...]:
    """Return the names of the settings of a settings class, in order; rules are not looked at."""
    classes: Any = section  # mypy 1 does not see that a class is hashable
    return _keys(classes)


@cache
def _keys(classes: Hashable) -> tuple[str, ...]:
    section: Any = classes
    declared: dict[str, str] = {}
    for each in reversed(section.__mro__):
        declared |= vars(each).get("__annotations__", {})
    return tuple(key for key in section.__struct_fields__ if declared[key].startswith("Annotated["))


@cache
def _evaluate(section: Hashable) -> dict[str, Any]:
    return get_type_hints(section, include_extras=True)


def _annotations(section: type[Any]) -> dict[str, Any]:
    classes: Any = section  # mypy 1 does not see that a class is hashable
    return _evaluate(classes)


def setting_type(section: type[Any], key: str) -> Any:
    """Return the declared type of a setting."""
    declared = _annotations(section)[key]
    return declared.__origin__ if get_origin(declared) is Annotated else declared


def allowed_values(section: type[Any], key: str) -> tuple[str, ...]:
    """Return the words that a setting may be, or nothing where any text will do."""
    annotation = setting_type(section, key)
    return get_args(annotation) if get_origin(annotation) is Literal else ()


def _setting_type(section: type[Any], key: str) -> type:
    annotation: type = setting_type(section, key)
    origin = get_origin(annotation)
    return str if origin is Literal else origin or annotation


def check_value(section: type[Any], key: str, value: object, *, name: str, place: str) -> Any:
    """Return ``value`` as the type of the setting.

    Args:
        section: The settings class.
        key: The field's name.
        value: What was found.
        name: How the user spells the setting: ``watch.settle_seconds``.
        place: Where it was found: a file's path or a variable's name.

    Raises:
        ConfigError: It has the wrong type or is out of range.
    """
    kind = _setting_type(section, key)
    if kind is float and type(value) is int:
        value = float(value)
    if kind is tuple and isinstance(value, list) and all(isinstance(each, str) for each in value):
        value = tuple(each.strip() for each in value if each.strip())
    if type(value) is not kind:
        raise ConfigError(
            f"{place}: {name} must be {_TYPE_NAMES[kind]}, not {value!r}", _example(section, key)
        )
    _check_choice(allowed_values(section, key), value, f"{place}: {name}")
    _check_range(rule_of(section, key), value, f"{place}: {name}")
    return value


def setting_default(section: type[Any], key: str) -> Any:
    """Return the setting's default; ``NODEFAULT`` without one."""
    names, defaults = section.__struct_fields__, section.__struct_defaults__
    place = names.index(key) - (len(names) - len(defaults))
    return defaults[place] if place >= 0 else NODEFAULT


def _example(section: type[Any], key: str) -> str:
    return f"the default is {shown_value(setting_default(section, key))}"


def shown_value(value: object) -> str:
    """Return the value of a setting as TOML has it, but texts as they are."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def _check_choice(words: tuple[str, ...], value: object, what: str) -> None:
    if words and value not in words:
        raise ConfigError(
            f"{what} cannot be {value!r}", nearest(str(value), words) or f"use {_either(words)}"
        )


def _check_range(rule: Rule, value: Any, what: str) -> None:
    if rule.low is None or rule.high is None:
        return
    if not rule.low <= value <= rule.high:  # also refuses NaN
        raise ConfigError(f"{what} must be from {rule.low:g} to {rule.high:g}, not {value!r}")


def parse_text(section: type[Any], key: str, text: str, *, name: str, place: str) -> Any:
    """Return what ``text`` (a variable, a flag) says as the type of the setting.

    Raises:
        ConfigError: As ``check_value``.
    """
    value = _from_text(_setting_type(section, key), text.strip())
    return check_value(section, key, value, name=name, place=place)


def _from_text(kind: type, text: str) -> object:
    if kind is bool:
        lowered = text.lower()
        return lowered in _TRUE if lowered in _TRUE | _FALSE else text
    if kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            return text
    return _list_from_text(text) if kind is tuple else text


def _list_from_text(text: str) -> object:
    """Return a list as TOML and JSON have it, or texts with commas between them."""
    if not text.startswith("["):
        return text.split(",")
    try:
        return json.loads(text)
    except ValueError:
        return text


def check_keys(keys: Iterable[str], known: Iterable[str], *, prefix: str, place: str) -> None:
    """Refuse the first key that is not known.

    Raises:
        ConfigError: Names the key, the place and the nearest known key.
    """
    names = list(known)
    for key in keys:
        if key not in names:
            hint = nearest(key, names, prefix) or f"known are {', '.join(names)}"
            raise ConfigError(f"{place}: unknown setting {prefix + key!r}", hint)


def nearest(word: str, words: Iterable[str], prefix: str = "") -> str:
    """Ask whether the nearest of the words was meant, with ``prefix`` in front; else nothing."""
    found = difflib.get_close_matches(word, list(words), n=1, cutoff=0.6)
    return f"did you mean {prefix + found[0]!r}?" if found else ""


def _either(words: tuple[str, ...]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}" if len(words) > 1 else words[0]


def read_limited(path: Path) -> bytes:
    """Return a file of settings.

    Raises:
        ConfigError: It is too big to be one.
        OSError: It cannot be read.
    """
    content = read_head(path, LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        raise ConfigError(
            f"{display_path(path)}: has more than {LARGEST_FILE:,} bytes, as no settings have",
            _FILE_HINT,
        )
    return content


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file; a missing one is empty.

    Raises:
        ConfigError: It cannot be read or is not TOML; the message names line and column.
    """
    return parse_toml(read_settings_file(path), str(path))


def read_settings_file(path: Path) -> bytes:
    """Return a file of settings; a missing one is empty.

    Raises:
        ConfigError: It is too big to be one, or cannot be read.
    """
    try:
        return read_limited(path)
    except FileNotFoundError:
        return b""
    except OSError as error:
        if os.path.isdir(path):  # noqa: PTH112 - Path.is_dir raises where a name is too long
            raise ConfigError(
                f"{display_path(path)}: is a folder, and no file of settings",
                "move it away, or name another file with --config or MEMCTL_CONFIG",
            ) from error
        raise ConfigError(
            f"{display_path(path)}: cannot be read: {os_error_reason(error)}",
            os_error_hint(error, _FILE_HINT),
        ) from error


def parse_toml(data: bytes, place: str) -> dict[str, Any]:
    """Return what TOML says.

    Args:
        data: The TOML.
        place: Where it stands.

    Raises:
        ConfigError: It is no TOML; the message names line and column.
    """
    if not data:
        return {}
    import tomllib

    try:
        return tomllib.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        hint = "save it as UTF-8"
        raise ConfigError(f"{place}: not UTF-8 at byte {error.start}", hint) from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{place}: not valid TOML: {error}", "fix or remove that line") from error
    except RecursionError as error:
        raise ConfigError(f"{place}: its values are nested too deep", "write it anew") from error
