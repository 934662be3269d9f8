"""What files state about themselves: titles, authors, dates and tags, and which to believe.

Most files carry a title that a program made of a file name, and an author that is a login.  Dates
become aware UTC datetimes; one without a zone is taken as UTC.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from email.utils import parsedate_to_datetime
from itertools import chain
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from memctl.language.date_mentions import ENTRY_DAY, leading_day, lone_day, month_and_day
from memctl.language.word_lists import any_of, month_numbers
from memctl.readers.file_names import clean_title, shorten
from memctl.records import Segment, SourceText

_TITLE_KEYS = ("title", "headline")
_DATE_KEYS = ("date", "created", "created_at", "published", "date_published", "datepublished",
              "published_at", "pubdate", "publishdate")  # fmt: skip
_AUTHOR_KEYS = ("author", "authors", "creator", "by")
_TAG_KEYS = ("tags", "tag", "keywords", "categories")
_OTHER_DESCRIPTIONS = ("aliases", "alias", "slug", "permalink", "layout", "lang", "language", "id",
                       "uid", "uuid", "draft", "publish", "modified", "updated", "lastmod",
                       "cssclass", "cssclasses", "status", "memctl", "memctl_sha256")  # fmt: skip
_DESCRIPTIONS = frozenset(
    (*_TITLE_KEYS, *_DATE_KEYS, *_AUTHOR_KEYS, *_TAG_KEYS, *_OTHER_DESCRIPTIONS)
)
_DAY_LINE = re.compile(
    r"^\W{0,4}(?:(?:(?:letter|invoice|meeting) )?(?:date|dated|sent|datum|fecha)\W{0,4}:"
    r"|(?:last )?(?:edited|updated|changed|revised|written|sent)(?: on)?:?)\W{0,4}"
    r"(?P<day>\w[^\n]{5,40})(?:$|, (?=[a-z]))",
    re.IGNORECASE | re.MULTILINE,
)
_OF_PLACE = re.compile(
    r"^[^\W\d_][^\W\d_]+(?:[ -][^\W\d_]+){0,3}, (?:(?:den|the|le|il|lì|the|op|dne) )?(?=\d)"
)
"""In a letter's head, before its day: ``Lübeck, den 14. März 2025``."""
_MONTH = any_of(month_numbers())
_ENTRY = re.compile(
    rf"""^[^\S\n]*(?P<item>[-*+>][^\S\n]+)?(?P<mark>\*\*|__)?
    {ENTRY_DAY}\.?
    (?:,?[ ](?P<year>(?:19|20)\d\d)\b)?
    (?(mark)[^\S\n]?[-–—:.,]?(?:\*\*|__)|(?:[^\S\n]?(?:[-–—:]|,(?=[ ]))|[^\S\n]{{2,}}|\t))
    (?![^\S\n]*[-–—]?[^\S\n]*[0-3]?\d(?:st|nd|rd|th|\.)?[ ](?:{_MONTH})\b)""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
"""A line of running notes that begins with a day, set off from what follows: ``3 Feb - rang Ann``.
What goes on with another day is a span of time."""
_YEAR = re.compile(r"(?<![\w.])(?<!\d-)(?:19|20)\d\d(?!\w|-\d|\.\d)")
_LONGEST_KEPT = timedelta(days=15 * 365)
"""Before a file was written, the earliest year in its title that may be that of its entries."""
_FEWEST_ENTRIES = 2
_KEPT_UP = timedelta(days=60)
"""A list of days is one of what happened, not of what is to come, if the newest is so recent."""
_LONGEST_PAUSE, _AFTER_STATED = timedelta(days=270), timedelta(days=270)
_BEGINNING = 1000
"""Characters in which a document says of which day it is."""
LINES_OF_HEAD = 5
"""Of a letter: who writes, and when."""
_MAX_DEPTH = 20


class DocumentProperties(Struct, frozen=True):
    """Properties of a document that have a place of their own, and those that have none."""

    title: str = ""
    authors: tuple[str, ...] = ()
    created_at: datetime | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    only_describe: bool = False
    """Whether they say what the document is but not what it is about."""


def document_properties(properties: Mapping[Any, Any]) -> DocumentProperties:
    """Sort the properties of a file, such as its front matter, by meaning."""
    known = {str(key).strip().lower(): value for key, value in properties.items()}
    used = (*_TITLE_KEYS, *_AUTHOR_KEYS, *_TAG_KEYS)
    return DocumentProperties(
        title=next((t for k in _TITLE_KEYS if (t := parse_title(known.get(k)))), ""),
        authors=next((a for k in _AUTHOR_KEYS if (a := parse_authors(known.get(k)))), ()),
        created_at=next((d for k in _DATE_KEYS if (d := parse_date(known.get(k)))), None),
        tags=tuple(dict.fromkeys(tag for k in _TAG_KEYS for tag in parse_tags(known.get(k)))),
        metadata={
            str(key): to_json_value(value)
            for key, value in properties.items()
            if str(key).strip().lower() not in used
        },
        only_describe=known.keys() <= _DESCRIPTIONS,
    )


def stated_day(text: str) -> datetime | None:
    """Return the day that the beginning of a document says it is of.

    By a line such as ``Date: 3 May 2026``, or of nothing but a day, as a letter has it in its head.
    """
    found = (leading_day(line["day"]) for line in _DAY_LINE.finditer(text, 0, _BEGINNING))
    if day := next(filter(None, found), None):
        return day
    lines = [_OF_PLACE.sub("", line) for line in text[:_BEGINNING].splitlines()]
    days = [(number, day) for number, line in enumerate(lines) if (day := lone_day(line))]
    if len(days) != 1 or days[0][0] >= LINES_OF_HEAD:  # a diary has more of them
        return None
    number, day = days[0]
    return None if "".join(lines[number + 1 : number + 2]).strip() else day


def with_entry_days(
    text: SourceText, stated: datetime | None, modified: datetime | None, name: str = ""
) -> SourceText:
    """Return a text of which each entry of running notes has the day that it begins with.

    A day without a year is the latest one by which the next entry, or the text, was written.

    Args:
        text: A source's, or a part of it.
        stated: The day that it says it is of.
        modified: When its file was written last.
        name: Its file's.
    """
    by = [each for each in (stated and stated + _AFTER_STATED, modified) if each]
    if modified and (named := _end_of_year(text, name)) and modified - named < _LONGEST_KEPT:
        by.append(named)
    if not by:
        return text
    entries = [
        (number, entry)
        for number, segment in enumerate(text.segments)
        if segment.kind == "prose"
        for entry in _ENTRY.finditer(text.text, segment.start, segment.end)
        if segment.said_at is None or entry["year"]
    ]
    days = _days_of([entry for _, entry in entries], min(by).date())
    if not days:
        return text
    starts: dict[int, list[tuple[int, datetime]]] = {}
    for (number, entry), day in zip(entries, days, strict=True):
        moment = datetime.combine(day, time(), UTC)
        starts.setdefault(number, []).append((entry.start(), moment))
    segments = chain.from_iterable(
        _split(segment, starts[number], text.text) if number in starts else (segment,)
        for number, segment in enumerate(text.segments)
    )
    return replace(text, segments=tuple(segments))


def _end_of_year(text: SourceText, name: str) -> datetime | None:
    """Return the last day of the only year in the title, the first line and the file's name."""
    first = text.text.lstrip()[:200].partition("\n")[0]
    years = set(_YEAR.findall(f"{text.title}\n{first}\n{name.replace('_', ' ')}"))
    return datetime(int(years.pop()), 12, 31, tzinfo=UTC) if len(years) == 1 else None


def _days_of(entries: Sequence[re.Match[str]], written: date) -> list[date]:
    """Return the days of entries that go back in time from one end to the other; else none."""
    if len(entries) < _FEWEST_ENTRIES:
        return []
    newest_last = _in_order(entries, written)
    newest_first = _in_order(entries[::-1], written)[::-1]
    found = max(filter(None, (newest_last, newest_first)), key=min, default=[])
    may_be_plan = any(entry["item"] for entry in entries)
    return [] if may_be_plan and found and written - max(found) > _KEPT_UP else found


def _in_order(entries: Sequence[re.Match[str]], written: date) -> list[date]:
    """Return the days of entries, the oldest first; none if they are far apart.

    What follows the last one that states its year goes on from there; what stands before it, or
    all where none does, goes back from when the text was written.
    """
    with_year = [number for number, entry in enumerate(entries) if entry["year"]]
    last = with_year[-1] + 1 if with_year else len(entries)
    until = _following(entries[:last][::-1], written, is_later=False)[::-1]
    if not until:
        return []
    after = _following(entries[last:], until[-1], is_later=True)
    found = [*until, *after]
    return found if len(found) == len(entries) and found[-1] <= written else []


def _following(entries: Sequence[re.Match[str]], near: date, *, is_later: bool) -> list[date]:
    """Return the days of entries, each the nearest to the one before; none if far apart."""
    found: list[date] = []
    for entry in entries:
        day = _day_of(entry, near, is_later=is_later)
        is_after_entry = is_later or bool(found)
        if day is None or (is_after_entry and abs(near - day) > _LONGEST_PAUSE):
            return []
        found.append(day)
        near = day
    return found


def _day_of(entry: re.Match[str], near: date, *, is_later: bool) -> date | None:
    """Return the day of an entry that is nearest to another day, on one side of it."""
    month, day = month_and_day(entry)
    step = 1 if is_later else -1
    years = (int(entry["year"]),) if entry["year"] else (near.year, near.year + step)
    for year in years:
        try:
            found = date(year, month, day)
        except ValueError:
            continue
        if found == near or (found > near) == is_later:
            return found
    return None


def _split(
    segment: Segment, starts: Sequence[tuple[int, datetime]], text: str
) -> Iterator[Segment]:
    """Yield what stands before the first entry of a segment, and each entry with its day."""
    first, whole = starts[0][0], text[segment.start : segment.end]
    if whole[: first - segment.start].strip():
        yield _trimmed(replace(segment, end=first), text)
    ends = [*(start for start, _ in starts[1:]), segment.end]
    for (start, moment), end in zip(starts, ends, strict=True):
        yield _trimmed(replace(segment, start=start, end=end, said_at=moment), text)


def _trimmed(segment: Segment, text: str) -> Segment:
    """Return a segment without the blanks at its ends."""
    inner = text[segment.start : segment.end]
    start = segment.start + len(inner) - len(inner.lstrip())
    return replace(segment, start=start, end=segment.start + len(inner.rstrip()))


def parse_title(value: object) -> str:
    """A title that a property holds; ``""`` where it is no text."""
    return clean_title(str(value)) if isinstance(value, str | int | float | date) else ""


def parse_authors(value: object) -> tuple[str, ...]:
    """Names from a text such as ``Ann Lee, Bob Ray``, a list of them, or objects with a name."""
    if isinstance(value, dict):
        value = value.get("name") or value.get("email")
    if isinstance(value, list):
        return tuple(dict.fromkeys(name for item in value for name in parse_authors(item)))
    if not isinstance(value, str):
        return ()
    names = (shorten(name, 100) for name in re.split(r"[;,&\n]|\sand\s", value))
    return tuple(dict.fromkeys(name for name in names if name))


def parse_tags(value: object) -> tuple[str, ...]:
    """Tags from a list or from a text that separates them by commas or blanks."""
    if isinstance(value, list):
        items = [str(item) for item in value if isinstance(item, str | int | float)]
    elif isinstance(value, str):
        items = re.split(r"[,;]" if re.search(r"[,;]", value) else r"\s+", value)
    else:
        return ()
    cleaned = (shorten(item.strip().strip("#\"'[]"), 60) for item in items)
    return tuple(dict.fromkeys(tag for tag in cleaned if tag))


def to_json_value(value: Any, depth: int = 0) -> Any:
    """The value as JSON can hold it: dates in ISO 8601, keys as text, no NaN, bounded depth."""
    if depth > _MAX_DEPTH:
        return None
    if isinstance(value, dict):
        return {str(key): to_json_value(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, list | tuple | set):
        return [to_json_value(inner, depth + 1) for inner in value]
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else str(value)
    return value if isinstance(value, bool | int | str | None) else str(value)


_MAX_LENGTH = 100
_EPOCH = re.compile(r"[1-9]\d{8,9}(?:\.\d+)?$|[1-9]\d{11,12}$")
_YEAR_FIRST = re.compile(r"(\d{4})[-/.](\d{1,2})(?:[-/.](\d{1,2}))?$")
_MONTH_FIRST = re.compile(r"([A-Za-z]{3,9})\.?\s+(\d{1,2})(?:st|nd|rd|th)?,?\s+(\d{4})$")
_DAY_FIRST = re.compile(r"(\d{1,2})(?:st|nd|rd|th)?\.?\s+([A-Za-z]{3,9})\.?,?\s+(\d{4})$")


def to_utc(moment: datetime) -> datetime | None:
    """The moment as an aware UTC datetime; None where that falls outside years 1 to 9999."""
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC)
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        return None


def parse_date(value: object) -> datetime | None:
    """A date in ISO 8601, RFC 2822 or written out in English; None for anything else."""
    if isinstance(value, datetime):
        return to_utc(value)
    if isinstance(value, date):
        return datetime.combine(value, time(), UTC)
    text = str(value).strip() if isinstance(value, str) else ""
    if not 4 < len(text) <= _MAX_LENGTH:
        return None
    return _iso(text) or _written_out(text) or _header(text)


def parse_timestamp(value: object) -> datetime | None:
    """As :func:`parse_date`, and seconds or milliseconds since 1970 too, as programs write them."""
    text = str(value) if isinstance(value, int | float | str) else ""
    if not _EPOCH.match(text):
        return parse_date(value)
    seconds = float(text) if len(text.partition(".")[0]) <= 10 else float(text) / 1000
    return datetime.fromtimestamp(seconds, UTC)


def _iso(text: str) -> datetime | None:
    try:
        return to_utc(datetime.fromisoformat(text))
    except ValueError:
        pass
    match = _YEAR_FIRST.match(text)
    return _day(match[1], match[2], match[3] or "1") if match else None


def _written_out(text: str) -> datetime | None:
    if match := _MONTH_FIRST.match(text):
        return _day(match[3], match[1], match[2])
    if match := _DAY_FIRST.match(text):
        return _day(match[3], match[2], match[1])
    return None


def _day(year: str, month: str, day: str) -> datetime | None:
    number = int(month) if month.isdecimal() else month_numbers().get(month.lower(), 0)
    try:
        return datetime(int(year), number, int(day), tzinfo=UTC)
    except ValueError:
        return None


def _header(text: str) -> datetime | None:
    try:
        return to_utc(parsedate_to_datetime(text))
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


EARLIEST = datetime(1990, 1, 1, tzinfo=UTC)
"""PDF was new in 1993; an earlier date is a clock that was never set."""

_TEMPLATES = (
    datetime(2013, 1, 27, 9, 14, 16, tzinfo=UTC),
    datetime(2013, 12, 23, 23, 15, tzinfo=UTC),
)
"""When the templates of python-pptx and python-docx were made, which they leave in every file."""

_PROGRAM_PREFIX = re.compile(r"^(microsoft )?(word|powerpoint|excel|publisher|visio) - ", re.I)
_FILE_NAME = re.compile(
    r"\.(docx?|pptx?|xlsx?|odt|pdf|tex|dvi|indd|qxd|pages|rtf|html?|p65|fm)$", re.I
)
_NO_TITLE = re.compile(
    r"\(?(untitled|anonymous|unspecified|unknown|title|document|no title|slide \d+|"
    r"powerpoint presentation|print|layout \d+|about:blank|data:.*|https?:.*)[\s\d.()-]*",
    re.I,
)
_NO_AUTHOR = re.compile(
    r"(unknown|anonymous|author|user|admin(istrator)?|root|owner|unspecified|home|pc|default|"
    r"python-docx|python-pptx|openpyxl|steve canny|microsoft( office)? user|"
    r"microsoft corporation|windows user|\(?c\)?)",
    re.I,
)
_LETTERS = re.compile(r"[^\W\d_]{2}")
_BETWEEN_AUTHORS = re.compile(r"\s*(?:;|&|\band\b)\s*")


def plausible_title(title: str) -> str:
    """The title as one line; ``""`` for one that a program made up."""
    title = clean_title(_PROGRAM_PREFIX.sub("", title.strip()))
    made_up = _NO_TITLE.fullmatch(title) or _FILE_NAME.search(title) or not _LETTERS.search(title)
    return "" if made_up else title


def plausible_authors(authors: str) -> tuple[str, ...]:
    """The names, without logins and place holders."""
    names = (clean_title(name) for name in _BETWEEN_AUTHORS.split(authors))
    return tuple(n for n in names if _LETTERS.search(n) and not _NO_AUTHOR.fullmatch(n))


def plausible_date(moment: object) -> datetime | None:
    """The date in UTC; None for one that a program or a clock that was never set made up."""
    moment = to_utc(moment) if isinstance(moment, datetime) else None
    believable = moment and moment >= EARLIEST and moment not in _TEMPLATES
    return moment if believable else None
