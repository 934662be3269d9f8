"""What the head of a web page says of it: title, authors, date, keywords, description."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from memctl.readers.dates import parse_date
from memctl.readers.facts import Facts, authors_of, tags_of
from memctl.readers.names import clean_title, shortened
from memctl.readers.page_parser import Page

_TITLES = ("og:title", "twitter:title", "dc.title", "citation_title")
_AUTHORS = ("author", "article:author", "dc.creator", "citation_author", "parsely-author")
_DATES = ("article:published_time", "og:published_time", "datepublished", "date", "dc.date",
          "dc.date.issued", "citation_publication_date", "pubdate", "publish-date",
          "article:modified_time", "last-modified")  # fmt: skip
_SITE_SUFFIX = re.compile(r"\s+[|–—·»]\s+[^|–—·»]{1,60}$")
_MOST_OBJECTS = 500


def page_facts(page: Page) -> Facts:
    """Title, authors, date and keywords: ``<meta>``, linked data, ``<title>``, ``<time>``."""
    linked = list(_linked_objects(page.linked_data))
    description = _first(page, ("description", "og:description"))
    return Facts(
        title=clean_title(_title(page, linked)),
        authors=_authors(page, linked),
        created_at=next(
            (date for text in _date_texts(page, linked) if (date := parse_date(text))), None
        ),
        tags=tuple(dict.fromkeys(tags_of(", ".join(page.meta.get("keywords", ()))))),
        metadata={
            key: value
            for key, value in (
                ("description", shortened(description, 1000)),
                ("site", shortened(_first(page, ("og:site_name",)), 200)),
                ("url", shortened(_first(page, ("og:url",)), 1000)),
                ("declared_language", page.language),
            )
            if value
        },
    )


def _first(page: Page, keys: tuple[str, ...]) -> str:
    return next((value for key in keys for value in page.meta.get(key, ()) if value.strip()), "")


def _title(page: Page, linked: list[dict[str, Any]]) -> str:
    headline = next((o["headline"] for o in linked if isinstance(o.get("headline"), str)), "")
    return _first(page, _TITLES) or headline or _SITE_SUFFIX.sub("", page.title) or page.title


def _authors(page: Page, linked: list[dict[str, Any]]) -> tuple[str, ...]:
    named = [name for key in _AUTHORS for name in page.meta.get(key, ())]
    people = [name for name in named if not name.startswith(("http", "@"))]
    if people:
        return authors_of(people)
    return next((a for o in linked if (a := authors_of(o.get("author")))), ())


def _date_texts(page: Page, linked: list[dict[str, Any]]) -> Iterator[object]:
    yield from (o["datePublished"] for o in linked if "datePublished" in o)
    yield from (value for key in _DATES for value in page.meta.get(key, ()))
    yield from page.times[:1]


def _linked_objects(texts: list[str]) -> Iterator[dict[str, Any]]:
    """Every object in the page's JSON-LD, outermost first; what is no JSON is left out."""
    waiting: list[Any] = []
    for text in texts:
        try:
            waiting.append(json.loads(text))
        except (ValueError, RecursionError):
            continue
    for _ in range(_MOST_OBJECTS):
        if not waiting:
            return
        value = waiting.pop(0)
        if isinstance(value, list):
            waiting += value[:_MOST_OBJECTS]
        elif isinstance(value, dict):
            yield value
            waiting += [inner for inner in value.values() if isinstance(inner, dict | list)]
