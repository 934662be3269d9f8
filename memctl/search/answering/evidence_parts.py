"""The parts of a hit that can be quoted, sentences, rows and entries of data, and their forms."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime
from functools import lru_cache
from itertools import pairwise
from pathlib import PurePath

from msgspec import Struct

from memctl.language.date_mentions import date_spans
from memctl.language.sentence_splitting import has_empty_line, split_sentences
from memctl.language.sentence_values import values
from memctl.language.word_lists import (
    all_languages,
    any_of,
    month_numbers,
)
from memctl.literals import DATED_BY_FILE, NOT_IN_FORCE
from memctl.patterns import lazy_regex
from memctl.records import Hit, source_name
from memctl.understanding.text_outline import ROLES, speaker_of

PATH_SEPARATOR = " > "
"""Between the keys above a value of structured data, and the value."""
_LONGEST_QUOTE = 400
"""Characters; a longer sentence is cut between words."""
_SHORTEST_QUOTE = 12
_MAX_PARTS = 60
DIGIT = lazy_regex(r"\d")
_LINE = lazy_regex(r"\S[^\n]*")
_ROW = lazy_regex(r"^[^;:.]{1,60}: [^;]*; [^;:]{1,60}: ")
_ENTRY = lazy_regex(r"[^\s:;][^:;\n]{0,60}:[ \t]+\S")
_ITEM = lazy_regex(r"-[ \t]+\S")
_TITLE = lazy_regex(r"[^\W\d][^\d:;,.!?\n]{0,60}\w")
_LABEL = lazy_regex(r"[^\s:;][^:;\n]{0,60}:$")
_NO_WORDS = lazy_regex(
    r"[-=~^_*+|:.#]{3,}"
    r"|\.\. (?:code-block|highlight|only|parsed-literal)::[ \t]*[\w-]*"
)
"""A line under a title or between rows, or one that begins an example in reStructuredText."""
_COLUMNS = lazy_regex(r"[^|\n]*\S[ \t]+\|[^|\n]*\|[^\n]*")
"""A row with at least three columns, as plain text draws tables."""
_REPLY = lazy_regex(
    r"(?:yes|yep|no|nope|ja|nein|doch|oui|non|sí|si|sì|sim|não|nee)\b[^.!?\n]{0,12}[.!]",
    re.IGNORECASE,
)
""""Yes." or "No, sorry.", which says something together with what follows."""
_HEADER_NAME = r"(?:From|To|Cc|Date|Sent|Subject|Von|An|Gesendet|Betreff|De|À|Envoyé|Objet)"
_MAIL_HEADER = lazy_regex(
    rf"^(?P<first>{_HEADER_NAME}): [^\n]*(?:\n(?!(?P=first):){_HEADER_NAME}: [^\n]*)+",
    re.IGNORECASE | re.MULTILINE,
)
"""Lines of two names; rows of a table all begin with the same one."""
LIST_MARK = r"(?:[-*+•‣◦]|\d{1,3}[.)])"
"""A pattern of what an item of a list begins with."""
SPEAKER = r"[^\W\d_][\w.'’-]*(?: [\w.'’-]+){0,2}:"
_TIME = r"\[(?=[^\]\n]*\d)[^\]\n]{4,40}\]"
TIME_AND_DASH = r"\d[\d/.,: -]{6,24}(?:[ap]m)?\s+-"
_SAID_AT = lazy_regex(rf"^{_TIME}\s+(?:(?P<speaker>{SPEAKER})\s+)?")
_SAID_BY = lazy_regex(rf"{SPEAKER}\s+")
_CLOCK = lazy_regex(r"\d\d?[:.]\d\d(?:[:.]\d\d)?(?:\s?[ap]m)?", re.IGNORECASE)
_TIME_BEFORE_SPEAKER = lazy_regex(rf"(?P<time>{_TIME}|{TIME_AND_DASH})\s+(?={SPEAKER}\s)")
_FIRST_PERSON = lazy_regex(r"\b(?:I|I'm|I've|I'll|my|me|mine|ich|mein|je|mon|yo|mi)\b")
Span = tuple[int, int]
TURN_LABEL = lazy_regex(
    rf"(?:\[[^\]\n]{{4,40}}\]\s+|{TIME_AND_DASH}\s+)?"
    rf"(?:[-*+]\s+)?(?:\*\*|__)?{SPEAKER}(?:\*\*|__)?\s+"
)
"""Who says a turn of a conversation, and when."""


def is_mail_header(text: str) -> bool:
    """Return whether a text is the header lines of a mail and nothing else."""
    return _MAIL_HEADER.fullmatch(text.strip()) is not None


class Part(Struct, frozen=True):
    """``hit.text[start:end]``."""

    start: int
    end: int
    text: str
    path: str
    """The keys above a value of structured data, which alone doesn't say what it is about."""
    is_title: bool
    """Whether it is a line above others, or the header of a mail."""
    is_fragment: bool
    """Whether it is too short to say anything."""

    @property
    def text_with_path(self) -> str:
        """The text below its keys."""
        return f"{self.path}{PATH_SEPARATOR}{self.text}" if self.path else self.text


def split_parts(hit: Hit) -> list[Part]:
    """Return the parts of a hit in reading order."""
    is_data = _are_entries(hit.text)
    headers = [found.span() for found in _MAIL_HEADER.finditer(hit.text)]
    return [
        _part(hit, span, is_data=is_data, is_header=any(a <= span[0] < b for a, b in headers))
        for span in _without_times(hit, _spans(hit.text))
    ]


def _without_times(hit: Hit, spans: Iterable[Span]) -> Iterator[Span]:
    """Leave out when a turn was said: no value that it states, nor a day that it speaks of."""
    begin = words_of_turn_start(hit)
    for start, end in spans:
        yield (begin if start < begin < end else start), end


def words_of_turn_start(hit: Hit) -> int:
    """Return where a turn begins after the time at which it was said; 0 if none stands there."""
    label = _TIME_BEFORE_SPEAKER.match(hit.text) if hit.type == "turn" else None
    if label is None:
        return 0
    made, time = hit.created_at, label["time"]
    if _CLOCK.fullmatch(time.strip("[] -")):
        return label.end()
    has_its_day = {made.day, made.month} <= set(map(int, re.findall(r"\d+", time)))
    is_its_own = has_its_day or any(span.day == made.date() for span in date_spans(time))
    return label.end() if is_its_own else 0


def quotable_parts(parts: Sequence[Part]) -> list[int]:
    """Return the positions of the parts to quote: fragments only where there is nothing else."""
    whole = [place for place, part in enumerate(parts) if not part.is_fragment]
    return whole or list(range(len(parts)))


def _part(hit: Hit, span: Span, *, is_data: bool, is_header: bool) -> Part:
    start, end = span
    text = hit.text[start:end]
    return Part(
        start,
        end,
        text,
        path=hit.heading if is_data and not is_table_row(text) else "",
        is_title=is_header or (not is_data and _is_title(hit, start, end)),
        is_fragment=(not is_data and end - start < _SHORTEST_QUOTE and not DIGIT.search(text))
        or not any(map(str.isalnum, text)),
    )


def _is_title(hit: Hit, start: int, end: int) -> bool:
    """Return whether a line stands above others; notes are written without full stops, too."""
    line = hit.text[start:end]
    begins = start == 0 or hit.text[:start].endswith("\n\n")
    return (
        hit.type == "passage"
        and begins
        and hit.text[end : end + 1] == "\n"
        and _TITLE.fullmatch(line) is not None
    )


def _spans(text: str) -> list[Span]:
    parts = [
        part
        for sentence in split_sentences(text)
        if not text.startswith("#", sentence[0])
        for start, end in _entries(text, sentence)
        for part in _cut_lines(text, start, end)
        if not _NO_WORDS.fullmatch(text, *part)
    ]
    return _with_replies(text, parts)[:_MAX_PARTS]


def _with_replies(text: str, parts: Sequence[Span]) -> list[Span]:
    """Join a mere yes or no with the sentence after it in its paragraph."""
    joined: list[Span] = []
    for start, end in parts:
        before = joined[-1] if joined else (0, 0)
        if _REPLY.fullmatch(text, *before) and not has_empty_line(text[before[1] : start]):
            joined[-1] = before[0], end
        else:
            joined.append((start, end))
    return joined


def _entries(text: str, sentence: Span) -> list[Span]:
    """Return the lines of rows and entries, which together look like one wrapped sentence."""
    lines = [line.span() for line in _LINE.finditer(text, *sentence)]
    are_entries = all(_ENTRY.match(text[start:end]) for start, end in lines)
    are_rows = any(_COLUMNS.fullmatch(text, start, end) for start, end in lines)
    return lines if are_entries or are_rows else [sentence]


def _cut_lines(text: str, start: int, end: int) -> Iterator[Span]:
    """Cut what has no sentences, such as a table row, at line ends or else between words."""
    while end - start > _LONGEST_QUOTE:
        at = max(text.rfind("\n", start, start + _LONGEST_QUOTE), start)
        if at == start:
            at = max(text.rfind(" ", start, start + _LONGEST_QUOTE), start)
        at = at if at > start else start + _LONGEST_QUOTE
        yield start, at
        start = at + len(text[at:end]) - len(text[at:end].lstrip())
    if start < end:
        yield start, end


CLOSING = "\"'”’)*_"


def is_question(sentence: str) -> bool:
    """Return whether a sentence asks something."""
    return sentence.rstrip(CLOSING).endswith(("?", "？", "؟"))


def is_table_row(sentence: str) -> bool:
    """Return whether it is a row of a table, with labels or between bars: ``one | two | three``."""
    if _ROW.match(sentence):
        return True
    return "|" in sentence and _COLUMNS.fullmatch(sentence) is not None


def entry_label(sentence: str) -> str:
    """Return the label of a value, as in ``City: Rome``; "" where it has none."""
    return sentence.partition(":")[0] if _ENTRY.match(sentence) else ""


def column_heads(parts: Sequence[Part], place: int) -> str:
    """Return the first row of the drawn table that a row is of; "" if it is of none."""
    heads = ""
    for part in reversed(parts[: place + 1]):
        if _COLUMNS.fullmatch(part.text):
            heads = part.text
        elif not part.is_fragment:
            break
    return heads


def speech_start(sentence: str) -> int:
    """Return where the words of a chat line begin, after the time and the speaker.

    A speaker who speaks of himself is kept: without the name, the words would mean nothing.
    """
    label = _SAID_AT.match(sentence)
    if label is None or label.end() == len(sentence):
        return 0
    is_first_person = _FIRST_PERSON.search(sentence, label.end()) is not None
    return label.start("speaker") if label["speaker"] and is_first_person else label.end()


def turn_speech_start(turn: str) -> int:
    """Return where the words of a turn without its time begin, as ``speech_start`` does."""
    label = _SAID_BY.match(turn)
    if label is None or label.end() == len(turn) or _FIRST_PERSON.search(turn, label.end()):
        return 0
    return label.end()


def speaker_of_himself(turn: str, sentence: str) -> str:
    """Return who says a further sentence of a turn, where it speaks of him; "" for any other.

    "my dentist is Dr Quill" would be read as the dentist of whoever asks.
    """
    speaker = speaker_of_turn(turn)
    if speaker in sentence:
        return ""
    return speaker if is_first_person(sentence) else ""


def speaker_of_turn(turn: str) -> str:
    """Return the name of who says a turn; "" where only the role is given, or nobody."""
    said_at = _TIME_BEFORE_SPEAKER.match(turn)
    speaker = speaker_of(turn[said_at.end() :] if said_at else turn) or ""
    return "" if speaker.casefold() in ROLES else speaker


def is_first_person(sentence: str) -> bool:
    """Return whether who says a sentence speaks of himself: "My dentist is Dr Quill"."""
    ways_to_write = sentence, sentence[:1].lower() + sentence[1:]
    return any(map(_FIRST_PERSON.search, ways_to_write))


def _are_entries(text: str) -> bool:
    """Return whether a text is nothing but values with labels, like data under a key."""
    lines = [line for line in text.splitlines() if line.strip()]
    forms = (_ENTRY, _ITEM, _LABEL)
    return bool(text) and all(any(form.match(line) for form in forms) for line in lines)


MONTHS = any_of(month_numbers())
WEEKDAYS = f"(?:{any_of(names[0] for each in all_languages() for names in each.weekdays)})s?"
DATE = (
    r"(?:1\d|20)\d\d-\d\d-\d\d|\d{1,2}[./]\d{1,2}[./]\d{2,4}"
    rf"|(?:{MONTHS})\.? \d{{1,2}}(?:st|nd|rd|th)?(?:,? (?:1\d|20)\d\d)?"
    rf"|\d{{1,2}}(?:st|nd|rd|th|\.)? (?:of )?(?:{MONTHS})(?:,? (?:1\d|20)\d\d)?"
    r"|(?:1\d|20)\d\d(?:-\d\d)?"
)
ABSOLUTE_DATE = lazy_regex(rf"\b(?:{DATE})\b", re.IGNORECASE)
_VALUE = lazy_regex(rf"\b(?:{DATE}|\d[\d.,:/]*\d|\d|{MONTHS}|{WEEKDAYS})\b", re.IGNORECASE)
_RELATIVE = lazy_regex(
    rf"\b(?:{WEEKDAYS}|today|tomorrow|yesterday|tonight|weekend|now"
    r"|(?:last|next|this) (?:week|month|year|night)|(?:days?|weeks?|months?|years?) ago"
    r"|heute|morgen|gestern|demain|aujourd'hui|hier|mañana|ayer|hoy)\b",
    re.IGNORECASE,
)


def is_said(hit: Hit) -> bool:
    """Return whether a hit was said or sent on the day that it is of."""
    return hit.session_id is not None or hit.turn is not None or hit.doc_type == "email"


_QUOTED_LINE = lazy_regex(r"^[ \t]*(?:[-*+]\s)?>", re.MULTILINE)
_WROTE = lazy_regex(r"\b(?:wrote|schrieb|écrit|escribió|scritto|schreef)\b[^\n]*:\s*$")


def is_quoted_reply(hit: Hit, start: int) -> bool:
    """Return whether a place in a message is in what it quotes of the one that it answers."""
    line = hit.text.rfind("\n", 0, start) + 1
    if not _QUOTED_LINE.match(hit.text, line):
        return False
    first = next(_QUOTED_LINE.finditer(hit.text)).start()
    above = hit.text[:first].strip()
    return bool(above) and (is_said(hit) or _WROTE.search(above) is not None)


def is_of_stated_day(hit: Hit) -> bool:
    """Return whether a heading, the title or the name of the file says of which day a hit is."""
    day = hit.created_at.date()
    places = (hit.heading, hit.title, source_name(hit.source))
    return any(span.day == day for place in places for span in date_spans(place))


def is_dated_by_file(hit: Hit) -> bool:
    """Return whether only the time at which a file was copied tells of which day a hit is."""
    return hit.metadata.get(DATED_BY_FILE) == hit.created_at.isoformat(timespec="seconds")


def has_unknown_age(hit: Hit) -> bool:
    """Return whether nothing tells when a hit was written, as of a calendar's entry without it."""
    is_entry = {"uid", "start"} <= hit.metadata.keys()
    return is_dated_by_file(hit) or (is_entry and "written" not in hit.metadata)


def written_at(hit: Hit) -> datetime:
    """Return when a hit was written: the entry of a calendar before the day that it is dated by."""
    written = hit.metadata.get("written")
    try:
        found = datetime.fromisoformat(written) if isinstance(written, str) else hit.created_at
    except ValueError:
        return hit.created_at
    return found if found.tzinfo else found.replace(tzinfo=UTC)


_TIME_WORDS = lazy_regex(rf"{MONTHS}|{WEEKDAYS}", re.IGNORECASE)


def is_time_word(word: str) -> bool:
    """Return whether a word is the name of a month or of a day of the week."""
    return _TIME_WORDS.fullmatch(word) is not None


def has_date(sentence: str) -> bool:
    """Return whether a sentence names an absolute date, unlike "last week"."""
    return ABSOLUTE_DATE.search(sentence) is not None


def has_relative_time(sentence: str) -> bool:
    """Return whether a sentence names a time relative to when it was said."""
    return _RELATIVE.search(sentence) is not None


@lru_cache(maxsize=256)
def stated_values(sentence: str) -> frozenset[str]:
    """Return the dates, days and numbers in a sentence, which are what an update changes."""
    return frozenset(" ".join(found.lower().split()) for found in _VALUE.findall(sentence))


def outside_values(sentence: str) -> list[str]:
    """Return what stands before, between and after the values of a sentence."""
    return _VALUE.split(sentence)


_VERSION = lazy_regex(
    r"^\W*(?:copy of|old|new|final|draft)\b"
    r"|(?<![^\W_])(?:v|ver|version|rev|revision)[\s._-]*(?P<number>\d{1,3})\W*$"
    r"|(?:\(\d{1,2}\)|(?<![^\W_])(?:final|updated|revised|new|draft|copy"
    r"|(?P<old>old|outdated|obsolete|superseded)))\W*$",
    re.IGNORECASE,
)
"""What tells the versions of a document apart in the names of their files."""
_IS_OLD = lazy_regex(r"[(\[](?:old|outdated|obsolete|superseded)[)\]]", re.IGNORECASE)
"""What says in the name of a file, whatever else it is called, that it is no longer in force."""
_LONGEST_NUMBER = 3
_WORD = lazy_regex(r"[^\W_]+")


def older_versions(hits: Iterable[Hit]) -> frozenset[str]:
    """Return the ids of documents of which hits have a later version, by the names of their files.

    The later one has the higher number or, where none has any, is of a later day.  "rules old" is
    older than "rules" at any rate, and "rules (old)" has a later version even if none is found;
    "Growing old" says nothing.
    """
    found = list(hits)
    old = {
        document
        for hit in found
        if (document := hit.document_id) and _IS_OLD.search(PurePath(source_name(hit.source)).stem)
    }
    families: dict[str, dict[str, tuple[bool, str, date, str]]] = {}
    for hit in found:
        name = PurePath(source_name(hit.source)).stem
        mark = _VERSION.search(name)
        bare = f"{name[: mark.start()]} {name[mark.end() :]}" if mark else name
        family = " ".join(_WORD.findall(bare.lower()))
        if family and hit.document_id:
            number = (mark["number"] or "") if mark else ""
            is_current = not (mark and mark["old"])
            rank = number.zfill(_LONGEST_NUMBER), hit.created_at.date(), mark[0] if mark else ""
            families.setdefault(family, {})[hit.document_id] = (is_current, *rank)
    return frozenset(old) | frozenset(
        document
        for versions in families.values()
        if any(mark for *_, mark in versions.values())
        for document, rank in versions.items()
        if rank[:3] < max(each[:3] for each in versions.values())
    )


_IS_NOT_IN_FORCE = lazy_regex(rf"\W*{NOT_IN_FORCE}", re.IGNORECASE)
_IS_DRAFT = lazy_regex(r"\W*(?:draft|entwurf|brouillon|borrador|bozza|concept)\b", re.IGNORECASE)
_SUPERSEDES = lazy_regex(
    r"^\W{0,6}(?:supersedes|replaces|obsoletes|ersetzt|remplace|reemplaza|sustituye(?: a)?)"
    r"\W{0,4}:\W{0,4}(?P<field>[^\n]{3,80})"
    r"|\b(?:supersedes|obsoletes) (?P<said>[^\n.;]{3,80})"
    r"|\b(?:this|these)(?: \w+)? replaces? (?P<this>[^\n.;]{3,80})",
    re.IGNORECASE | re.MULTILINE,
)
_TARGET_OF_LINK = lazy_regex(r"\]\([^)\n]*\)")
_BETWEEN_DOCUMENTS = lazy_regex(r"[,&]|\b(?:and|und|et|y)\b", re.IGNORECASE)
_BESIDE_A_NAME = frozenset(
    {"a", "an", "the", "my", "our", "your", "this", "that", "of", "from", "no", "nr", "old"}
)
_FEWEST_WORDS_OF_NAME = 2
_BEFORE_DAY_OF_DOCUMENT = lazy_regex(
    r"\b(?:notes?|e-?mails?|messages?|minutes|letters?|memos?|notiz|nachricht|protokoll|brief"
    r"|courriel|lettre|procès-verbal|nota|correo|carta|acta)(?: (?!that\b|who\b)[^\W\d_]+){0,3}?"
    r"(?: (?:of|from|dated|vom|du|del?|van))?(?: the)?\W*$",
    re.IGNORECASE,
)
"""What stands before a day that a document is named by: "my note to Ann of 3 May"."""


def superseded_documents(hits: Sequence[Hit]) -> frozenset[str]:
    """Return the ids of documents that are no longer in force, as they or others say.

    They say so of themselves ("Status: superseded"), or a hit of another document names them by
    title, file or, if only one is of it, day: "Supersedes: ADR 12", "this replaces my note of
    3 May".  The day in the name of a file doesn't give the number: "2026-01-05 ADR 12" isn't ADR 1.
    """
    found = {hit.document_id: hit for hit in hits if hit.document_id}
    retired = {
        document
        for document, hit in found.items()
        if _IS_NOT_IN_FORCE.match(str(hit.metadata.get("status") or ""))
    }
    names = {
        document: [name for name in (hit.title, source_name(hit.source)) if name]
        for document, hit in found.items()
    }
    for hit in hits:
        for said in _superseded_names(hit.text):
            others = [document for document in found if document != hit.document_id]
            retired.update(d for d in others if any(_is_named(name, said) for name in names[d]))
            of_day = [document for document in others if _is_of_day(found[document], said)]
            retired.update(of_day if len(of_day) == 1 else ())
    return frozenset(retired)


def is_draft(hit: Hit) -> bool:
    """Return whether the document of a hit is not in force yet, as it says itself."""
    return _IS_DRAFT.match(str(hit.metadata.get("status") or "")) is not None


def _superseded_names(text: str) -> Iterator[str]:
    for found in _SUPERSEDES.finditer(text):
        said = found["field"] or found["said"] or found["this"]
        yield from _BETWEEN_DOCUMENTS.split(_TARGET_OF_LINK.sub(" ", said))


def _is_named(name: str, said: str) -> bool:
    """Return whether a text has no words but those of the name of a document, numbers in place."""
    wanted = _words_of_name(said)
    if len(set(wanted)) < _FEWEST_WORDS_OF_NAME:
        return False
    has_day = _without_days(said) != said
    words = _words_of_name(name if has_day else _without_days(name))
    pairs = set(pairwise(words))
    return set(wanted) <= set(words) and all(
        (left, right) in pairs or (at == 0 and left.isdecimal() and (right, left) in pairs)
        for at, (left, right) in enumerate(pairwise(wanted))
        if right.isdecimal() or (at == 0 and left.isdecimal())
    )


def _without_days(name: str) -> str:
    """Return a name without the days in it; a mere year stays."""
    spaced = name.replace("_", " ")
    return ABSOLUTE_DATE.sub(lambda day: day[0] if day[0].isdecimal() else " ", spaced)


def _words_of_name(name: str) -> list[str]:
    """Return the words of the name of a document, and its numbers without leading zeros."""
    words = (word.lower().lstrip("0") for word in _WORD.findall(name))
    return [word for word in words if word and word not in _BESIDE_A_NAME]


def _is_of_day(hit: Hit, said: str) -> bool:
    """Return whether a text names a document by the day of a hit, perhaps without its year."""
    made = hit.created_at
    return not is_dated_by_file(hit) and any(
        reading[1:] == (made.month, made.day) and reading[0] in (None, made.year)
        for value in values(said)
        if value.kind == "date" and _BEFORE_DAY_OF_DOCUMENT.search(said[: value.start])
        for reading in value.readings
    )
