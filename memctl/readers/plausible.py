"""Which titles, authors and dates in a file's properties are worth believing.

Most files carry a title that a program made of a file name, and an author that is a login.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from memctl.readers.dates import in_utc
from memctl.readers.names import clean_title

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
    r"(untitled|unknown|title|document|no title|slide \d+|powerpoint presentation|"
    r"print|layout \d+|about:blank|data:.*|https?:.*)[\s\d.()-]*",
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
    moment = in_utc(moment) if isinstance(moment, datetime) else None
    believable = moment and moment >= EARLIEST and moment not in _TEMPLATES
    return moment if believable else None
