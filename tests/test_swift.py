"""Values that are made quickly are like those of any frozen dataclass."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, dataclass, field, fields, replace

import pytest

from memctl import records
from memctl.swift import swift


@swift
@dataclass(frozen=True, slots=True)
class Thing:
    kind: str
    """Named as something that the making of it needs, too."""
    count: int = 1
    notes: dict[str, int] = field(default_factory=dict)
    last: str | None = None


def test_fields_come_by_place_by_name_and_by_default() -> None:
    assert Thing("box", 2, last="x") == Thing(kind="box", count=2, notes={}, last="x")
    assert [getattr(Thing("box"), item.name) for item in fields(Thing)] == ["box", 1, {}, None]
    with pytest.raises(TypeError, match="kind"):
        Thing()  # type: ignore[call-arg]


def test_each_value_gets_a_default_of_its_own() -> None:
    first = Thing("box")
    first.notes["seen"] = 1
    assert Thing("box").notes == {}


def test_a_value_cannot_be_changed() -> None:
    thing = Thing("box")
    assert type(thing) is Thing
    with pytest.raises(FrozenInstanceError):
        thing.count = 2  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        del thing.count


def test_values_are_compared_copied_and_pickled_as_ever() -> None:
    text = records.SourceText("hello", "text/plain", "record/1")
    for twin in (copy.copy(text), pickle.loads(pickle.dumps(text)), replace(text)):
        assert twin == text
        assert twin is not text
    assert replace(text, title="T").title == "T"
    assert hash(Thing("box", notes=())) == hash(Thing("box", notes=()))  # type: ignore[arg-type]
