"""The form of a sentence: whether it states the thing asked for, is a row or an entry of data, is
said by someone."""

from __future__ import annotations

import re
from collections.abc import Sequence

from memctl.retrieve.question import Question
from memctl.understand.outline import speaker_of
from memctl.understand.terms import query_terms

_ASKS_WHAT_IS = re.compile(
    r"^\W*what(?:'s| is| was| are| were)\s+(?:the |our |my |your |their |its )?(.+)", re.IGNORECASE
)
_OF = re.compile(r"\s(?:of|for|in|at|on|from|with|to|by)\s", re.IGNORECASE)
_SAYS_IT = re.compile(r"\s(?:is|was|are|were|costs?|amounts? to)\s|:\s|\s=\s", re.IGNORECASE)
_ROW = re.compile(r"^[^;:.]{1,60}: [^;]*; [^;:]{1,60}: ")
_ENTRY = re.compile(r"[^\s:;][^:;\n]{0,60}:[ \t]+\S")
_ITEM = re.compile(r"-[ \t]+\S")
_LABEL = re.compile(r"[^\s:;][^:;\n]{0,60}:$")
_SAID_AT = re.compile(
    r"^\[(?=[^\]\n]*\d)[^\]\n]{4,40}\]\s+(?:(?P<speaker>[^\W\d_][\w.'’-]*(?: [\w.'’-]+){0,2}:)\s+)?"
)
_OF_ONESELF = re.compile(r"\b(?:I|I'm|I've|I'll|my|me|mine|ich|mein|je|mon|yo|mi)\b")


def states(question: Question, sentence: str, languages: Sequence[str]) -> bool:
    """Tell whether it has the form "THING ... is VALUE" for the thing that is asked for."""
    asked = _ASKS_WHAT_IS.match(question.text)
    said = _SAYS_IT.search(sentence)
    if asked is None or said is None:
        return False
    thing = query_terms(_OF.split(asked.group(1), maxsplit=1)[0], languages)
    if is_row(sentence):
        return _has_run(thing, [query_terms(part, languages) for part in _labels(sentence)])
    before = query_terms(sentence[: said.start()], languages)
    return bool(sentence[said.end() :].strip()) and _has_run(thing, [before])


def is_row(sentence: str) -> bool:
    """Tell whether it is a row of a table, written as "label: value; label: value"."""
    return _ROW.match(sentence) is not None


def is_entry(line: str) -> bool:
    """Tell whether it is one value of structured data, written as "label: value"."""
    return _ENTRY.match(line) is not None


def are_entries(text: str) -> bool:
    """Tell whether a text is nothing but values with their labels, as data under a key is."""
    lines = text.splitlines()
    return bool(lines) and all(
        is_entry(line) or _ITEM.match(line) or _LABEL.match(line) for line in lines if line.strip()
    )


def spoken_from(sentence: str) -> int:
    """Return where the words of a chat line begin, after the time and who says them.

    Who says them is kept where they speak of themselves: without the name that means nothing.
    """
    label = _SAID_AT.match(sentence)
    if label is None or label.end() == len(sentence):
        return 0
    speaks_of_oneself = _OF_ONESELF.search(sentence, label.end()) is not None
    return label.start("speaker") if label["speaker"] and speaks_of_oneself else label.end()


def said_by(turn: str) -> str:
    """Return who says a turn of a conversation, as it stands before the words; "" if nobody is
    named."""
    label = _SAID_AT.match(turn)
    return (label["speaker"] if label else speaker_of(turn)) or ""


def _labels(row: str) -> list[str]:
    return [part.partition(":")[0] for part in row.split(";")]


def _has_run(thing: Sequence[str], texts: Sequence[Sequence[str]]) -> bool:
    """Tell whether the terms stand next to each other, in order, in one of the texts."""
    size = len(thing)
    return size > 0 and any(
        list(text[at : at + size]) == list(thing)
        for text in texts
        for at in range(len(text) - size + 1)
    )
