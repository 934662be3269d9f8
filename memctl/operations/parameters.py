"""What an operation takes and gives: JSON schemas made from declarations, and checked arguments.

Parameters are the fields of a frozen record, each ``Annotated`` with a ``Rule``.  Knows which
types JSON has, never which operations there are.
"""

from __future__ import annotations

import json
import types
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from msgspec import NODEFAULT, Struct

from memctl.errors import UsageError
from memctl.validation import Rule, nearest, setting_default, setting_rules, setting_type

P = TypeVar("P")
JsonObject = dict[str, Any]
_NAMES: Mapping[type, tuple[str, str]] = {
    bool: ("boolean", "true or false"),
    int: ("integer", "a whole number"),
    float: ("number", "a number"),
    str: ("string", "a text"),
    tuple: ("array", "a list of texts"),
    Mapping: ("object", "an object"),
    object: ("", "anything"),
}
"""How JSON schema calls a type, and how people do."""
_LONGEST_VALUE = 60
_STORABLE_BITS = 63
"""Of a whole number without its sign, in tables and ledger."""


class _Type(NamedTuple):
    """What a parameter may be."""

    kind: type
    words: tuple[str, ...]
    item: type = str
    """Of a list."""


def _type_of(section: type[Any], key: str) -> _Type:
    annotation = _without_none(setting_type(section, key))
    if get_origin(annotation) is Literal:
        return _Type(str, get_args(annotation))
    if get_origin(annotation) is tuple:
        return _Type(tuple, (), get_args(annotation)[0])
    return _Type(object if annotation is Any else get_origin(annotation) or annotation, ())


def _without_none(annotation: Any) -> Any:
    if get_origin(annotation) in (Union, types.UnionType):
        (annotation,) = (each for each in get_args(annotation) if each is not types.NoneType)
    return annotation


def is_required(section: type[Any], key: str) -> bool:
    """Return whether a parameter has to be given."""
    return setting_default(section, key) is NODEFAULT


# --- arguments ------------------------------------------------------------------------------------


def parse_arguments(section: type[P], arguments: object, operation: str) -> P:
    """Return the parameters that the arguments of a call give; null means not given.

    Args:
        section: The class of the parameters.
        arguments: The arguments as JSON has them: an object.
        operation: What is called, for messages.

    Raises:
        UsageError: Names a parameter that is unknown or missing, or whose value cannot be used.
    """
    if not isinstance(arguments, Mapping):
        raise UsageError(
            f"the arguments of {operation} must be an object, not {_shown_value(arguments)}"
        )
    rules = setting_rules(section)
    for key in arguments:
        if key not in rules:
            hint = nearest(str(key), rules) or f"it takes {', '.join(rules) or 'none'}"
            raise UsageError(f"{operation} has no parameter {_shown_value(key)}", hint)
    values = {}
    for key, rule in rules.items():
        value = arguments.get(key)
        if value is not None:
            values[key] = _checked_value(section, key, value, rule, f"{key} of {operation}")
        elif is_required(section, key):
            raise UsageError(f"{operation} needs {key}", rule.help)
    return section(**values)


def _checked_value(section: type[Any], key: str, value: object, rule: Rule, name: str) -> Any:
    kind, words, item = _type_of(section, key)
    if kind in (Mapping, object) and isinstance(value, str) and value[:1] in ("{", "["):
        value = _object_in(value)
    if kind is object:
        return value
    if kind is float and type(value) is int:
        value = float(value)
    is_list = isinstance(value, list) and all(type(each) is item for each in value)
    fits = is_list if kind is tuple else type(value) is kind
    if not (fits or (kind is Mapping and isinstance(value, Mapping))):
        what = "a list of whole numbers" if item is int else _NAMES[kind][1]
        raise UsageError(f"{name} must be {what}, not {_shown_value(value)}", rule.help)
    if words and value not in words:
        hint = nearest(str(value), words)
        named = ", ".join(filter(None, words))
        raise UsageError(f"{name} must be {named}, not {_shown_value(value)}", hint)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        _check_range(value, rule, name)
    if kind is str and is_required(section, key) and not str(value).strip():
        raise UsageError(f"{name} is empty", rule.help)
    return tuple(value) if kind is tuple and isinstance(value, list) else value


def _check_range(value: float, rule: Rule, name: str) -> None:
    if isinstance(value, int) and value.bit_length() > _STORABLE_BITS:
        raise UsageError(f"{name} is too large: {_shown_value(value)}")
    low, high = rule.low, rule.high
    if (low is not None and not value >= low) or (high is not None and not value <= high):
        bounds = f"from {low:g} to {high:g}" if high is not None else f"at least {low:g}"
        raise UsageError(f"{name} must be {bounds}, not {_shown_value(value)}")


def _object_in(text: str) -> object:
    """Return the object that a text is the JSON of, as strict schemas ask for it; else the text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _shown_value(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= _LONGEST_VALUE else f"{shown[:_LONGEST_VALUE]}..."


def parse_names(value: object, parameter: str) -> tuple[str, ...]:
    """Return the names that a parameter of any type was given: one, a list, or none.

    Raises:
        UsageError: It is something else.
    """
    if value is None:
        return ()
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise UsageError(f"{parameter} must be a name or a list of names")
    return tuple(names)


# --- schemas --------------------------------------------------------------------------------------


def parameter_schema(section: type[Any], *, strict: bool = False) -> JsonObject:
    """Return the JSON schema of an operation's parameters.

    Args:
        section: The class of the parameters.
        strict: As strict modes of models want it: every parameter is required, null stands for
            one that is not given, and defaults and ranges are said in words.
    """
    rules = setting_rules(section)
    make = _strict_property if strict else _property
    return {
        "type": "object",
        "properties": {key: make(section, key, rule) for key, rule in rules.items()},
        "required": [key for key in rules if strict or is_required(section, key)],
        "additionalProperties": False,
    }


def _property(section: type[Any], key: str, rule: Rule) -> JsonObject:
    kind, words, item = _type_of(section, key)
    found: JsonObject = {} if kind is object else {"type": _NAMES[kind][0]}
    if words:
        found["enum"] = list(words)
    if kind is tuple:
        found["items"] = {"type": _NAMES[item][0]}
    found["description"] = rule.help
    default = setting_default(section, key)
    if default not in (NODEFAULT, None, ()):
        found["default"] = default
    bounds = {"minimum": rule.low, "maximum": rule.high}
    return found | {name: value for name, value in bounds.items() if value is not None}


def _strict_property(section: type[Any], key: str, rule: Rule) -> JsonObject:
    found = _property(section, key, rule)
    sentences = [rule.help]
    default = found.pop("default", None)
    low, high = found.pop("minimum", None), found.pop("maximum", None)
    if low is not None and high is not None:
        sentences.append(f"From {low:g} to {high:g}.")
    if default is not None:
        sentences.append(f"Null for {json.dumps(default)}.")
    if found.get("type", "object") == "object":  # which would have to name all of its keys
        found["type"] = "string"
        sentences.append("As JSON text.")
    if not is_required(section, key):
        found["type"] = [found["type"], "null"]
        if "enum" in found:
            found["enum"] = [*found["enum"], None]
    return found | {"description": " ".join(sentences)}


# --- results --------------------------------------------------------------------------------------


def result_schema(annotation: Any) -> JsonObject:
    """Return the JSON schema of a result: a record as ``plain_values.to_plain`` writes it."""
    origin = get_origin(annotation)
    if origin in (Union, types.UnionType):
        found = result_schema(_without_none(annotation))
        return {**found, "type": [found["type"], "null"]} if "type" in found else {}
    if origin is Literal:
        return {"type": "string", "enum": list(get_args(annotation))}
    if isinstance(annotation, type) and issubclass(annotation, Struct):
        hints = get_type_hints(annotation)
        names = list(annotation.__struct_fields__)
        properties = {name: result_schema(hints[name]) for name in names}
        return {"type": "object", "properties": properties, "required": names}
    if origin is tuple:
        return {"type": "array", "items": result_schema(get_args(annotation)[0])}
    if annotation is datetime:
        return {"type": "string", "format": "date-time"}
    kind = origin or annotation
    return {"type": _NAMES[kind][0]} if kind in _NAMES else {}
