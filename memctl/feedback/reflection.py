"""Looking back: what went badly, what memory lacks, and what could be done about it.

Every finding names its evidence.  Nothing is changed; what is found can be kept as a memory.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from memctl.formatting import format_count
from memctl.language.inline_tags import without_wikilinks
from memctl.language.term_analysis import terms
from memctl.literals import LOOKING_BACK
from memctl.memories.memory_editing import Editor, Statement
from memctl.schema.table_names import REFLECTED
from memctl.store.ledger.repository import to_text
from memctl.store.tables.filter_expressions import col, memory_filter

if TYPE_CHECKING:
    from memctl.feedback.prompt_variants import VariantView
    from memctl.records import Filters, Memory
    from memctl.store.ledger.ledger import Ledger
    from memctl.store.ledger.log_repositories import QueryDetail, QueryEntry
    from memctl.store.tables.snapshot import Snapshot

FindingKind = Literal[
    "unanswered", "judged_bad", "conversation", "failed", "contradiction", "prompt", "asked_most"
]
REFLECTION = "reflection"
_POOR_SCORE = 0.5
_MOST = 10
_MAX_EVIDENCE = 20
_FREQUENT_QUESTIONS = 3
_LONGEST = 200
_SUGGESTIONS: Mapping[FindingKind, str] = {
    "unanswered": "Add to memory what is known of it.",
    "judged_bad": "Correct what the answers rely on, or state what is right as an example.",
    "conversation": "Keep to the feedback, and to the example where there is one.",
    "failed": "See why these questions could not be asked.",
    "contradiction": "Decide which of them holds, and edit the other.",
    "prompt": "Use the better version, or have another one written: memctl prompt improve.",
    "asked_most": "Keep it right and short; it could stand in the profile.",
}
_HEADING_LINE = re.compile(r"^#{1,6} .*$", re.MULTILINE)


class Finding(Struct, frozen=True):
    """One thing that was found on looking back."""

    kind: FindingKind
    topic: str
    text: str
    suggestion: str
    count: int
    evidence: tuple[str, ...]
    """Ids of questions, conversations, memories or versions of prompts."""


class Reflection(Struct, frozen=True):
    """What one knowledge base shows on looking back."""

    kb: str
    since: datetime | None
    findings: tuple[Finding, ...]
    memory_id: str | None = None
    """The memory that it became; None if none was asked for."""


class _Case(Struct, frozen=True):
    """One question or conversation, with what it is about."""

    id: str
    text: str
    note: str = ""


class Reflector(Struct, frozen=True):
    """Looks back at one knowledge base.

    Args:
        kb: Its name.
        ledger: Its ledger.
        snapshot: Returns its tables.
        variants: Returns the variants of its prompts, with their rewards.
        clock: What tells the time.
        is_shown: Whether something may be said of a namespace.
        is_open: Whether a question may be known of.
        readable: What the memories are limited to.
    """

    kb: str
    ledger: Ledger
    snapshot: Callable[[], Snapshot]
    variants: Callable[[], Sequence[VariantView]]
    clock: Callable[[], datetime]
    is_shown: Callable[[str], bool]
    is_open: Callable[[QueryEntry], bool]
    readable: Filters

    def reflect(self, since: datetime | None) -> Reflection:
        """Look back at what was asked and said from an instant on."""
        details = self._details(since)
        found = (
            *self._conversations(since),
            *self._judged_bad(since),
            *self._find_unanswered(since),
            *self._find_failed(details),
            *self._contradictions(),
            *self._prompts(),
            *self._most_cited(details),
        )
        return Reflection(self.kb, since, found)

    def keep(
        self, reflection: Reflection, editor: Editor, namespace: str, job: int | None = None
    ) -> Memory:
        """Keep what was found as a memory; it goes with the conversations it is about.

        Args:
            reflection: What was found.
            editor: Writes it.
            namespace: Where it goes.
            job: The job that it is part of, with which it is taken back.
        """
        now = self.clock()
        lines = [f"Looking back on {now:%d %B %Y}:"]
        lines += [f"- {each.text} {each.suggestion}" for each in reflection.findings]
        return editor.add(
            Statement(
                text="\n".join(lines),
                type=REFLECTION,
                namespace=namespace,
                source_ids=tuple(self._sources(reflection)),
                source_type="system",
                method=REFLECTED,
                source=LOOKING_BACK,
                metadata={
                    "findings": len(reflection.findings),
                    "since": None if reflection.since is None else reflection.since.isoformat(),
                },
            ),
            job=job,
        )

    # --- what is looked for, in this order ---

    def _conversations(self, since: datetime | None) -> Iterable[Finding]:
        """Conversations that went badly, by topic."""
        cases = [
            _Case(
                each.conversation_id,
                each.prompt or each.conversation_summary,
                each.feedback_text or each.prompt,
            )
            for each in self.ledger.summaries.latest(since)
            if each.reward_score is not None
            and each.reward_score < _POOR_SCORE
            and self.is_shown(each.namespace)
        ]
        return self._group("conversation", "conversation", "went badly", cases)

    def _judged_bad(self, since: datetime | None) -> Iterable[Finding]:
        """Questions whose answers were judged bad, by topic."""
        wanted = "at >= ? AND feedback = 'bad' AND question <> ''"
        return self._group("judged_bad", "answer", "judged bad", self._logged_cases(wanted, since))

    def _find_unanswered(self, since: datetime | None) -> Iterable[Finding]:
        """Questions without an answer, by topic: what memory lacks."""
        failed = "SELECT query_id FROM query_details WHERE status = 'failed'"
        wanted = (
            "at >= ? AND NOT found AND kind = 'query' AND question <> ''"
            f" AND query_id NOT IN ({failed})"
        )
        cases = self._logged_cases(wanted, since)
        return self._group("unanswered", "question", "without an answer", cases)

    def _find_failed(self, details: Iterable[QueryDetail]) -> Iterable[Finding]:
        """Questions that could not be asked, by what went wrong."""
        by_error: dict[str, list[str]] = {}
        for detail in details:
            if detail.status == "failed":
                by_error.setdefault(detail.error, []).append(detail.query_id)
        for error, ids in sorted(by_error.items(), key=lambda pair: -len(pair[1])):
            yield _make_finding(
                "failed", error, f"{format_count(len(ids), 'question')} failed: {error}.", ids
            )

    def _contradictions(self) -> Iterable[Finding]:
        """Memories that cannot both hold."""
        snapshot = self.snapshot()
        where = (col("relation_type") == "contradicts") & col("valid_to").is_null()
        pairs = snapshot.scan("relations", where, ["source_id", "target_id"]).to_pylist()
        ids = {row[side] for row in pairs for side in ("source_id", "target_id")}
        valid = memory_filter(self.readable, self.clock())
        held = snapshot.scan("memories", valid & col("id").is_in(sorted(ids)), ["id", "text"])
        texts = {row["id"]: row["text"] for row in held.to_pylist()}
        reported: set[frozenset[str]] = set()
        for row in pairs:
            one, other = row["source_id"], row["target_id"]
            if one not in texts or other not in texts or {one, other} in reported:
                continue
            reported.add(frozenset((one, other)))
            text = f"These contradict each other: {_short(texts[one])} / {_short(texts[other])}."
            yield _make_finding("contradiction", _topic([texts[one]]), text, (one, other))
            if len(reported) == _MOST:
                return

    def _prompts(self) -> Iterable[Finding]:
        """Versions of prompts that do worse than another one in use."""
        for winner in (each for each in self.variants() if each.is_winner):
            for each in self.variants():
                if each.task == winner.task and each.share and not each.is_winner:
                    text = (
                        f"Version {each.version} of the prompt {each.task} does worse"
                        f" ({each.mean_reward:.2f}) than {winner.version}"
                        f" ({winner.mean_reward:.2f})."
                    )
                    names = (f"{each.task}/{each.version}", f"{each.task}/{winner.version}")
                    yield _make_finding("prompt", each.task, text, names)

    def _most_cited(self, details: Iterable[QueryDetail]) -> Iterable[Finding]:
        """The memories that answers relied on most."""
        times = Counter[str]()
        for detail in details:
            times.update(set(detail.cited))
        often = [(id_, number) for id_, number in times.items() if number >= _FREQUENT_QUESTIONS]
        rows = sorted(often, key=lambda each: (-each[1], each[0]))[:_MOST]
        valid = memory_filter(self.readable, self.clock())
        wanted = valid & col("id").is_in([memory_id for memory_id, _ in rows])
        held = self.snapshot().scan("memories", wanted, ["id", "text"]).to_pylist()
        texts = {row["id"]: row["text"] for row in held}
        for memory_id, number in rows:
            if memory_id in texts:
                said = _short(texts[memory_id])
                text = f"Answers relied {format_count(number, 'time')} on: {said}."
                yield _make_finding("asked_most", _topic([said]), text, (memory_id,), number)

    # --- inside ---

    def _logged_cases(self, where: str, since: datetime | None) -> list[_Case]:
        return [
            _Case(each.query_id, each.question, each.question)
            for each in self._find_asked(where, since)
            if all(map(self.is_shown, each.filters.get("namespaces") or ()))
        ]

    def _details(self, since: datetime | None) -> list[QueryDetail]:
        """Return what is noted besides of the questions since an instant, in their order."""
        known = {each.query_id: each for each in self.ledger.query_details.all()}
        asked = self._find_asked("at >= ?", since)
        return [known[each.query_id] for each in asked if each.query_id in known]

    def _find_asked(self, where: str, since: datetime | None) -> list[QueryEntry]:
        """Return the questions for which an SQL condition holds, of which may be known."""
        found = self.ledger.queries.select(where, "" if since is None else to_text(since))
        return [each for each in found if self.is_open(each)]

    def _group(
        self, kind: FindingKind, what: str, how: str, cases: Sequence[_Case]
    ) -> Iterable[Finding]:
        for topic, some in _by_topic(cases)[:_MOST]:
            said = "; ".join(dict.fromkeys(_short(each.note or each.text) for each in some[:3]))
            end = "" if said.endswith(("?", "!", ".", "…")) else "."
            text = f"{format_count(len(some), what)} on {topic} {how}: {said}{end}"
            yield _make_finding(kind, topic, text, [each.id for each in some], len(some))

    def _sources(self, reflection: Reflection) -> Iterable[str]:
        """Yield the memories that a reflection rests on: summaries, and what is found of others."""
        named = {id_ for each in reflection.findings for id_ in each.evidence}
        ids = [id_ for id_ in named if id_.startswith(("m_", "i_"))]
        ids += [
            each.memory_id
            for each in self.ledger.summaries.latest()
            if each.conversation_id in named and each.memory_id
        ]
        ids += [
            each.example_id
            for each in self.ledger.feedback.since(None)
            if each.example_id and (each.session_id in named or each.query_id in named)
        ]
        there = self.snapshot().get("memories", sorted(set(ids)), ["id"])["id"].to_pylist()
        yield from sorted(there)


def _make_finding(
    kind: FindingKind,
    topic: str,
    text: str,
    evidence: Iterable[str],
    count: int | None = None,
) -> Finding:
    ids = tuple(evidence)
    number = len(ids) if count is None else count
    return Finding(kind, topic, text, _SUGGESTIONS[kind], number, ids[:_MAX_EVIDENCE])


def _short(text: str) -> str:
    shown = without_wikilinks(text)
    plain = " ".join((_HEADING_LINE.sub("", shown).strip() or shown).split()).rstrip(".")
    return plain if len(plain) <= _LONGEST else f"{plain[: _LONGEST - 1]}…"


def _by_topic(cases: Sequence[_Case]) -> list[tuple[str, list[_Case]]]:
    """Return groups of cases that share their most frequent content word, the largest first."""
    words = [_content(each.text) for each in cases]
    frequent = Counter(word for found in words for word in found)
    groups: dict[str, list[int]] = {}
    for number, found in enumerate(words):
        best = max(found, key=lambda word: (frequent[word], len(word), word), default="")
        groups.setdefault(best, []).append(number)
    named = [
        (_topic([cases[number].text for number in numbers]), [cases[number] for number in numbers])
        for numbers in groups.values()
    ]
    return sorted(named, key=lambda group: (-len(group[1]), group[0]))


def _content(text: str) -> dict[str, str]:
    """Return the content words of a text by their stems, as they are first written."""
    found: dict[str, str] = {}
    for word in text.split():
        plain = word.strip(".,;:!?\"'()[]{}«»“”„…")
        stems = terms(plain)
        if stems and len(plain) > 2:
            found.setdefault(stems[0], plain)
    return found


def _topic(texts: Sequence[str]) -> str:
    """Return up to three words that tell what some texts are about."""
    contents = [_content(text) for text in texts]
    counts = Counter(stem for found in contents for stem in found)
    written = {stem: word for found in reversed(contents) for stem, word in found.items()}
    best = sorted(counts, key=lambda stem: (-counts[stem], -len(stem), stem))[:3]
    order = list(written)
    return " ".join(written[stem] for stem in sorted(best, key=order.index)) or "other things"
