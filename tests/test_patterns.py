"""Patterns that are compiled when they are needed do what compiled ones do."""

from __future__ import annotations

import re
import time
from importlib import import_module

import pytest
from source_trees import PACKAGE

from memctl.graph.entity_names import stated_names
from memctl.patterns import lazy_regex

MODULES = [
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
    for path in sorted(PACKAGE.rglob("*.py"))
    if "= lazy_regex(" in path.read_text("utf-8")
]


def test_a_pattern_is_compiled_when_it_is_needed_and_then_behaves_as_any() -> None:
    lazy_regex("(")
    pattern = lazy_regex(r"(?P<first>a)b", re.IGNORECASE)
    with pytest.raises(re.error):
        lazy_regex("(").search("")
    for _ in range(2):
        assert pattern.sub("c", "xABx") == "xcx"
        assert pattern.groupindex == {"first": 1}
    assert pattern.pattern == r"(?P<first>a)b"


@pytest.mark.parametrize("name", MODULES)
def test_every_pattern_of_a_module_can_be_compiled(name: str) -> None:
    kind = type(lazy_regex(""))
    patterns = [each for each in vars(import_module(name)).values() if isinstance(each, kind)]
    assert patterns
    for pattern in patterns:
        assert pattern.groups >= 0


@pytest.mark.parametrize("repeated", ["A'", "A-'", "Aa ", "\n"])
def test_four_times_the_text_is_not_sixteen_times_the_work(repeated: str) -> None:
    def seconds(length: int) -> float:
        start = time.process_time()
        assert not list(stated_names("aka " + repeated * (length // len(repeated))))
        return time.process_time() - start

    seconds(100)
    assert seconds(16_000) < 10 * seconds(4_000)
