"""What a file's properties say of it as a document: title, authors, date, tags; the rest stays."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from memctl.readers.dates import parse_date
from memctl.readers.names import clean_title, shortened

_TITLE_KEYS = ("title", "headline")
_DATE_KEYS = ("date", "created", "created_at", "published", "date_published", "datepublished",
              "published_at", "pubdate", "publishdate")  # fmt: skip
_AUTHOR_KEYS = ("author", "authors", "creator", "by")
_TAG_KEYS = ("tags", "tag", "keywords", "categories")
_OTHER_DESCRIPTIONS = ("aliases", "alias", "slug", "permalink", "layout", "lang", "language", "id",
                       "uid", "uuid", "draft", "publish", "modified", "updated", "lastmod",
                       "cssclass", "cssclasses")  # fmt: skip
_DESCRIPTIONS = frozenset(
    (*_TITLE_KEYS, *_DATE_KEYS, *_AUTHOR_KEYS, *_TAG_KEYS, *_OTHER_DESCRIPTIONS)
)
_DEEPEST = 20


@dataclass(frozen=True, slots=True)
class Facts:
    """Properties of a document that have a place of their own, and those that have none."""

    title: str = ""
    authors: tuple[str, ...] = ()
    created_at: datetime | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    only_describe: bool = False
    """Whether they say what the document is and nothing of what it is about."""


def facts_of(properties: Mapping[Any, Any]) -> Facts:
    """Sort the properties of a file, such as its front matter, by what they mean."""
    known = {str(key).strip().lower(): value for key, value in properties.items()}
    used = (*_TITLE_KEYS, *_AUTHOR_KEYS, *_TAG_KEYS)
    return Facts(
        title=next((t for k in _TITLE_KEYS if (t := title_of(known.get(k)))), ""),
        authors=next((a for k in _AUTHOR_KEYS if (a := authors_of(known.get(k)))), ()),
        created_at=next((d for k in _DATE_KEYS if (d := parse_date(known.get(k)))), None),
        tags=tuple(dict.fromkeys(tag for k in _TAG_KEYS for tag in tags_of(known.get(k)))),
        metadata={
            str(key): plain(value)
            for key, value in properties.items()
            if str(key).strip().lower() not in used
        },
        only_describe=known.keys() <= _DESCRIPTIONS,
    )


def title_of(value: object) -> str:
    """A title that a property holds; ``""`` where it is no text."""
    return clean_title(str(value)) if isinstance(value, str | int | float | date) else ""


def authors_of(value: object) -> tuple[str, ...]:
    """Names from a text such as ``Ann Lee, Bob Ray``, a list of them, or objects with a name."""
    if isinstance(value, dict):
        value = value.get("name") or value.get("email")
    if isinstance(value, list):
        return tuple(dict.fromkeys(name for item in value for name in authors_of(item)))
    if not isinstance(value, str):
        return ()
    names = (shortened(name, 100) for name in re.split(r"[;,&\n]|\sand\s", value))
    return tuple(dict.fromkeys(name for name in names if name))


def tags_of(value: object) -> tuple[str, ...]:
    """Tags from a list or from a text that separates them by commas or blanks."""
    if isinstance(value, list):
        items = [str(item) for item in value if isinstance(item, str | int | float)]
    elif isinstance(value, str):
        items = re.split(r"[,;]" if re.search(r"[,;]", value) else r"\s+", value)
    else:
        return ()
    cleaned = (shortened(item.strip().strip("#\"'[]"), 60) for item in items)
    return tuple(dict.fromkeys(tag for tag in cleaned if tag))


def plain(value: Any, depth: int = 0) -> Any:
    """The value as JSON can hold it: dates in ISO 8601, keys as text, no NaN, bounded depth."""
    if depth > _DEEPEST:
        return None
    if isinstance(value, dict):
        return {str(key): plain(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, list | tuple | set):
        return [plain(inner, depth + 1) for inner in value]
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else str(value)
    return value if isinstance(value, bool | int | str | None) else str(value)
