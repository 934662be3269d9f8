"""Insights that a model writes, each checked against the memories that it was given.

The model sees numbers in place of ids.  What cites a number that it was not given is dropped and
counted, and so is an insight that rests on fewer than two memories.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pydantic import ConfigDict, Field

from memctl.consolidation import insight_wording
from memctl.consolidation.insight_drafts import Draft, Group, connections_within, importance_of
from memctl.errors import BadReply, ModelError, ModelRefused, ModelUnavailable, RequestRefused
from memctl.language.term_analysis import terms
from memctl.literals import CONTRADICTS
from memctl.prompts import fenced
from memctl.records import Connection, Memory
from memctl.understanding.evidence_support import Evidence, measure_support
from memctl.understanding.model_replies import StrictModel

if TYPE_CHECKING:
    from memctl.models.chat_model import ChatModel, ChatModels
    from memctl.prompts import Prompt

_FORM = (
    'Reply with JSON alone: {"text": "...", "connects": "...", "changed": "", "contradictions": '
    '[{"first": 1, "second": 2}], "sources": [1, 2], "connections": [{"from": 1, "to": 2, '
    '"relationship": "follows"}]}.'
)
_LONGEST_MEMORY = 2_000
_LONGEST_TITLE = 80
_LONGEST_RELATIONSHIP = 40
_FEWEST_SOURCES = 2
_UNMEASURED = 0.5
"""Weight of a connection, and confidence in a group, that only the model sees."""
_NOT_A_LETTER = re.compile(r"\W+")


class Contradiction(StrictModel):
    """Two memories that cannot both be true."""

    first: int
    second: int


class ConnectionReply(StrictModel):
    """How one memory hangs together with another."""

    model_config = ConfigDict(populate_by_name=True)

    start: int = Field(alias="from")
    end: int = Field(alias="to")
    relationship: str


class InsightReply(StrictModel):
    """What memories say together; memories by the numbers that they were given under."""

    text: str
    connects: str
    changed: str
    contradictions: list[Contradiction]
    sources: list[int]
    connections: list[ConnectionReply]


class InsightWriter:
    """Lets a model write the insights of one run.

    Args:
        chats: The model.
        prompt: Its instructions.
        waits: Whether groups wait while it is unavailable, instead of getting built-in insights.
    """

    def __init__(self, chats: ChatModels, prompt: Prompt, *, waits: bool) -> None:
        self._chats = chats
        self._prompt = prompt
        self._waits = waits
        self._refused: ModelRefused | None = None
        self.written = 0
        """Insights that the model has written."""
        self.waiting = 0
        """Groups that wait for it."""
        self.dropped = 0
        """What it cited without having been given it."""
        self.problem: ModelError | None = None
        """Why it did not write, where it did not."""

    @property
    def method(self) -> str:
        """Which model writes by which prompt; stored with every insight."""
        return f"model/{self._chats.usual.name}/{self._prompt.id}"

    def tell(self, group: Group, connections: Sequence[Connection]) -> tuple[Draft, ...] | None:
        """Return what the model makes of a group.

        Args:
            group: Memories that belong together.
            connections: How they hang together.

        Returns:
            The model's insight, if it has a valid one; None where the group waits for the model.
        """
        if len({m.document_id or m.id for m in group.members}) < _FEWEST_SOURCES:
            return ()
        chat = self._chats.of(group.members[0].namespace)
        if chat is None:
            return ()
        try:
            reply = self._ask(chat, group)
        except (BadReply, RequestRefused) as error:
            self.problem = self.problem or error
            return ()
        except (ModelUnavailable, ModelRefused) as error:
            self.problem = error
            self.waiting += self._waits
            return None if self._waits else ()
        return self._check_reply(reply, group, connections)

    def _ask(self, chat: ChatModel, group: Group) -> InsightReply:
        if self._refused is not None:  # it would be refused again, however often it is asked
            raise self._refused
        data = fenced([_block(n, memory) for n, memory in enumerate(group.members, start=1)])
        instructions = f"{self._prompt.text}\n\n{_FORM}"
        try:
            return chat.ask(instructions, data, InsightReply, version=self._prompt.id)
        except ModelRefused as error:
            self._refused = error
            raise

    def _check_reply(
        self, reply: InsightReply, group: Group, connections: Sequence[Connection]
    ) -> tuple[Draft, ...]:
        members = self._members(reply.sources, group)
        connected = self._connections(reply, group, connections)
        if len(members) < _FEWEST_SOURCES or not _insight_text(reply):
            return ()
        self.written += 1
        return (self._draft(reply, group, members, tuple(dict.fromkeys(connected))),)

    def _members(self, numbers: Iterable[int], group: Group) -> list[Memory]:
        wanted = set(numbers)
        known = [n for n in sorted(wanted) if 1 <= n <= len(group.members)]
        self.dropped += len(wanted) - len(known)
        return [group.members[n - 1] for n in known]

    def _connections(
        self, reply: InsightReply, group: Group, found: Sequence[Connection]
    ) -> list[Connection]:
        """Return the built-in connections, then those of the model."""
        weights = {(c.source_id, c.target_id): c.weight for c in found}
        replied = [(item.start, item.end, item.relationship) for item in reply.connections]
        for pair in reply.contradictions:
            first, second = sorted((pair.first, pair.second))
            replied += [(first, second, CONTRADICTS)]
        connections = list(found)
        for start, end, relationship in replied:
            if len(self._members((start, end), group)) < 2:
                continue
            ids = (group.members[start - 1].id, group.members[end - 1].id)
            weight = weights.get(ids, _UNMEASURED)
            connections.append(Connection(*ids, _relationship(relationship), weight))
        return connections

    def _draft(
        self,
        reply: InsightReply,
        group: Group,
        members: Sequence[Memory],
        connections: tuple[Connection, ...],
    ) -> Draft:
        inside = connections_within(connections, members)
        contradicts = any(item.relationship == CONTRADICTS for item in inside)
        changed = bool(reply.changed.strip())
        text = _insight_text(reply)
        title = (
            _line(reply.connects)[:_LONGEST_TITLE]
            or insight_wording.quotable(text)[:_LONGEST_TITLE]
        )
        return Draft(
            kind="contradiction" if contradicts else "change" if changed else "common",
            about=" ".join(sorted(set(terms(title)))),
            title=insight_wording.capitalise(title),
            text=text,
            sources=tuple(members),
            connections=inside,
            importance=importance_of(members, 0.3 if contradicts else 0.15 if changed else 0.05),
            confidence=_confidence(text, group, members),
            method=self.method,
            is_whole=True,
        )


def _block(number: int, memory: Memory) -> str:
    return (
        f"[{number}] {insight_wording.attribution(memory)}\n{memory.text[:_LONGEST_MEMORY].strip()}"
    )


def _insight_text(reply: InsightReply) -> str:
    text, changed = _line(reply.text), _line(reply.changed)
    return text if not text or changed in text else f"{text} {changed}"


def _line(text: str) -> str:
    return " ".join(text.split())


def _relationship(relationship: str) -> str:
    """Return the model's word for a relationship in the form of the built-in ones."""
    word = _NOT_A_LETTER.sub("_", relationship.lower()).strip("_")[:_LONGEST_RELATIONSHIP]
    return word or "similar"


def _confidence(text: str, group: Group, members: Sequence[Memory]) -> float:
    """How strongly the memories hang together, less where the text is not in their words."""
    evidence = [Evidence(f"{m.title}\n{m.heading}\n{m.text}", m.created_at) for m in members]
    found = measure_support(text, evidence, ("en",))
    share = found.share if found.is_enough else found.share / 2
    return round((group.cohesion(members) or _UNMEASURED) * share, 3)
