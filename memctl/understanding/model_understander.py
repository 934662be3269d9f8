"""Understanding by a language model, checked against the text and completed by the built-in one.

The model has no tools.  What it replies is only ever parsed, and what it says of a document must
be found in that document: facts by their quotes, entities by their names, the gist by its words.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from memctl.errors import BadReply, ModelUnavailable, RequestRefused, RequestTooLong
from memctl.language.sentence_splitting import WINDOW, spread_evenly, text_windows, window_budget
from memctl.models.protocols import MODEL, NOT_ALL_BY_MODEL, NOT_BY_MODEL, Understander
from memctl.prompts import Prompt, fenced
from memctl.records import Distilled, EntityMention, SourceText, Understanding
from memctl.understanding.evidence_support import Evidence, measure_support
from memctl.understanding.model_replies import DocumentReply, Fact, NamedEntity
from memctl.understanding.sentence_reading import MAX_STATEMENTS, STATED_IMPORTANCE

if TYPE_CHECKING:
    from memctl.literals import WhenUnavailable
    from memctl.models.chat_model import ChatModel


_log = logging.getLogger(__name__)

MAX_ENTITIES = 100
MAX_TOPICS = 8
MAX_DATES = 60
_MIN_WINDOW_SIZE = WINDOW // 8
_CARRIED_ENTITIES = 40
_MAX_GIST_LENGTH = 2_000
_MAX_WORDS_LENGTH = 300
_CONFIDENCE = 0.85
_UNKNOWN_DAY = datetime(1970, 1, 1, tzinfo=UTC)
_DATE = re.compile(r"(\d{4})(?:-(\d\d)(?:-(\d\d))?)?")


class ModelUnderstander:
    """Understands documents with a chat model.

    Args:
        model: The model.
        prompt: Its instructions.
        builtin: Gives what the model does not, and all of it where the model fails.
        concurrency: How many documents are understood at the same time.
        most_windows: The largest number of windows of one document that are read.
        when_unavailable: What becomes of documents while the model cannot be had.
    """

    def __init__(
        self,
        model: ChatModel,
        prompt: Prompt,
        builtin: Understander,
        concurrency: int,
        most_windows: int,
        when_unavailable: WhenUnavailable,
    ) -> None:
        self._model = model
        self._prompt = prompt
        self._builtin = builtin
        self._concurrency = concurrency
        self._most_windows = most_windows
        self._when_unavailable = when_unavailable
        self._is_away = False

    @property
    def method(self) -> str:
        """The model and the prompt, stored with every record that they made."""
        return f"{MODEL}{self._model.name}/{self._prompt.id}"

    def understand(self, sources: Sequence[SourceText]) -> list[Understanding]:
        """Return one understanding for each source, in order.

        One of which the model makes nothing is understood the built-in way, and says so.

        Raises:
            ModelUnavailable: The model cannot be had now, and documents are to wait for it.
            ModelRefused: It will not do it as it is configured.
        """
        plain = self._builtin.understand(sources)
        pool = ThreadPoolExecutor(self._concurrency)
        try:
            return list(pool.map(self._understanding, sources, plain))
        finally:
            pool.shutdown(cancel_futures=True)

    def _understanding(self, source: SourceText, plain: Understanding) -> Understanding:
        if not source.text.strip():
            return replace(plain, method=self.method)
        try:
            reading = self._read(source)
        except ModelUnavailable as error:
            if self._when_unavailable == "wait":
                raise
            self._warn_once(error)
        except (BadReply, RequestRefused) as error:  # another model may do better: marked for it
            _log.warning("understood the built-in way: %s", error.message)
        else:
            self._is_away = False
            return reading.understanding(plain, self.method)
        return replace(plain, missing=(*plain.missing, NOT_BY_MODEL))

    def _warn_once(self, error: ModelUnavailable) -> None:
        """Warn, but not again before the model is back."""
        if not self._is_away:
            self._is_away = True
            _log.warning("understanding the built-in way: %s", error.message)

    def _read(self, source: SourceText) -> _Reading:
        """Have a document read, in smaller windows where the model takes or says less at once.

        Each document anew: the windows of one, by which its replies are kept, depend on no other.
        """
        size = WINDOW
        while True:
            try:
                return self._read_in_windows(source, size)
            except RequestTooLong:
                if size <= _MIN_WINDOW_SIZE:
                    raise
                size //= 2

    def _read_in_windows(self, source: SourceText, size: int) -> _Reading:
        """Have a document read window by window, each with what is known from those before.

        Of one that is too long, windows from its beginning to its end.
        """
        reading = _Reading(source)
        model = self._model.of(source.document_id)
        spans = text_windows(source.text, size)
        chosen = spread_evenly(spans, window_budget(source.share, self._most_windows, size))
        unread = sorted(set(range(len(spans))).difference(chosen))
        reading.unread = [spans[number] for number in unread]
        for number in chosen:
            start, end = spans[number]
            about = _about(source, number + 1, len(spans))
            earlier = [reading.carried()] if number else []
            data = fenced([about, *earlier, source.text[start:end]])
            reply = model.ask(self._prompt.text, data, DocumentReply, version=self._prompt.id)
            reading.add(reply, start)
        return reading


class _Reading(Struct):
    """What has been understood of a document so far."""

    source: SourceText
    gist: str = ""
    entities: dict[str, EntityMention] = field(default_factory=dict)
    topics: dict[str, None] = field(default_factory=dict)
    dates: dict[str, None] = field(default_factory=dict)
    facts: dict[tuple[int, int], Distilled] = field(default_factory=dict)
    importance: float = 0.0
    reason: str = ""
    dropped: int = 0
    unread: list[tuple[int, int]] = field(default_factory=list)
    """The windows that were left out."""

    def add(self, reply: DocumentReply, start: int) -> None:
        """Take in what the model says of the window that begins at ``start``."""
        self.gist = _tidy(reply.gist, _MAX_GIST_LENGTH) or self.gist
        self._add_entities(reply.entities)
        self.topics |= dict.fromkeys(_words(topic.lower() for topic in reply.topics))
        self.dates |= dict.fromkeys(filter(_is_date, reply.dates))
        if not self.reason or reply.importance > self.importance:
            self.importance = reply.importance
            self.reason = _tidy(reply.importance_reason, _MAX_WORDS_LENGTH)
        for fact in reply.facts:
            self._add_fact(fact, start)

    def carried(self) -> str:
        """What the model is given from the windows before."""
        entities = [
            {"name": entity.name, "type": entity.type}
            for entity in list(self.entities.values())[:_CARRIED_ENTITIES]
        ]
        return json.dumps({"gist": self.gist, "entities": entities}, ensure_ascii=False)

    def understanding(self, plain: Understanding, method: str) -> Understanding:
        """What it all comes to, on the ground of what the built-in way has found."""
        if self.unread:
            plain = replace(plain, missing=(*plain.missing, NOT_ALL_BY_MODEL))
            self._add_plain(plain)
        if self.gist and not self._supports(self.gist, plain.language):
            self.gist = ""
            self.dropped += 1
        if self.dropped and not self.facts:  # none of what it says is in the text
            self.facts = {(each.start, each.end): each for each in plain.distilled}
        return replace(
            plain,
            method=method,
            gist=self.gist or plain.gist,
            entities=tuple(self.entities.values()),
            topics=tuple(self.topics)[:MAX_TOPICS],
            dates=tuple(self.dates)[:MAX_DATES],
            importance=self.importance,
            signals={"model": self.importance},
            distilled=tuple(sorted(self.facts.values(), key=lambda fact: fact.start)),
            reason=self.reason,
            dropped=self.dropped,
        )

    def _supports(self, sentence: str, language: str) -> bool:
        source = self.source
        text = "\n".join((source.title, *map(str, source.origin.values()), source.text))
        evidence = Evidence(text, source.created_at or _UNKNOWN_DAY)
        return measure_support(sentence, [evidence], (language,) if language else ()).is_enough

    def _add_plain(self, plain: Understanding) -> None:
        """Take in what the built-in way has found where the model has not read."""
        unread = [self.source.text[start:end] for start, end in self.unread]
        for entity in plain.entities:
            key = entity.name.casefold()
            if len(self.entities) < MAX_ENTITIES and any(entity.name in text for text in unread):
                self.entities.setdefault(key, entity)
        self.dates |= dict.fromkeys(plain.dates)
        for statement in plain.distilled:
            is_unread = any(start <= statement.start < end for start, end in self.unread)
            if is_unread and len(self.facts) < MAX_STATEMENTS:
                self.facts[statement.start, statement.end] = statement

    def _add_entities(self, named: Iterable[NamedEntity]) -> None:
        for entity in named:
            key = " ".join(entity.name.split()).casefold()
            if key in self.entities or len(self.entities) >= MAX_ENTITIES:
                continue
            found = find_name(self.source.text, entity.name)
            if found is not None:  # what the document does not name, the model made up
                self.entities[key] = EntityMention(found[0], entity.type, found[1])

    def _add_fact(self, fact: Fact, near: int) -> None:
        found = find_quote(self.source.text, fact.quote, near)
        if found is None:
            self.dropped += 1
        elif found not in self.facts and len(self.facts) < MAX_STATEMENTS:
            self.facts[found] = _distil(self.source.text, fact, found)


def _distil(text: str, fact: Fact, span: tuple[int, int]) -> Distilled:
    start, end = span
    return Distilled(
        text=text[start:end],
        type=fact.type,
        start=start,
        end=end,
        importance=STATED_IMPORTANCE[fact.type],
        confidence=_CONFIDENCE,
        reason=f"model: {_tidy(fact.why, _MAX_WORDS_LENGTH)}",
        subject=_tidy(fact.subject, _MAX_WORDS_LENGTH),
        relation=_tidy(fact.relation, _MAX_WORDS_LENGTH),
        object=_tidy(fact.object, _MAX_WORDS_LENGTH),
    )


def _about(source: SourceText, number: int, count: int) -> str:
    """What the model is given of a document besides its text."""
    when = source.created_at.date().isoformat() if source.created_at else "unknown"
    known = {"title": source.title, "date": when, **source.origin}
    if source.tags:
        known["tags"] = list(dict.fromkeys([*source.tags, *source.origin.get("tags", [])]))
    return json.dumps({**known, "part": f"{number} of {count}"}, ensure_ascii=False)


def _tidy(text: str, most: int) -> str:
    return " ".join(text.split())[:most].rstrip()


def _words(texts: Iterable[str]) -> list[str]:
    return [tidy for text in texts if (tidy := _tidy(text, _MAX_WORDS_LENGTH))]


def _is_date(text: str) -> bool:
    found = _DATE.fullmatch(text)
    if found is None:
        return False
    year, month, day = (int(part) if part else 1 for part in found.groups())
    try:
        date(year, month, day)
    except ValueError:
        return False
    return True


MIN_QUOTE_LENGTH = 6
"""Characters; shorter ones stand in too many places to be evidence of anything."""


def find_quote(text: str, quote: str, near: int = 0) -> tuple[int, int] | None:
    """Return where a quote stands in a text, the first place from ``near`` on if there is one.

    Every character but white space must be the same.
    """
    words = quote.split()
    if len("".join(words)) < MIN_QUOTE_LENGTH:
        return None
    pattern = re.compile(r"\s+".join(map(re.escape, words)))
    found = pattern.search(text, near) or pattern.search(text)
    return found.span() if found else None


def find_name(text: str, name: str) -> tuple[str, int] | None:
    """Return a name as the text spells it first and how often it stands there, in any case."""
    words = name.split()
    if not words:
        return None
    pattern = r"\s+".join(map(re.escape, words))
    ends = (words[0][0], words[-1][-1])
    # Scripts without spaces between words have no borders that could be looked for.
    before, after = (r"\b" if end.isascii() and end.isalnum() else "" for end in ends)
    found = re.findall(f"{before}{pattern}{after}", text, re.IGNORECASE)
    return (" ".join(found[0].split()), len(found)) if found else None
