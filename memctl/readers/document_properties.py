"""What files state about themselves: titles, authors, dates and tags, and which to believe.

Most files carry a title that a program made of a file name, and an author that is a login.  Dates
become aware UTC datetimes; one without a zone is taken as UTC.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from memctl.language.date_mentions import leading_day, lone_day
from memctl.language.word_lists import month_numbers
from memctl.readers.file_names import clean_title, shorten
from memctl.readers.pieces import Piece
from memctl.records import SourceText

_TITLE_KEYS = ("title", "headline")
_DATE_KEYS = ("date", "created", "created_at", "published", "date_published", "datepublished",
              "published_at", "pubdate", "publishdate", "updated", "updated_at", "modified",
              "lastmod")  # fmt: skip
"""Those of the first edition before those of the latest."""
_AUTHOR_KEYS = ("author", "authors", "creator", "by")
_TAG_KEYS = ("tags", "tag", "keywords", "categories")
_OTHER_DESCRIPTIONS = ("aliases", "alias", "slug", "permalink", "layout", "lang", "language", "id",
                       "uid", "uuid", "draft", "publish", "cssclass", "cssclasses", "status",
                       "memctl", "memctl_sha256")  # fmt: skip
_DESCRIPTIONS = frozenset(
    (*_TITLE_KEYS, *_DATE_KEYS, *_AUTHOR_KEYS, *_TAG_KEYS, *_OTHER_DESCRIPTIONS)
)
_DAY_LINE = re.compile(
    r"(?:^|[·•] )\W{0,4}(?:"
    r"(?:(?:letter|invoice|meeting) )?(?:date|dated|sent|datum|fecha|stand)\W{0,4}:"
    r"|(?:last )?(?:edit(?:ed)?|updated?|changed|modified|revised|written|sent)(?: on)?:?"
    r"|(?:zuletzt )?(?:geändert|aktualisiert)(?: am)?:?)\W{0,4}"
    r"(?P<day>\w[^\n·•|]{5,40}?)(?:$|, (?=[a-z])| ?[·•|])",
    re.IGNORECASE | re.MULTILINE,
)
_DATED = re.compile(
    r"(?:^\W{0,4}|[.;,] )(?:Dated|DATED)(?: as)?(?: of)?(?: the| this)?:?[^\S\n]"
    r"(?P<day>\w[^\n]{5,40})",
    re.MULTILINE,
)
"""As a contract has it; a smaller one may be of what it speaks of: ``the lease dated 3 May``."""
_CONTINUATION = re.compile(r"\d(?::| [-–—]) (?=\w)")
"""After the day of an entry: ``Update 3 May 2026: the pump leaks``."""
_OF_PLACE = re.compile(
    r"^(?:[^\W\d_]+\.?(?:[ -][^\W\d_]+\.?){0,3}, ){1,3}(?:(?:den|the|le|il|lì|op|dne) )?(?=\d)"
)
"""In a letter's head, before its day: ``Lübeck, den 14. März 2025``, ``Dr. Ann Lee, York, ...``."""
_GREETING_OR_CLOSING = re.compile(
    r"^\W*(?:"
    r"(?:dear|hello|hi|liebe[rs]?|sehr geehrte[rs]?|hallo|chère?s?|estimad[oa]s?|querid[oa]s?"
    r"|car[oaie]|gentile|geachte|beste) [^\n.!?:]{1,60},"
    r"|(?:(?:with )?(?:kind|best|warm)(?:est)? )?(?:regards|wishes)|yours(?: \w+)?"
    r"|sincerely(?: yours)?|(?:with |lots of )?love|cheers|(?:many )?thanks"
    r"|(?:mit )?(?:freundlich|herzlich|best|lieb|viel)en? grü(?:ß|ss)en?|hochachtungsvoll"
    r"|cordialement|bien à vous|sincères salutations|atentamente"
    r"|(?:un )?(?:cordial(?:es)? )?saludos?|(?:cordiali|distinti) saluti"
    r"|met vriendelijke groet(?:en)?)(?:, [^\W\d_]+)?\W*$",
    re.IGNORECASE | re.MULTILINE,
)
"""Of a letter: ``Dear Ann,``, ``Yours sincerely``."""
_OF_ANOTHER_DAY = re.compile(
    r"\b(?:valid|until|due|born|expir\w+|deadline|ends?|starts?|begins?|from|gültig|bis|fällig|"
    r"geboren|geb|valable|échéance|née?|válido|vence|nacid[oa]|valido|scadenza|nat[oa])\b",
    re.IGNORECASE,
)
"""On the line of a day, or on the one above it: that day isn't the one of the writing."""
_BEGINNING = 1000
"""Characters in which a document says of which day it is."""
LINES_OF_HEAD = 5
"""Of a letter: who writes, and when."""
_MAX_DAYS = 2
"""Written and last edited; a history has more of them."""
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


def stated_day(text: str, path: Path | None = None) -> datetime | None:
    """Return the day that the beginning of a document says it is of.

    By a line such as ``Date: 3 May 2026``, by ``Dated 3 May 2026``, or by a line of nothing but a
    day, or a name or place and a day, as a letter has it in its head.

    Args:
        text: The document, or its first part.
        path: The file, which isn't of a day after its own time.
    """
    found = [
        day
        for line in _DAY_LINE.finditer(text, 0, _BEGINNING)
        if (day := leading_day(line["day"])) and not _CONTINUATION.search(line["day"])
    ]
    dated = _DATED.finditer(text, 0, _BEGINNING) if not found else ()
    found += [day for line in dated if (day := leading_day(line["day"]))]
    if found:
        return found[0] if len(set(found)) <= _MAX_DAYS else None
    whole = text[:_BEGINNING].strip().splitlines()
    lines = [_OF_PLACE.sub("", line) for line in whole]
    days = [(number, day) for number, line in enumerate(lines) if (day := lone_day(line))]
    if len(days) != 1 or days[0][0] >= LINES_OF_HEAD:  # a diary has more of them
        return None
    number, day = days[0]
    if _OF_ANOTHER_DAY.search(" ".join(whole[max(number - 1, 0) : number + 1])):
        return None
    has_place = lines[number] != whole[number]
    if has_place:
        is_announced = number > 0 and whole[number - 1].rstrip().endswith(":")
        is_above_text = any(map(str.strip, whole[number + 1 :])) and not is_announced
        return day if is_above_text and day <= _latest_day(path) else None
    return day if not "".join(lines[number + 1 : number + 2]).strip() else None


def signed_day(text: str, path: Path | None = None) -> datetime | None:
    """Return the day that stands with a place or a name at the end of a letter.

    It has a greeting or the words that close a letter beside it, and no other line has a place and
    a day: a flight, a concert and a quotation have them, too.

    Args:
        text: The document, or its end.
        path: The file, which isn't of a day after its own time.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    signed = [
        (number, day)
        for number, line in enumerate(lines)
        if (place := _OF_PLACE.match(line)) and (day := lone_day(line[place.end() :]))
    ]
    if len(signed) != 1 or signed[0][0] < len(lines) - LINES_OF_HEAD:
        return None
    number, day = signed[0]
    above, line = lines[number - 1] if number else "", lines[number]
    is_announced = above.rstrip().endswith(":") or _OF_ANOTHER_DAY.search(line)
    if is_announced or not _GREETING_OR_CLOSING.search("\n".join(lines[-LINES_OF_HEAD:])):
        return None
    return day if day <= _latest_day(path) else None


def _latest_day(path: Path | None) -> datetime:
    """Return the latest day that a file can be of; its time may be hours behind, by its zone."""
    now = datetime.now(UTC)
    if path is None:
        return now
    return min(now, datetime.fromtimestamp(path.stat().st_mtime, UTC) + timedelta(days=1))


def with_stated_day(
    head: SourceText, pieces: Iterable[Piece], path: Path | None = None
) -> SourceText:
    """The facts of a document, with the day that the text itself states, if any."""
    text = end = ""
    for piece in pieces:
        if piece.kind in ("prose", "heading"):  # the day in the row of a table is of that row
            text += piece.text[:_BEGINNING] if len(text) < _BEGINNING else ""
            end = f"{end}{piece.text}"[-_BEGINNING:]
    day = stated_day(text, path) or signed_day(end, path)
    return replace(head, created_at=day) if day else head


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
