"""Statements worth remembering on their own: facts, decisions, preferences, plans, observations.

Few and right: a sentence counts only on a clear signal, and questions, hypotheses, quotations,
advice and fragments never do.  What is distilled is always the document's own text, in place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from memctl.language.word_lists import word_set
from memctl.records import Distilled, SourceText
from memctl.understanding.statement_patterns import (
    ABOUT_SOMEONE_UNNAMED,
    BOILERPLATE,
    LABEL,
    OBJECTIONS,
    PATTERNS,
    QUESTION,
    QUOTED,
    TOLD_TO_REMEMBER,
    TYPE_OF_LABEL,
    UNDER_DECISION_HEADING,
    WE_WILL,
)
from memctl.understanding.text_outline import Line

MAX_DISTILLED = 200
_MIN_LENGTH, _MAX_LENGTH = 10, 320
_MIN_WORDS = 3
STATED_IMPORTANCE = {
    "important_fact": 0.85, "decision": 0.75, "fact": 0.6, "plan": 0.55, "preference": 0.6,
    "observation": 0.5,
}  # fmt: skip

_MARKER = re.compile(r"(?:[-*+•‣◦]\s+|\d{1,3}[.)]\s+|\[[ xX]?\]\s+|[*_]{1,2}(?=\w))+")
_WORD = re.compile(r"[a-zà-ÿ]+")
_TAIL = re.compile(r"[\s\U0001f000-\U0001faff\u2600-\u27bf\ufe0f\u200d*_]+$")
_MACHINES = word_set("assistant ai bot system chatgpt claude copilot gemini tool model")

_LABEL_WORDS = word_set(
    """remember reminder forget important importante attention warning critical note nota fyi
    record key fact decision decisión décision decided agreed resolved todo do action next plan
    lesson lessons learned learnt til observation finding preference merke merken wichtig
    entscheidung aufgabe recuerda retenir mind"""
)


@cache
def _patterns_by_word() -> Mapping[str, tuple[int, ...]]:
    """For each word the patterns, by number, that may match a sentence with it."""
    found: dict[str, list[int]] = {}
    for number, pattern in enumerate(PATTERNS):
        for word in pattern.words:
            found.setdefault(word, []).append(number)
    return {word: tuple(numbers) for word, numbers in found.items()}


@lru_cache(maxsize=4096)
def _patterns_for(signals: frozenset[str]) -> tuple[int, ...]:
    """The patterns, by number, that may match a sentence with these words."""
    by_word = _patterns_by_word()
    return tuple(sorted({number for word in signals for number in by_word.get(word, ())}))


@cache
def _signal_words() -> frozenset[str]:
    """Words of which every sentence worth remembering has one."""
    return frozenset(_patterns_by_word()) | _LABEL_WORDS


@dataclass(frozen=True, slots=True)
class _Finding:
    type: str
    reason: str
    confidence: float
    importance: float
    skipped: int = 0
    """How much of the sentence's start is only the label."""


def distil(source: SourceText, lines: Sequence[Line]) -> tuple[Distilled, ...]:
    """Return what is worth remembering, in the order of the text, nothing twice."""
    found: list[Distilled] = []
    said: set[str] = set()
    for line in lines:
        statement = _statement(source.text, line)
        if statement is None:
            continue
        key = " ".join(_WORD.findall(statement.text.lower()))
        if key not in said:
            said.add(key)
            found.append(statement)
            if len(found) == MAX_DISTILLED:
                break
    return tuple(found)


def _statement(text: str, line: Line) -> Distilled | None:
    """The statement that a sentence makes, if it is worth remembering."""
    if not _MIN_LENGTH <= line.end - line.start <= _MAX_LENGTH + 40 or line.kind == "heading":
        return None
    if line.speaker and line.speaker.lower() in _MACHINES:
        return None
    sentence = text[line.start : line.end]
    signals = _signal_words().intersection(_WORD.findall(sentence.lower()))
    if not signals:
        return None
    marker = _MARKER.match(sentence)
    skipped = marker.end() if marker else 0
    finding = _find(sentence[skipped:], line, signals)
    if finding is None or sentence[0] == "#":
        return None
    start = line.start + skipped + finding.skipped
    end = line.start + len(_TAIL.sub("", sentence))
    return _distilled(text, start, end, finding, line) if end - start >= _MIN_LENGTH else None


def _distilled(text: str, start: int, end: int, finding: _Finding, line: Line) -> Distilled:
    spoken = f"; said by {line.speaker}" if line.speaker else ""
    return Distilled(
        text=text[start:end],
        type=finding.type,
        start=start,
        end=end,
        importance=finding.importance,
        confidence=finding.confidence,
        reason=f"{finding.reason}{spoken}",
    )


def _find(sentence: str, line: Line, signals: frozenset[str]) -> _Finding | None:
    """What a sentence with these signals words is, if it is worth remembering."""
    said_so = not _LABEL_WORDS.isdisjoint(signals)
    finding = (_labelled(sentence) or _asked_to_remember(sentence)) if said_so else None
    if finding:
        noise = QUESTION.search(sentence) or _is_noise(sentence[finding.skipped :])
        return None if noise else finding
    finding = next(_matching(sentence, line, _patterns_for(signals)), None)
    return None if finding is None or _speaks_against(sentence) else finding


def _labelled(sentence: str) -> _Finding | None:
    """ "Decision: oak worktops" is a decision whatever follows."""
    label = LABEL.match(sentence)
    if not label:
        return None
    name = label["label"].lower().replace("’", "'")
    type_ = TYPE_OF_LABEL.get(name)
    if type_ is None or len(sentence[label.end() :].split()) < _MIN_WORDS:
        return None
    if sentence[label.end("label") :].lstrip("*_")[:1] == "," and not _is_statement(
        sentence, label
    ):
        return None
    return _Finding(type_, f"trigger: {name}", 0.9, STATED_IMPORTANCE[type_], label.end())


def _is_statement(sentence: str, label: re.Match[str]) -> bool:
    """Whether "decided, we stay" goes on with a clause of its own; "Remember, it's" is talk."""
    named = label["label"].lower() in ("decided", "agreed", "fyi", "for the record", "note to self")
    return named and bool(re.match(r"(?:we|I|the|my|our)(?:['’]\w+)? ", sentence[label.end() :]))


def _asked_to_remember(sentence: str) -> _Finding | None:
    """ "Remember that I ..." asks for it in so many words."""
    match = TOLD_TO_REMEMBER.match(sentence)
    if not match or len(sentence[match.end() :].split()) < _MIN_WORDS:
        return None
    return _Finding("important_fact", "trigger: remember that", 0.85, 0.8, match.end())


def _is_noise(statement: str) -> bool:
    return bool(BOILERPLATE.search(statement) or QUOTED.match(statement))


def _speaks_against(sentence: str) -> bool:
    if len(sentence.split()) < _MIN_WORDS or sentence.endswith((":", "...", "…")):
        return True
    if QUOTED.match(sentence):
        return True
    return any(objection.search(sentence) for objection in OBJECTIONS)


def _matching(sentence: str, line: Line, numbers: Iterable[int]) -> Iterator[_Finding]:
    if UNDER_DECISION_HEADING.search(line.heading) and WE_WILL.match(sentence):
        yield _Finding("decision", "pattern: we will, under a decision", 0.85, 0.7)
    for number in numbers:
        pattern = PATTERNS[number]
        if pattern.regex.search(sentence):
            if not pattern.may_begin_with_pronoun and _is_about_someone_unnamed(sentence):
                continue
            reason = f"pattern: {pattern.name}"
            yield _Finding(pattern.type, reason, pattern.confidence, pattern.importance)


def _is_about_someone_unnamed(sentence: str) -> bool:
    return ABOUT_SOMEONE_UNNAMED.match(sentence) is not None
