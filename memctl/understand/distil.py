"""Statements worth remembering on their own: facts, decisions, preferences, plans, observations.

Few and right: a sentence counts only on a clear signal, and questions, hypotheses, quotations,
advice and fragments never do.  What is distilled is always the document's own text, in place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memctl.records import Distilled, SourceText
from memctl.understand import patterns as p
from memctl.understand.outline import Line
from memctl.understand.stopwords import words

MOST_DISTILLED = 200
_SHORTEST, _LONGEST = 10, 320
_FEWEST_WORDS = 3
_STATED_IMPORTANCE = {
    "important_fact": 0.85, "decision": 0.75, "fact": 0.6, "plan": 0.55, "preference": 0.6,
    "observation": 0.5,
}  # fmt: skip

_MARKER = re.compile(r"(?:[-*+•‣◦]\s+|\d{1,3}[.)]\s+|\[[ xX]?\]\s+|[*_]{1,2}(?=\w))+")
_WORD = re.compile(r"[a-zà-ÿ]+")
_TAIL = re.compile(r"[\s\U0001f000-\U0001faff\u2600-\u27bf\ufe0f\u200d*_]+$")
_MACHINES = words("assistant ai bot system chatgpt claude copilot gemini tool model")

_SIGNALS = words(
    """remember reminder forget important attention warning critical note fyi record fact decision
    decided agreed resolved todo action next plan lesson lessons learned learnt til observation
    finding preference opted voted elected settled chose chosen picked went going dropping
    switching cancelling canceling let's lets prefer prefers rather love loves like hate hates
    dislike dislikes adore adores enjoy loathe detest stand bear eat drink care favourite
    favorite fan will ll shall gonna flying moving visiting meeting travelling traveling
    leaving starting getting presenting launching hosting releasing selling buying closing
    opening organising organizing planning intend intending aim aiming scheduled noticed
    realised realized found observed discovered measured concluded showed shows revealed
    confirmed demonstrated suggests tests test name allergic intolerant vegetarian vegan
    diabetic coeliac celiac lactose gluten handed blind pregnant married divorced widowed
    retired engaged originally based old leave live lives lived work works worked grew born
    moved study studied graduated raised majored own sons son daughter daughters children kids
    sister sisters brother brothers siblings dog dogs cat cats room cousin cousins twins
    started got promoted hired diagnosed accepted wife husband partner girlfriend boyfriend
    mother mum mom father dad parents grandmother grandfather gran aunt uncle boss manager
    flatmate roommate neighbour neighbor landlord doctor dentist teacher coach called named
    birthday anniversary wedding due rent salary budget price deposit fee cost costs quoted
    invoice loan mortgage repair offer deadline ends end starts start begins expires opens
    closes takes closed address phone number email flight blood account iban colour color size
    departure arrival merke wichtig entscheidung aufgabe importante recuerda décision decisión
    retenir am m have holding booked key deal lawyer student nurse engineer designer developer
    from"""
)


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
            if len(found) == MOST_DISTILLED:
                break
    return tuple(found)


def _statement(text: str, line: Line) -> Distilled | None:
    """The statement that a sentence makes, if it is worth remembering."""
    if not _SHORTEST <= line.end - line.start <= _LONGEST + 40 or line.kind == "heading":
        return None
    if line.speaker and line.speaker.lower() in _MACHINES:
        return None
    sentence = text[line.start : line.end]
    if sentence[0] == "#" or _SIGNALS.isdisjoint(_WORD.findall(sentence.lower())):
        return None
    marker = _MARKER.match(sentence)
    skipped = marker.end() if marker else 0
    finding = _find(sentence[skipped:], line)
    if finding is None:
        return None
    start = line.start + skipped + finding.skipped
    end = line.start + len(_TAIL.sub("", sentence))
    return _distilled(text, start, end, finding, line) if end - start >= _SHORTEST else None


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


def _find(sentence: str, line: Line) -> _Finding | None:
    if p.QUESTION.search(sentence):
        return None
    finding = _labelled(sentence) or _told(sentence)
    if finding:
        return None if _is_noise(sentence[finding.skipped :]) else finding
    if _speaks_against(sentence):
        return None
    return next(_matching(sentence, line), None)


def _labelled(sentence: str) -> _Finding | None:
    """ "Decision: oak worktops" is a decision whatever follows."""
    label = p.LABEL.match(sentence)
    if not label:
        return None
    name = label["label"].lower().replace("’", "'")
    type_ = p.LABELLED.get(name)
    if type_ is None or len(sentence[label.end() :].split()) < _FEWEST_WORDS:
        return None
    if sentence[label.end("label") :].lstrip("*_")[:1] == "," and not _is_statement(
        sentence, label
    ):
        return None
    return _Finding(type_, f"trigger: {name}", 0.9, _STATED_IMPORTANCE[type_], label.end())


def _is_statement(sentence: str, label: re.Match[str]) -> bool:
    """Whether "decided, we stay" goes on with a clause of its own."""
    return bool(re.match(r"(?:we|I|it|the)(?:['’]\w+)? ", sentence[label.end() :]))


def _told(sentence: str) -> _Finding | None:
    """ "Remember that I ..." asks for it in so many words."""
    told = p.TOLD_TO_REMEMBER.match(sentence)
    if not told or len(sentence[told.end() :].split()) < _FEWEST_WORDS:
        return None
    return _Finding("important_fact", "trigger: remember that", 0.85, 0.8, told.end())


def _is_noise(statement: str) -> bool:
    return bool(p.BOILERPLATE.search(statement) or p.QUOTED.match(statement))


def _speaks_against(sentence: str) -> bool:
    if len(sentence.split()) < _FEWEST_WORDS or sentence.endswith((":", "...", "…")):
        return True
    against = (p.HYPOTHETICAL, p.WOULD, p.NEGATED, p.BOILERPLATE, p.ADVICE, p.TECHNICAL)
    return bool(p.QUOTED.match(sentence)) or any(regex.search(sentence) for regex in against)


def _matching(sentence: str, line: Line) -> Iterator[_Finding]:
    anonymous = p.ABOUT_SOMEONE_UNNAMED.match(sentence) is not None
    if p.UNDER_DECISION_HEADING.search(line.heading) and p.WE_WILL.match(sentence):
        yield _Finding("decision", "pattern: we will, under a decision", 0.85, 0.7)
    for pattern in p.PATTERNS:
        if anonymous and pattern.name not in p.SELF_CONTAINED:
            continue
        if pattern.regex.search(sentence):
            reason = f"pattern: {pattern.name}"
            yield _Finding(pattern.type, reason, pattern.confidence, pattern.importance)
