"""What a document is about, in one to three sentences taken from it or counted in it.

Prose: its title and the sentences that say most of it to the reading model, with the names and
words that stand most often in the rest of it, in at most 30 words.
Tables and lists of values are described by their columns and their reach.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from math import log1p

from memctl.language.date_mentions import DateSpan
from memctl.language.inline_tags import without_wikilinks
from memctl.language.term_analysis import terms
from memctl.language.word_lists import month_numbers, weekday_numbers
from memctl.records import Segment, SegmentKind, SourceText
from memctl.understanding.sentence_reading import (
    ReadLine,
    begins_with_pronoun,
    join_sentences,
    most_telling,
)
from memctl.understanding.text_outline import Line, body_text

_SHORT = 280
_MAX_LENGTH = 420
_MAX_SENTENCES = 2
_MAX_WORDS = 30
_WORDS_OF_REST = 9
"""Of these, for the names and words of what the sentences leave out."""
_SENTENCES_TRIED = 6
_LONGEST_NAME = 4
"""Words of a name of that kind."""
_MAX_SHEETS = 5
_MARKER = re.compile(r"^(?:[-*+•>\s]+|#{1,6}\s+|\d{1,3}[.)]\s+|\[[ xX]\]\s+)+(?=\S)")
_ONLY_TAGS = re.compile(r"(?:#[^\W\d_][\w/-]*\s*)+|[-=*_~\s]+")
_HEADING = re.compile(r"#{1,6}\s")
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
    read: Sequence[ReadLine],
    dates: Sequence[DateSpan],
    names: Sequence[str],
    language: str,
) -> str:
    """Return the gist of a document; empty only for one without text.

    Args:
        source: The document.
        lines: Its sentences.
        read: Those that the reading model has read.
        dates: The dates in it.
        names: Names and phrases that stand in it.
        language: In which it is written.
    """
    if _is_its_own_gist(source, lines):
        return _plain(source.text)
    if _share(source, "table") > 0.5:
        return _of_table(source, dates)
    if _share(source, "code") > 0.5:
        return _of_code(source)
    found = _of_sentences(source, read, names, language)
    if not found and len(body_text(source, lines)) <= _SHORT:
        return _whole(source, lines)
    return found or _first_sentences(source, lines) or _of_values(source)


def _is_its_own_gist(source: SourceText, lines: Sequence[Line]) -> bool:
    """Return whether the document is one line of few sentences, no heading or list item."""
    text = source.text
    if source.segments or "\n" in text or not text[:1].isalpha():
        return False
    return len(text) <= (_MAX_LENGTH if len(lines) <= _MAX_SENTENCES else _SHORT)


def _plain(text: str) -> str:
    """The text in one line, cut at a word."""
    line = " ".join(without_wikilinks(text).split())
    if len(line) <= _MAX_LENGTH:
        return line
    return f"{line[:_MAX_LENGTH].rsplit(' ', 1)[0]}…"


def _whole(source: SourceText, lines: Sequence[Line]) -> str:
    """All that a short document says, without its headings where it says more than these."""
    below = [line for line in lines if not _is_heading(source.text, line)]
    said = [(line.start, _line_text(source.text, line)) for line in below]
    values = [part for part in source.segments if part.kind in ("table", "code")]
    said += [(part.start, source.text[part.start : part.end]) for part in values]
    whole = _join(text for _, text in sorted(said) if not _ONLY_TAGS.fullmatch(text))
    return _plain(whole or body_text(source, lines) or source.text)


def _is_heading(text: str, line: Line) -> bool:
    return line.kind == "heading" or bool(_HEADING.match(text, line.start, line.end))


def _line_text(text: str, line: Line) -> str:
    return f"{line.speaker}: {_sentence(text, line)}" if line.speaker else _sentence(text, line)


def _join(texts: Iterable[str]) -> str:
    """Sentences in one line; one that ends without a mark gets one before the next begins."""
    kept = [" ".join(without_wikilinks(text).split()) for text in texts if text.strip()]
    return join_sentences(kept)


def _share(source: SourceText, kind: SegmentKind) -> float:
    """How much of the text is of a kind, 0 to 1."""
    total = sum(part.end - part.start for part in source.segments)
    own = sum(part.end - part.start for part in source.segments if part.kind == kind)
    return own / total if total else 0.0


# --- prose ----------------------------------------------------------------------------------------


def _of_sentences(
    source: SourceText, read: Sequence[ReadLine], names: Sequence[str], language: str
) -> str:
    """Return the title, the sentences that say most, and names of the rest in brackets."""
    title = source.title.split()
    left = _MAX_WORDS - len(title) - _WORDS_OF_REST
    telling = sorted(most_telling(read, len(source.text)), key=begins_with_pronoun)
    chosen: list[ReadLine] = []
    for item in telling[:_SENTENCES_TRIED]:
        length = len(item.text.split())
        if length <= left:
            chosen.append(item)
            left -= length
    chosen = chosen or telling[:1]
    if not chosen:
        return ""
    chosen.sort(key=lambda item: item.line.start)
    said = _join(item.text for item in chosen)
    is_titled = source.title and source.title.casefold() not in said.casefold()
    words = (f"{source.title}: {said}" if is_titled else said).split()
    if len(words) > _MAX_WORDS:
        return f"{' '.join(words[:_MAX_WORDS])}…"
    rest = _rest(" ".join([*title, said]), read, names, language, _MAX_WORDS - len(words))
    return " ".join(words) + (f" ({', '.join(rest)})" if rest else "")


def _rest(
    written: str, read: Sequence[ReadLine], names: Sequence[str], language: str, most_words: int
) -> list[str]:
    """Return names whose words stand most often in the sentences, and not in what is written."""
    counts = Counter(term for item in read for term in terms(item.text, language))
    seen = set(terms(written, language))
    terms_of = {name: terms(name, language) for name in names}

    def frequency(name: str) -> float:
        """Return how often the words of a name stand there, on average."""
        found = terms_of[name]
        return sum(log1p(counts[term]) for term in found) / len(found) if found else 0.0

    chosen: list[str] = []
    for name in sorted(names, key=frequency, reverse=True):
        length, found = len(name.split()), terms_of[name]
        if name.casefold() in weekday_numbers() or name.casefold() in month_numbers():
            continue  # says nothing of what was on it
        if found and seen.isdisjoint(found) and length <= min(most_words, _LONGEST_NAME):
            chosen.append(name)
            most_words -= length
            seen.update(found)
    return chosen


def _first_sentences(source: SourceText, lines: Sequence[Line]) -> str:
    """Return how a text begins, its headings left out."""
    texts = [_sentence(source.text, line) for line in lines if not _is_heading(source.text, line)]
    return _plain(_join(text for text in texts[:_MAX_SENTENCES] if not text.endswith(":")))


def _sentence(text: str, line: Line) -> str:
    said = text[line.start : line.end]
    return " ".join((said if said[:1].isalpha() else _MARKER.sub("", said)).split())


# --- everything else ------------------------------------------------------------------------------


def _of_table(source: SourceText, dates: Sequence[DateSpan]) -> str:
    """How many rows of what, and from when to when."""
    sheets = _sheets(source)
    if len(sheets) > 1:
        return _of_sheets(source, sheets)
    rows = _rows(source.text, _tables(source))
    columns = _columns(source)
    of_what = f" of {source.title}" if source.title else ""
    part = f", part {source.part + 1}" if source.part else ""
    fields = f": {_list_names(columns[:8], more=len(columns) > 8, last=', ')}" if columns else ""
    days = sorted(span.iso for span in dates if span.day)
    reach = f", from {days[0]} to {days[-1]}" if len(set(days)) > 1 else ""
    return f"{rows} row{'s' if rows != 1 else ''}{of_what}{part}{fields}{reach}."


def _of_sheets(source: SourceText, sheets: Mapping[str, Sequence[Segment]]) -> str:
    """How many rows of what each of several tables has."""
    parts = []
    for heading, tables in [*sheets.items()][:_MAX_SHEETS]:
        rows = _rows(source.text, tables)
        columns = _fields(source.text, tables[0])
        fields = (
            f" of {_list_names(columns[:6], more=len(columns) > 6, last=', ')}" if columns else ""
        )
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


def _rows(text: str, tables: Sequence[Segment]) -> int:
    """Return how many rows groups of rows have: as many as lines, unless a row takes several."""
    count = rows = lines = 0
    for part, after in zip_longest(tables, tables[1:]):
        before, lines = (rows, lines), 1 + text.count("\n", part.start, part.end)
        if after is not None and after.row and part.row and after.row > part.row:
            rows = min(lines, after.row - part.row)
        else:  # the last one of a table has rows of the length of those before it
            rows = max(1, lines * before[0] // before[1]) if 0 < before[0] < before[1] else lines
        count += rows
    return count


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
    defined = f"Defines {_list_names(names[:6], more=len(names) > 6)}." if names else ""
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


def _list_names(names: Sequence[str], *, more: bool = False, last: str = " and ") -> str:
    if more:
        return f"{', '.join(names)} and others" if last != ", " else f"{', '.join(names)}, ..."
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])}{last}{names[-1]}"
