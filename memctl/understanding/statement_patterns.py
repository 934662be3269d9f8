"""The sentence patterns that make a statement worth remembering, and what speaks against one.

They stand in ``statement_patterns.toml``, which says how they are written.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memctl.language.word_lists import word_set

_FRAGMENT = re.compile(r"\{\{(\w+)\}\}")


@dataclass(frozen=True, slots=True)
class Pattern:
    """``regex`` found in a sentence makes it a statement of ``type``."""

    type: str
    name: str
    words: frozenset[str]
    """Any sentence that ``regex`` finds has one of these words, in lower case."""
    regex: re.Pattern[str]
    confidence: float
    importance: float
    may_begin_with_pronoun: bool = False
    """Whether it may begin with a pronoun that stands for nobody."""


def _joined(written: str | list[str]) -> str:
    return written if isinstance(written, str) else "".join(written)


def _compiled(written: str | list[str]) -> re.Pattern[str]:
    """Compile a regular expression, in which a fragment may hold others."""
    regex = _joined(written)
    while _FRAGMENT.search(regex):
        regex = _FRAGMENT.sub(lambda match: _joined(_READ["fragments"][match[1]]), regex)
    return re.compile(regex)


def _pattern(entry: Mapping[str, Any]) -> Pattern:
    words = entry["words"] if isinstance(entry["words"], str) else " ".join(entry["words"])
    return Pattern(**{**entry, "words": word_set(words), "regex": _compiled(entry["regex"])})


_READ = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))

PATTERNS = tuple(map(_pattern, _READ["patterns"]))
TYPE_OF_LABEL = {label: type_ for type_, labels in _READ["labels"].items() for label in labels}
"""What labels such as "Remember: ..." make of a sentence."""

LABEL, TOLD_TO_REMEMBER, UNDER_DECISION_HEADING, WE_WILL, QUOTED, ABOUT_SOMEONE_UNNAMED = (
    _compiled(_READ["sentences"][name])
    for name in (
        "label", "told_to_remember", "under_decision_heading", "we_will", "quoted",
        "about_someone_unnamed",
    )
)  # fmt: skip

_OBJECTIONS = {name: _compiled(written) for name, written in _READ["objections"].items()}
OBJECTIONS = tuple(_OBJECTIONS.values())
"""Found anywhere in a sentence, each of them is enough."""
QUESTION, BOILERPLATE = _OBJECTIONS["question"], _OBJECTIONS["boilerplate"]
