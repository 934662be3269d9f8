"""The items of a list, for questions that name one: "What's on the snag list?"

A list is a document, or a section of one, that is mostly items and whose title is what the question
names.  Sentences elsewhere mostly only mention it, so its own text answers, as it is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date, datetime

from msgspec import Struct
from msgspec.structs import replace

from memctl.language.date_mentions import date_spans
from memctl.language.term_analysis import query_terms
from memctl.patterns import lazy_regex
from memctl.records import Answer, Hit
from memctl.search.answering.evidence_parts import (
    LIST_MARK,
    PATH_SEPARATOR,
    is_table_row,
    older_versions,
)
from memctl.search.answering.excerpts import HitExcerpt, cite, joined_by_passage, plain_quote
from memctl.search.answering.search_outcome import SearchOutcome
from memctl.search.query.time_expressions import asks_for_coming, asks_for_overdue

METHOD = "list/1"
Terms = frozenset[str]

_OWN = (
    r"(?:(?:the|my|our|your|his|her|its|their|this|that|d(?:er|ie|as|em|en)|mein\w*|unser\w*"
    r"|l[ae]s?|l['’]|m(?:a|on|es)|notre|nos|el|los|mis?|il|lo|gli|de|het|mijn|onze)"
    r"(?:\s+|(?<=['’])))?"
)
_ASKS_FOR_LIST = tuple(
    (
        tuple(first.split(", ")),
        lazy_regex(rf"\W*(?:{start})\s+{_OWN}(?P<name>\S.*?)(?:,? please)?\W*", re.IGNORECASE),
    )
    for first, start in (
        ("who", r"who(?:['’]s| is| are) on(?=.*list\b)"),
        (
            "what",
            r"what(?:['’]s| is| are| was| were| do (?:i|we) have| have (?:i|we) got| else is)?"
            r"(?: (?:there|still|left|open|all|overdue|past due|upcoming|coming up|next))*"
            r"(?: (?:on|in))",
        ),
        (
            "what, which",
            r"(?:what|which) (?P<items>(?:\w+ )?\w+s) (?:are|were)"
            r"(?: (?:there|still|left|open))* (?:on|in|for)",
        ),
        (
            "please, can you, could you, show, give, read, list, print",
            r"(?:(?:please|can you|could you) )?(?:show|give|read|list|print)(?: (?:me|us))?"
            r"(?: out)?(?: (?:what(?:['’]s| is) (?:on|in)|all of|everything (?:on|in)))?",
        ),
        ("was", r"was (?:steht|ist|sind)(?: (?:noch|alles))*(?: (?:auf|in|im))"),
        ("zeig", r"zeige?(?: (?:mir|uns))?(?: mal)?"),
        ("qu, montre", r"qu['’](?:est-ce qu['’]il y a|y a-t-il) (?:sur|dans)|montre(?:-moi)?"),
        ("qué, muéstrame", r"qué hay en|muéstrame"),
        ("che, cosa, mostra", r"(?:che )?cosa c['’]è (?:su|in)(?:ll?[ao]|l)?|mostra(?:mi)?"),
        ("wat", r"wat staat er (?:nog )?(?:op|in)"),
        ("o que, mostra", r"o que (?:há|está) (?:n[ao]|em)|mostra-me"),
    )
)
"""How a question for the items of something begins, and its pattern, compiled if it does."""
_LIST_WORDS = frozenset(
    query_terms("list lists file note notes page items liste datei notiz lista lijst", ("", "en"))
)
"""Words that say what sort of text is asked for, not which."""
_IS_LIST = r"(?:[^\s?]*(?:liste|lijst)|lista|(?:check|play|short|snag|wait|wish)?lists?|to-?dos?)"
_NAMES_LIST = lazy_regex(rf"\W*{_OWN}(?P<name>(?:[^\s?]+ ){{0,4}}{_IS_LIST})[^\w?]*", re.IGNORECASE)
"""What is a list by its name alone, with no question around it."""
_ASKS_FOR_REST = lazy_regex(
    r"\b(?:still|left|open|remaining|outstanding|noch|offen\w*|encore|reste\w*|todavía|ancora|nog)\b",
    re.IGNORECASE,
)
_TO_DO = lazy_regex(r"\bto[- ]dos?\b", re.IGNORECASE)
_LINE = lazy_regex(r"[^\S\n]*(?P<text>\S[^\n]*)")
_MARKED = lazy_regex(rf"{LIST_MARK}\s+(?=\S)|\[[ xX]?\]\s+(?=\S)")
_IS_DONE = lazy_regex(rf"(?:{LIST_MARK}\s+)?(?:\[[xX]\]|[✓✔☑])\s")
_ENDS_SENTENCE = lazy_regex(r"[.!?]['\"”’)]*$")
_MOST_ITEMS, _FEWEST_ITEMS, _LONGEST_ITEM, _LONGEST_SHOWN = 20, 2, 160, 300
_LONGEST_QUESTION = 120
_LEAST_SHARE = 0.6
"""Of the lines of a text that is a list."""
_CONFIDENCE = 0.85


class _NamedList(Struct, frozen=True):
    """The items of a document or section."""

    name: str
    of_day: date
    items: tuple[HitExcerpt, ...]
    """Its lines."""
    is_exact: bool
    """Whether its name has nothing more than what was asked for."""

    @property
    def label(self) -> str:
        """Its name and day."""
        return f"{self.name} ({self.of_day.isoformat()})"

    def is_of(self, time: str) -> bool:
        """Return whether it is of a day, month or year, as ISO 8601 writes it, by name or day."""
        named = [span.iso for span in date_spans(self.name)] or [self.of_day.isoformat()]
        return any(each.startswith(time) for each in named)


def list_answer(outcome: SearchOutcome) -> Answer | None:
    """Return the items of the list that a question names; None where there is none of that name.

    Of several of that name it is the newest.
    """
    question = outcome.asked.text
    asked_names = _asked_names(question)
    lists = _lists(outcome, asked_names)
    if not lists:
        return None
    newest, *others = lists
    items = newest.items
    if _ASKS_FOR_REST.search(question.replace(asked_names[0], " ")):
        items = tuple(item for item in items if not _IS_DONE.match(item.text))
    if asks_for_overdue(question) or asks_for_coming(question):
        items = _of_day_of_asking(items, outcome)
    shown = items[:_MOST_ITEMS]
    excerpts = joined_by_passage(shown or newest.items[:1])
    numbers = {item.hit.memory_id: place for place, item in enumerate(excerpts, start=1)}
    lines = [f"{_strip_item_marks(item.text)} [{numbers[item.hit.memory_id]}]" for item in shown]
    if not shown:
        state = "overdue" if asks_for_overdue(question) else "left"
        lines = [f"Nothing is {state} on {newest.name}. [1]"]
    if len(items) > len(shown):
        lines.append(f"{len(items) - len(shown)} more in {newest.name}.")
    if others or not newest.is_exact:
        lines.insert(0, f"{newest.label}:")
    if others:
        lines.append(f"Older, or of a like name: {', '.join(each.label for each in others)}.")
    return Answer(
        "\n".join(lines),
        found=True,
        method=METHOD,
        confidence=_CONFIDENCE,
        citations=tuple(cite(number, each) for number, each in enumerate(excerpts, start=1)),
    )


def _of_day_of_asking(
    items: Sequence[HitExcerpt], outcome: SearchOutcome
) -> tuple[HitExcerpt, ...]:
    """Return what is not done and overdue, or to come, on the day of asking; the first first."""
    wants_overdue = asks_for_overdue(outcome.asked.text)
    found: list[tuple[str, HitExcerpt]] = []
    for item in items:
        spans = date_spans(item.text, item.hit.created_at)
        day = max((span.iso for span in spans if span.day), default="")
        is_overdue = day < outcome.asked_on.isoformat()
        if day and is_overdue == wants_overdue and not _IS_DONE.match(item.text):
            found.append((day, item))
    return tuple(item for _, item in sorted(found, key=lambda each: each[0]))


def _strip_item_marks(line: str) -> str:
    """Return a line without what marks it as an item; one that is done keeps its tick."""
    mark = _MARKED.match(line)
    words = plain_quote(line[mark.end() :] if mark else line)
    if len(words) > _LONGEST_SHOWN:
        words = f"{words[:_LONGEST_SHOWN].rpartition(' ')[0]} …"
    return f"[x] {words}" if _IS_DONE.match(line) else words


def _asked_names(question: str) -> list[str]:
    """Return what a question that asks for the items of something may name; [] for other ones."""
    if len(question) > _LONGEST_QUESTION:
        return []
    begins = re.sub(r"^\W+", "", question.lower())
    patterns = [pattern for words, pattern in _ASKS_FOR_LIST if begins.startswith(words)]
    for pattern in (*patterns, _NAMES_LIST):
        if found := pattern.fullmatch(question):
            items = found.groupdict().get("items")
            return [found["name"], *([f"{items} {found['name']}"] if items else [])]
    return []


def _name_terms(name: str, outcome: SearchOutcome, of_day: datetime | None = None) -> Terms:
    """Return what tells a name from others, without words for any list and without dates."""
    for span in reversed(date_spans(name, of_day)):
        name = name[: span.start] + name[span.end :]
    words = re.sub(r"[_\W]+", " ", _TO_DO.sub("todo", name))
    return frozenset(query_terms(words, outcome.languages)) - _LIST_WORDS


def _lists(outcome: SearchOutcome, asked_names: Sequence[str]) -> list[_NamedList]:
    """Return the lists of an asked name and time, or else of longer names; the newest first.

    Each is there once, without older versions of a document.  Only one that is called a list may
    have a longer name.
    """
    wanted_terms = [terms for name in asked_names if (terms := _name_terms(name, outcome))]
    if not wanted_terms:
        return []
    may_be_longer = _NAMES_LIST.fullmatch(asked_names[0]) is not None
    older, seen_documents = older_versions(outcome.hits), set[tuple[str, str]]()
    lists: list[_NamedList] = []
    for hit in outcome.hits:
        if hit.type != "passage" or hit.document in seen_documents or hit.document_id in older:
            continue
        names = {
            name: _name_terms(name, outcome, hit.created_at)
            for name in (hit.title, *hit.heading.split(PATH_SEPARATOR))
        }
        exact = [name for name, terms in names.items() if terms in wanted_terms]
        longer = [
            name for name, terms in names.items() if may_be_longer and wanted_terms[0] < terms
        ]
        if exact or longer:
            seen_documents.add(hit.document)
            lists += _lists_of(outcome, hit, (exact or longer)[0], is_exact=bool(exact))
    times = [span.iso for span in date_spans(asked_names[0])]
    lists = [each for each in lists if all(each.is_of(time) for time in times)]
    exact_ones = [each for each in lists if each.is_exact]
    return sorted(exact_ones or lists, key=lambda each: each.of_day, reverse=True)


def _lists_of(
    outcome: SearchOutcome, hit: Hit, name: str, *, is_exact: bool
) -> Iterator[_NamedList]:
    """Yield the list that a document is, or those that its sections of that name are."""
    passages = outcome.load_document(hit)
    sections: dict[str, list[Hit]] = {}
    for each in passages:
        above, mark, _ = f"{each.heading}{PATH_SEPARATOR}".partition(f"{name}{PATH_SEPARATOR}")
        if hit.title == name or mark:
            sections.setdefault("" if hit.title == name else above, []).append(each)
    for section in sections.values():
        if items := _items(section):
            yield _NamedList(name, section[0].created_at.date(), items, is_exact)


def _items(passages: Sequence[Hit]) -> tuple[HitExcerpt, ...]:
    """Return the items of a text that is mostly a list; nothing for other texts.

    They are the lines that are marked as items or, where none is, the lines.
    """
    lines: list[HitExcerpt] = []
    last = 0
    for hit in passages:
        headings = {name.lower() for name in (hit.title, *hit.heading.split(PATH_SEPARATOR))}
        for found in _LINE.finditer(hit.text):
            start = found.start("text")
            line = HitExcerpt(hit, start, start + len(found["text"].rstrip()))
            if hit.start is not None and hit.start + start < last:
                continue  # passages overlap
            if line.text.strip("#*_:= -").lower() in headings or not any(
                map(str.isalnum, line.text)
            ):
                continue
            is_wrapped = start > found.start() and not _is_marked(line)
            if is_wrapped and lines and lines[-1].hit is hit and _is_marked(lines[-1]):
                lines[-1] = replace(lines[-1], end=line.end)
            else:
                lines.append(line)
        last = (hit.start or 0) + len(hit.text)
    texts = [line.text for line in lines]
    items = list(filter(_is_marked, lines))
    if texts and all(map(is_table_row, texts)):
        items = lines
    elif any(map(is_table_row, texts)):
        items = []
    elif not items and not any(map(_ENDS_SENTENCE.search, texts)):
        items = [line for line in lines if len(line.text) <= _LONGEST_ITEM]
    enough = max(_FEWEST_ITEMS, _LEAST_SHARE * len(lines))
    return tuple(items) if len(items) >= enough else ()


def _is_marked(line: HitExcerpt) -> bool:
    return _MARKED.match(line.text) is not None
