"""The profile of a user: what to know before a conversation begins, renewed when one ends.

Former versions are kept: who believed what, and when.  Without a model it is put together from what
the user stated; with one it is written from that, the summary and the former profile.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict

from memctl.errors import MemctlError, UsageError
from memctl.identity import DEFAULT_USER, checked_name, conversations_of
from memctl.ingest.document_records import REPLYING
from memctl.language.date_mentions import has_passed
from memctl.language.sentence_splitting import QUESTION_MARKS, split_sentences
from memctl.language.word_lists import any_phrase, phrases_of_all
from memctl.prompts import fenced
from memctl.records import Filters
from memctl.store.ledger.session_repositories import PROFILE_FIELDS, Profile
from memctl.store.tables.filter_expressions import memory_filter
from memctl.understanding.sentence_reading import bare_turn
from memctl.understanding.triggers import quotations

if TYPE_CHECKING:
    from memctl.config import NamespaceSettings
    from memctl.models.chat_model import ChatModel
    from memctl.prompts import Prompt
    from memctl.store.ledger.ledger import Ledger
    from memctl.store.ledger.session_repositories import Session
    from memctl.store.tables.snapshot import Snapshot

BY_USER, BUILTIN = "user", "builtin"
_MAX_LINES = 8
_LONGEST_LINE = 300
"""Characters of a statement."""
_LONGEST_SUMMARY = 1_200
_LAST_TURNS = 6
_OF_ONESELF = re.compile(r"\b(?:i|i['’]\w+|my|me|mine|ich|mein\w*|je|mon|ma|yo|mi)\b", re.I)
"""What "we" do is of a project as often as of the user."""
_INTRODUCING = ("name", "home", "work")
_DAY_BEHIND = re.compile(r" \(\d{4}-\d\d-\d\d\)$")
_OTHERS_WORDS = re.compile(r":(?!//|\d|[()-])|[：\"“”„«»`]|\n\s*\n")
_STATED = ("preference", "important_fact", "memories", "plan", "decision")
_COLUMNS = ("id", "type", "text", "speaker", "created_at", "importance", "session_id")
_log = logging.getLogger(__name__)

Row = Mapping[str, Any]


class ProfileReply(BaseModel):
    """What a model may write; every field is required and no other is allowed."""

    model_config = ConfigDict(extra="forbid")

    user_info: str
    last_conversation_summary: str
    recent_goal_and_status: str
    important_context: str
    agent_beliefs: str
    agent_info: str


class Profiles(Struct, frozen=True):
    """The profiles of one knowledge base.

    Args:
        ledger: Where they are.
        namespaces: Where the conversations of a user go.
        snapshot: Returns the tables.
        clock: What tells the time.
        model: Returns the model for a namespace with its instructions; None where there is none.
        clean: Takes out what looks like a secret, where that is wanted.
    """

    ledger: Ledger
    namespaces: NamespaceSettings
    snapshot: Callable[[], Snapshot]
    clock: Callable[[], datetime]
    model: Callable[[str], tuple[ChatModel, Prompt] | None]
    clean: Callable[[str], str]

    def get(self, user: str | None = None, agent: str | None = None) -> Profile | None:
        """Return the profile of a user as it is now; None where there is none."""
        found = self.versions(user, agent)
        return found[0] if found else None

    def profile_to_show(self, user: str | None = None, agent: str | None = None) -> Profile | None:
        """Return the profile of a user; where no agent is named, else the latest of any agent."""
        if agent is not None:
            return self.get(user, agent)
        return self.ledger.profiles.profile_to_show(self._namespace(user))

    def versions(self, user: str | None = None, agent: str | None = None) -> Sequence[Profile]:
        """Return all versions of a profile, the latest first."""
        return self.ledger.profiles.versions(self._namespace(user), agent or "")

    def set(
        self, fields: Mapping[str, str], user: str | None = None, agent: str | None = None
    ) -> Profile:
        """Write fields of a profile; the others stay as they are.

        Raises:
            UsageError: There is no such field, or nothing to write.
        """
        unknown = [name for name in fields if name not in PROFILE_FIELDS]
        if unknown or not fields:
            what = f"a profile has no {unknown[0]!r}" if unknown else "nothing to write"
            raise UsageError(what, f"its fields are {', '.join(PROFILE_FIELDS)}")
        user = checked_name(user, "a user") or DEFAULT_USER
        agent = checked_name(agent, "an agent") or ""
        cleaned: dict[str, Any] = {name: self.clean(text.strip()) for name, text in fields.items()}
        with self.ledger.transaction():
            former = self.get(user, agent) or self._empty(user, agent)
            written = replace(former, **cleaned)
            return self._save(former, replace(written, by=BY_USER, session_id=""))

    def renew(self, session: Session) -> Profile | None:
        """Write the profile anew after a conversation; None where nothing is to be said."""
        agent = session.agent_id or ""
        former = self.get(session.user_id, agent) or self._empty(session.user_id, agent)
        rows = self._stated_rows(session.namespace)
        summary = self._summary(session)
        own = self._introductions(session, former)
        built = replace(former, **self._built_in(rows, summary, session.user_id, agent, own))
        made = self._by_model(former, built, session.namespace) or replace(built, by=BUILTIN)
        if not any(getattr(made, name) for name in PROFILE_FIELDS):
            return None
        return self._save(former, replace(made, session_id=session.session_id))

    # --- inside ---

    def _namespace(self, user: str | None) -> str:
        return conversations_of(self.namespaces, checked_name(user, "a user") or DEFAULT_USER)

    def _empty(self, user: str, agent: str) -> Profile:
        namespace = self._namespace(user)
        return Profile(
            namespace=namespace, user_id=user, agent_id=agent, version=0, at=self.clock()
        )

    def _save(self, former: Profile, profile: Profile) -> Profile:
        if all(getattr(profile, name) == getattr(former, name) for name in PROFILE_FIELDS):
            return former
        saved = replace(profile, version=former.version + 1, at=self.clock())
        self.ledger.profiles.save(saved)
        return saved

    def _stated_rows(self, namespace: str) -> list[Row]:
        """Return what was stated and still holds, the newest first."""
        filters = Filters(namespaces=(namespace,), types=_STATED, levels=("memory",))
        table = self.snapshot().scan("memories", memory_filter(filters, self.clock()), _COLUMNS)
        rows: list[Row] = table.to_pylist()
        return sorted(rows, key=lambda row: (row["created_at"], row["id"]), reverse=True)

    def _summary(self, session: Session) -> str:
        """Return what a conversation was about: its summary, or what was said last."""
        if session.summary.strip():
            return session.summary.strip()[:_LONGEST_SUMMARY]
        filters = Filters(
            namespaces=(session.namespace,), session=session.session_id, types=("gist",)
        )
        found = self.snapshot().scan("memories", memory_filter(filters, self.clock()), ["text"])
        if found.num_rows:
            return " ".join(found["text"].to_pylist())[:_LONGEST_SUMMARY].strip()
        turns = self.ledger.turns.last((session.namespace, session.session_id), _LAST_TURNS)
        said = [f"{turn.sender}: {turn.content}" for turn in turns if turn.content.strip()]
        return "\n".join(said)[:_LONGEST_SUMMARY].strip()

    def _built_in(
        self,
        rows: Sequence[Row],
        summary: str,
        user: str,
        agent: str,
        introductions: Sequence[str],
    ) -> Mapping[str, Any]:
        """Return the fields that are put together from what was stated."""
        facts = [row for row in rows if row["type"] == "important_fact"]
        own = [
            row
            for row in facts
            if row["speaker"] not in REPLYING and _OF_ONESELF.search(bare_turn(row["text"]))
        ]
        preferences = [row for row in rows if row["type"] == "preference"]
        today = self.clock().date()
        aims = [row for row in rows if row["type"] in ("plan", "decision", "memories")]
        goals = [row for row in aims if not _is_over(row, today)]
        by_hand = self._written_by_user(user, agent, "user_info")
        return {
            "user_info": _lines("\n".join([by_hand, *introductions]), [*preferences, *own]),
            "last_conversation_summary": summary,
            "recent_goal_and_status": _lines("", goals, with_days=True),
            "important_context": _lines(
                self._written_by_user(user, agent, "important_context"),
                [row for row in facts if row not in own] or facts,
            ),
        }

    def _introductions(self, session: Session, former: Profile) -> list[str]:
        """Return what the user says of who they are, the latest of each kind with its day."""
        turns = self.ledger.turns.of((session.namespace, session.session_id))
        said = [
            (sentence, f"{sentence} ({turn.at.date()})")
            for turn in reversed(turns)
            if turn.sender == "user"
            for sentence in _own_sentences(turn.content)
        ]
        known = [(line, line) for line in former.user_info.split("\n") if _DAY_BEHIND.search(line)]
        latest: dict[str, str] = {}
        for sentence, line in (*said, *known):
            for kind in _INTRODUCING:
                if _introduces(kind).match(sentence) and not _is_doubtful(sentence):
                    latest.setdefault(kind, line)
        return list(dict.fromkeys(latest[kind] for kind in _INTRODUCING if kind in latest))

    def _written_by_user(self, user: str, agent: str, name: str) -> str:
        """Return what was last written into a field by hand; "" if nothing was."""
        versions = self.versions(user, agent)
        for place, each in enumerate(versions):
            before = getattr(versions[place + 1], name) if place + 1 < len(versions) else ""
            if each.by == BY_USER and getattr(each, name) != before:
                text: str = getattr(each, name)
                return text
        return ""

    def _by_model(self, former: Profile, built: Profile, namespace: str) -> Profile | None:
        """Return the profile that a model writes; None where there is none or it fails."""
        try:
            if (found := self.model(namespace)) is None:
                return None
            chat, prompt = found
            data = fenced(
                [_profile_text("Former profile", former), _profile_text("Known since", built)]
            )
            reply = chat.ask(prompt.text, data, ProfileReply, version=prompt.id)
        except MemctlError as error:
            _log.warning("the profile was put together without the model: %s", error.message)
            return None
        fields: dict[str, Any] = {
            name: self.clean(text.strip()) for name, text in reply.model_dump().items()
        }
        return replace(former, **fields, by=f"model/{chat.name}/{prompt.id}")


def _own_sentences(message: str) -> list[str]:
    """Return the sentences of a message that nobody else can have said, the last one first.

    What stands behind a colon or an empty line, as what is to be translated does, in quotation
    marks or in code may be another's.
    """
    start = opening.end() if (opening := _opening().match(message)) else 0
    quoted = quotations(message)
    spans = [
        (first, last)
        for first, last in split_sentences(message)
        if not any(first < end and begin < last for begin, end in quoted)
    ]
    bare = list(message)
    for begin, end in quoted:
        bare[begin:end] = " " * (end - begin)
    others = _OTHERS_WORDS.search("".join(bare), start)
    limit = others.start() if others else len(message)
    own = [message[first:last] for first, last in spans if last <= limit]
    return [each for each in reversed(own) if len(each) <= _LONGEST_LINE]


@cache
def _opening() -> re.Pattern[str]:
    """Return what matches the words before what people say of themselves: "Hi Max, ..."."""
    words = any_phrase(phrases_of_all("introducing", "opening"))
    return re.compile(rf"(?:(?:{words})\b(?:[^\S\n]+\w+)?[,.!\s]+)?", re.IGNORECASE)


@cache
def _introduces(kind: str) -> re.Pattern[str]:
    """Return what matches a sentence in which people say their name, home or work.

    It is their own if it begins with that, or with another clause of theirs.
    """
    said = any_phrase(phrases_of_all("introducing", kind))
    own = any_phrase(
        phrase for key in ("self", *_INTRODUCING) for phrase in phrases_of_all("introducing", key)
    )
    before = rf"(?:(?:{own})\s.*?(?:[,;–—]\s*|\b(?:and|und|et|y|e|en)\s+))?"
    return re.compile(rf"{_opening().pattern}{before}(?:{said})\s", re.IGNORECASE | re.DOTALL)


def _is_doubtful(sentence: str) -> bool:
    """Return whether a sentence asks, or has a word that makes it another's or a supposition.

    Those words are in small letters: a name may be Said.
    """
    return any(mark in sentence for mark in QUESTION_MARKS) or bool(_doubts().search(sentence))


@cache
def _doubts() -> re.Pattern[str]:
    return re.compile(rf"\b(?:{any_phrase(phrases_of_all('introducing', 'doubt'))})\b")


def _is_over(row: Row, today: date) -> bool:
    """Return whether a plan is for a day that has passed."""
    return row["type"] == "plan" and has_passed(bare_turn(row["text"]), row["created_at"], today)


def _profile_text(title: str, profile: Profile) -> str:
    fields = "\n".join(f"{name}: {getattr(profile, name)}" for name in PROFILE_FIELDS)
    return f"{title}\n{fields}"


def _lines(value: str, rows: Iterable[Row], *, with_days: bool = False) -> str:
    """Return statements one a line, each once, after what was written by hand.

    A plan or a decision has its day behind it: a later one may say otherwise.
    """
    by_hand = dict.fromkeys(line.strip() for line in value.splitlines() if line.strip())
    said: dict[str, str] = {}
    for row in rows:
        text = " ".join(bare_turn(row["text"]).split())[:_LONGEST_LINE]
        if text not in by_hand:
            said.setdefault(text, f"{text} ({row['created_at'].date()})" if with_days else text)
    return "\n".join([*by_hand, *list(said.values())[:_MAX_LINES]])
