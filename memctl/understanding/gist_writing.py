"""What a document is about, in one to three sentences taken from it or counted in it.

Prose: the sentences nearest to what the whole text speaks of, early ones first in doubt, none
saying what another says already (centroid, position, maximal marginal relevance).  Tables and
lists of values are described by their columns and their reach; a conversation by who speaks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import pairwise
from math import sqrt

from memctl.language.date_mentions import DateSpan
from memctl.language.term_analysis import terms
from memctl.records import Distilled, Segment, SourceText
from memctl.understanding.text_outline import Line, body_text

_SHORT = 280
_MAX_LENGTH = 420
_MAX_SENTENCES = 3
_SCORED = 400
_MAX_SHEETS = 5
_SENTENCE_LENGTHS = (25, 320)
_MARKER = re.compile(r"^(?:[-*+•>\s]+|#{1,6}\s+|\d{1,3}[.)]\s+|\[[ xX]\]\s+)+(?=\S)")
_ONLY_TAGS = re.compile(r"(?:#[^\W\d_][\w/-]*\s*)+|[-=*_~\s]+")
_HEADING = re.compile(r"#{1,6}\s")
_END_MARKS = tuple(".!?…:;,。！？｡")
_ENDED = re.compile(rf"[{''.join(_END_MARKS)}][\"'”’»)\]*_]*$")
_TITLE_LIKE = 90
_TELLING = ("decision", "important_fact", "fact", "plan", "observation")
_MAX_STATEMENTS = 2
_OF_ONE = re.compile(r"(?:I|my|mine|me)\b", re.IGNORECASE)
_FIELD = re.compile(r"(?:^|; )([^:;\n]{1,40}): ")
_DEFINITION = re.compile(
    r"^(?:export |public |async |pub |static )*(?:def|class|function|func|fn|struct|interface|type|"
    r"trait|enum|module|impl|sub|const)\s+([A-Za-z_]\w*)",
    re.MULTILINE,
)
_COMMENT = re.compile(r"^\s*(?:#(?!!)|//+|/\*+|\*|--|;+|%+|\"\"\"|''')\s*(.*?)(?:\*/|\"\"\")?\s*$")
_LICENCE = re.compile(r"copyright|licen[sc]e|all rights reserved|coding[:=]|@file|eslint", re.I)


def gist(
    source: SourceText,
    lines: Sequence[Line],
    phrases: Sequence[str] = (),
    dates: Sequence[DateSpan] = (),
    language: str = "",
    distilled: Sequence[Distilled] = (),
) -> str:
    """Return the gist of a document; empty only for one without text.

    Args:
        source: The document.
        lines: Its sentences.
        phrases: Its keywords, best first.
        dates: The dates in it.
        language: Its language, "" when unknown.
        distilled: What is worth remembering of it.
    """
    if _is_its_own(source, lines):
        return _plain(source.text)
    text = body_text(source, lines)
    if not source.segments and len(text) <= _SHORT:
        return _whole(source, lines)
    shares = _shares(source)
    if shares["table"] > 0.5:
        return _of_table(source, dates)
    if shares["code"] > 0.5:
        return _of_code(source)
    if len(text) <= _SHORT:
        return _whole(source, lines)
    if shares["turn"] > 0.5 or (not source.segments and _is_chat(lines)):
        return _of_conversation(source, lines, phrases, language, distilled)
    found = _of_prose(source, lines, language)
    return found or _of_values(source)


def _is_its_own(source: SourceText, lines: Sequence[Line]) -> bool:
    """Whether the document is one line of few sentences, not a heading or an item of a list."""
    text = source.text
    if source.segments or "\n" in text or not text[:1].isalpha():
        return False
    return len(text) <= (_MAX_LENGTH if len(lines) <= _MAX_SENTENCES else _SHORT)


def _plain(text: str) -> str:
    """The text in one line, cut at a word."""
    line = " ".join(text.split())
    if len(line) <= _MAX_LENGTH:
        return line
    return f"{line[:_MAX_LENGTH].rsplit(' ', 1)[0]}…"


def _whole(source: SourceText, lines: Sequence[Line]) -> str:
    """All that a short document says, without its headings where it says more than these."""
    below = [line for line in lines if not _is_heading(source.text, line)]
    said = [(line.start, _said(source.text, line)) for line in below]
    values = [part for part in source.segments if part.kind in ("table", "code")]
    said += [(part.start, source.text[part.start : part.end]) for part in values]
    whole = _joined(text for _, text in sorted(said) if not _ONLY_TAGS.fullmatch(text))
    return _plain(whole or body_text(source, lines) or source.text)


def _is_heading(text: str, line: Line) -> bool:
    return line.kind == "heading" or bool(_HEADING.match(text, line.start, line.end))


def _said(text: str, line: Line) -> str:
    return f"{line.speaker}: {_sentence(text, line)}" if line.speaker else _sentence(text, line)


def _joined(texts: Iterable[str]) -> str:
    """Sentences in one line; one that ends without a mark gets one before the next begins."""
    kept = [" ".join(text.split()) for text in texts if text.strip()]
    ended = [
        text if _is_ended(text) or after[:1].islower() else f"{text}."
        for text, after in pairwise(kept)
    ]
    return " ".join([*ended, *kept[-1:]])


def _is_ended(text: str) -> bool:
    return text.endswith(_END_MARKS) or _ENDED.search(text) is not None


def _shares(source: SourceText) -> Mapping[str, float]:
    """Which part of the text is of which kind."""
    lengths: Counter[str] = Counter({"table": 0, "code": 0, "turn": 0})
    for part in source.segments:
        lengths[part.kind] += part.end - part.start
    total = sum(lengths.values()) or 1
    return {kind: length / total for kind, length in lengths.items()}


def _is_chat(lines: Sequence[Line]) -> bool:
    return sum(line.speaker is not None for line in lines) > len(lines) / 2


# --- prose ----------------------------------------------------------------------------------------


def _of_prose(source: SourceText, lines: Sequence[Line], language: str) -> str:
    kept = [line for line in lines if not _is_heading(source.text, line)] or lines
    texts = [_sentence(source.text, line) for line in kept[:_SCORED]]
    candidates = [number for number, text in enumerate(texts) if _may_stand_alone(text)]
    full = [number for number in candidates if not _is_title_like(source.text, kept[number])]
    candidates = full or candidates
    if not candidates:
        return _plain(_joined(texts))
    chosen = _choose(texts, candidates, source.title, language)
    return _joined(texts[number] for number in sorted(chosen))


def _is_title_like(text: str, line: Line) -> bool:
    """Tell whether a sentence is a short paragraph of one line that does not end like one."""
    said = text[line.start : line.end]
    if len(said) > _TITLE_LIKE or "\n" in said or _is_ended(said):
        return False
    after = text[line.end : line.end + 3].replace("\r", "").lstrip(" ")
    before = text[max(0, line.start - 3) : line.start].replace("\r", "").rstrip(" ")
    return after[:2] in ("", "\n", "\n\n") and before[-2:] in ("", "\n", "\n\n")


def _sentence(text: str, line: Line) -> str:
    said = text[line.start : line.end]
    return " ".join((said if said[:1].isalpha() else _MARKER.sub("", said)).split())


def _may_stand_alone(text: str) -> bool:
    shortest, longest = _SENTENCE_LENGTHS
    return shortest <= len(text) <= longest and not text.endswith((":", "?")) and " " in text


def _choose(texts: list[str], candidates: list[int], title: str, language: str) -> list[int]:
    bags = {number: set(terms(texts[number], language)) for number in candidates}
    whole: dict[str, int] = {}
    for bag in bags.values():
        for term in bag:
            whole[term] = whole.get(term, 0) + 1
    for term in terms(title, language):
        whole[term] = whole.get(term, 0) + 2
    norm = sqrt(sum(count * count for count in whole.values()))
    scores = {number: _score(bags[number], whole, norm, number) for number in candidates}
    least = 0.0
    repeated = dict.fromkeys(candidates, 0.0)
    chosen: list[int] = []
    length = 0
    while len(chosen) < _MAX_SENTENCES:
        best = _best(scores, repeated, least)
        if best is None or (chosen and length + len(texts[best]) > _MAX_LENGTH):
            break
        chosen.append(best)
        length += len(texts[best])
        least = 0.35 * max(scores.values())
        del repeated[best]
        for number, share in repeated.items():
            repeated[number] = max(share, _overlap(bags[number], bags[best]))
    return chosen


def _score(bag: Set[str], whole: Mapping[str, int], norm: float, position: int) -> float:
    """Likeness to the whole text, times a bonus for standing early."""
    if not bag:
        return 0.0
    likeness = sum(map(whole.__getitem__, bag)) / (sqrt(len(bag)) * norm)
    return likeness * (1.0 + 0.8 / (1 + position / 3))


def _best(scores: Mapping[int, float], repeated: Mapping[int, float], least: float) -> int | None:
    """The best sentence left that does not say again what a chosen one says.

    Args:
        scores: Of all sentences.
        repeated: How much of each one that is left a chosen one says.
        least: What one has to count for at least.
    """
    best, best_score = None, 0.0
    for number, share in repeated.items():
        value = scores[number] * (1 - share)
        if value > best_score and share < 0.6:
            best, best_score = number, value
    return best if best_score >= least else None


def _overlap(some: Set[str], other: Set[str]) -> float:
    if not some or not other:
        return 0.0
    return len(some & other) / min(len(some), len(other))


# --- everything else ------------------------------------------------------------------------------


def _of_conversation(
    source: SourceText,
    lines: Sequence[Line],
    phrases: Sequence[str],
    language: str,
    distilled: Sequence[Distilled],
) -> str:
    """Who speaks, and what matters most of it; else about what, and the most telling turn."""
    speakers = Counter(line.speaker for line in lines if line.speaker)
    names = _listed([name for name, _ in speakers.most_common(4)], more=len(speakers) > 4)
    statements = _statements(distilled)
    if statements:
        return f"{names}: {_joined(statements)}"
    spoken = {word for name in speakers for word in name.lower().split()}
    phrases = [phrase for phrase in phrases if spoken.isdisjoint(phrase.lower().split())]
    about = f" about {_listed(phrases[:3])}" if phrases else ""
    opening = f"{names} talk{'s' if len(speakers) == 1 else ''}{about}."
    said = [line for line in lines[:_SCORED] if _may_stand_alone(_sentence(source.text, line))]
    if not said:
        return opening
    texts = [_sentence(source.text, line) for line in said]
    best = _choose(texts, list(range(len(texts))), source.title, language)[:1]
    quotes = (f"{said[number].speaker}: {texts[number]}" for number in best if said[number].speaker)
    return " ".join([opening, *quotes])


def _statements(distilled: Sequence[Distilled]) -> list[str]:
    """The weightiest statements, of different types where there are, in the order of the text."""
    telling = [one for one in distilled if one.type in _TELLING and not _OF_ONE.match(one.text)]
    by_weight = sorted(telling, key=lambda one: (_TELLING.index(one.type), one.start))
    first = list({one.type: one for one in reversed(by_weight)}.values())
    first.sort(key=by_weight.index)
    rest = [one for one in by_weight if one not in first]
    strong = [one for one in (*first[:1], *first[1:2], *rest) if one.end - one.start < 200]
    chosen = strong[:_MAX_STATEMENTS]
    return [one.text for one in sorted(chosen, key=lambda one: one.start)]


def _of_table(source: SourceText, dates: Sequence[DateSpan]) -> str:
    """How many rows of what, and from when to when."""
    sheets = _sheets(source)
    if len(sheets) > 1:
        return _of_sheets(source, sheets)
    rows = _rows(source.text, _tables(source))
    columns = _columns(source)
    of_what = f" of {source.title}" if source.title else ""
    part = f", part {source.part + 1}" if source.part else ""
    fields = f": {_listed(columns[:8], more=len(columns) > 8, last=', ')}" if columns else ""
    days = sorted(span.iso for span in dates if len(span.iso) == 10)
    reach = f", from {days[0]} to {days[-1]}" if len(set(days)) > 1 else ""
    return f"{rows} row{'s' if rows != 1 else ''}{of_what}{part}{fields}{reach}."


def _of_sheets(source: SourceText, sheets: Mapping[str, Sequence[Segment]]) -> str:
    """How many rows of what each of several tables has."""
    parts = []
    for heading, tables in [*sheets.items()][:_MAX_SHEETS]:
        rows = _rows(source.text, tables)
        columns = _fields(source.text, tables[0])
        fields = f" of {_listed(columns[:6], more=len(columns) > 6, last=', ')}" if columns else ""
        name = heading.rpartition(" > ")[2] or source.title
        parts.append(f"{name}: {rows} row{'s' if rows != 1 else ''}{fields}")
    more = len(sheets) - len(parts)
    return f"{'; '.join(parts)}{f'; {more} more' if more > 0 else ''}."


def _sheets(source: SourceText) -> Mapping[str, Sequence[Segment]]:
    """The table segments by the heading they stand under."""
    found: dict[str, list[Segment]] = {}
    for part in _tables(source):
        found.setdefault(part.heading, []).append(part)
    return found


def _tables(source: SourceText) -> list[Segment]:
    return [part for part in source.segments if part.kind == "table"]


def _rows(text: str, tables: Iterable[Segment]) -> int:
    return sum(1 + text.count("\n", part.start, part.end) for part in tables)


def _columns(source: SourceText) -> list[str]:
    named = source.metadata.get("columns")
    if isinstance(named, Iterable) and not isinstance(named, str):
        return [str(name) for name in named]
    tables = _tables(source)
    return _fields(source.text, tables[0]) if tables else []


def _fields(text: str, table: Segment) -> list[str]:
    """The names of a table's columns, as its first row tells them."""
    first = text[table.start : table.end].partition("\n")[0][:2000]
    if first.lstrip().startswith("|"):
        return [cell.strip() for cell in first.strip().strip("|").split("|") if cell.strip()]
    return list(dict.fromkeys(_FIELD.findall(first)))


def _of_code(source: SourceText) -> str:
    """What its first comment says, and what it defines."""
    text = source.text[:50_000]
    names = list(dict.fromkeys(_DEFINITION.findall(text)))
    defined = f"Defines {_listed(names[:6], more=len(names) > 6)}." if names else ""
    said = _first_comment(text)
    return " ".join(filter(None, (said, defined))) or _plain(source.text[:_SHORT])


def _first_comment(text: str) -> str:
    words: list[str] = []
    for line in text.split("\n", 40)[:40]:
        found = _COMMENT.match(line)
        said = found.group(1) if found else ""
        if said and not _LICENCE.search(said):
            words.append(said)
        elif words:
            break
    return _plain(" ".join(words))[:_SHORT] if len(" ".join(words)) > 15 else ""


def _of_values(source: SourceText) -> str:
    parts = [part for part in source.segments if part.kind != "properties"] or source.segments
    values = [source.text[part.start : part.end] for part in parts[:12]]
    return _plain("; ".join(" ".join(value.split()) for value in values) or source.text)


def _listed(names: Sequence[str], *, more: bool = False, last: str = " and ") -> str:
    if more:
        return f"{', '.join(names)} and others" if last != ", " else f"{', '.join(names)}, ..."
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])}{last}{names[-1]}"
