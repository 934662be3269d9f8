"""Learnings: lessons from experience that gain by being confirmed and fade while they are not used.

Those that are marked for it, or that several agents confirm, are copied into the namespace that
all users share.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from memctl.errors import MemctlError, UsageError
from memctl.feedback.judging import relied_on
from memctl.identity import conversations_of
from memctl.ids import stated_memory_id
from memctl.literals import LEARNING
from memctl.memories.importance_decay import Decay
from memctl.records import Filters, Memory
from memctl.schema.arrow_tables import memory_rows
from memctl.store.ledger.work_repositories import Confirmation
from memctl.store.tables.filter_expressions import col, memory_filter
from memctl.upkeep.tidying import note_changes
from memctl.upkeep.upkeep_job import Outcome, UpkeepContext

if TYPE_CHECKING:
    from memctl.home import Home
    from memctl.knowledge_base import KnowledgeBase, KnowledgeBases
    from memctl.memories.memory_editing import Statement
    from memctl.store.ledger.ledger import Ledger
    from memctl.store.ledger.log_repositories import QueryEntry
    from memctl.store.tables.snapshot import Snapshot

_log = logging.getLogger(__name__)
SHARED = "shared"
"""The method of memories that are copies of learnings."""
OF_SKILL = "skill"
"""The method of learnings that are notes of uses of skills."""
SHARE = "share"
"""The metadata by which a learning is marked to be shared."""
AGENTS_TO_SHARE = 3
"""This many agents have to say the same before it is shared unasked."""
WEIGHTS: Mapping[str, float] = {"confidence": 0.4, "feedback": 0.3, "recency": 0.2, "sources": 0.1}
"""What the quality of an entry is made of; what is not known of it is left out."""
_MANY_SOURCES = 3


class Learning(Struct, frozen=True):
    """One lesson as it stands now."""

    id: str
    kb: str
    text: str
    importance: float
    """As it is now: with what confirmations added, less what disuse took."""
    confirmations: int
    outcome: str | None
    """``success`` or ``failure``, where that is known."""
    context: str | None
    """What it was learnt in."""
    namespace: str
    agent: str | None
    created_at: datetime
    quality: float
    """From 0 to 1; see ``quality_of``."""


class JudgementCounts(Struct, frozen=True):
    """How often answers that used a memory were judged."""

    good: int = 0
    bad: int = 0

    @property
    def share(self) -> float | None:
        """The share that was good; None where none was judged."""
        counts = self.good + self.bad
        return self.good / counts if counts else None


NOT_JUDGED = JudgementCounts()


def query_learnings(
    bases: KnowledgeBases,
    now: datetime,
    *,
    query: str = "",
    filters: Filters | None = None,
    limit: int = 10,
) -> list[Learning]:
    """Return learnings, the most important first; with a query, those that it finds, best first.

    They are ordered across knowledge bases.
    """
    filters = replace(filters or Filters(), types=(LEARNING,))
    if query:
        hits = bases.queries.query(query, filters=filters, limit=limit, answer=False).hits
        order = {(hit.kb, hit.memory_id): at for at, hit in enumerate(hits)}
        found = [
            each
            for base in bases
            for each in _learnings(base, now, [id_ for kb, id_ in order if kb == base.name])
        ]
        return sorted(found, key=lambda each: order[each.kb, each.id])
    found = []
    for base in bases:
        table = base.memories.list(filters, limit=limit, sort="importance", descending=True)
        found += _learnings(base, now, table["id"].to_pylist())
    return sorted(found, key=lambda each: each.importance, reverse=True)[:limit]


def _learnings(base: KnowledgeBase, now: datetime, ids: Sequence[str]) -> list[Learning]:
    snapshot, ledger = base.store.snapshot(), base.store.ledger
    known = {each.id: each for each in memory_rows(snapshot.get("memories", ids))}
    decay, counts = base.resources.services.decay(ids), judgements(ledger)
    return [
        _learning(base.name, known[id_], decay, counts.get(id_, NOT_JUDGED), now)
        for id_ in ids
        if id_ in known
    ]


def _learning(
    kb: str, memory: Memory, decay: Decay, counts: JudgementCounts, now: datetime
) -> Learning:
    row = asdict(memory)
    outcome, context = memory.metadata.get("outcome"), memory.metadata.get("context")
    return Learning(
        id=memory.id,
        kb=kb,
        text=memory.text,
        importance=decay.importance(row, now),
        confirmations=len(decay.confirmations.get(memory.id, ())),
        outcome=None if outcome is None else str(outcome),
        context=None if context is None else str(context),
        namespace=memory.namespace,
        agent=memory.agent_id,
        created_at=memory.created_at,
        quality=quality_of(row, decay, counts, now),
    )


def quality_of(
    row: Mapping[str, Any], decay: Decay, counts: JudgementCounts, now: datetime
) -> float:
    """Return how good an entry is, from 0 to 1.

    It is 0.4 confidence + 0.3 share of good feedback on answers that used it + 0.2 recency + 0.1
    number of sources, of which three are many; without feedback the other parts count for all.
    """
    sources = len(row["source_ids"]) + len(decay.confirmations.get(row["id"], ()))
    parts = {
        "confidence": row["confidence"],
        "feedback": counts.share,
        "recency": 0.5 ** (decay.idle_days(row, now) / decay.half_life),
        "sources": min(1.0, (1 + sources) / _MANY_SOURCES),
    }
    known = {name: value for name, value in parts.items() if value is not None}
    weight = sum(WEIGHTS[name] for name in known)
    return float(sum(WEIGHTS[name] * value for name, value in known.items()) / weight)


def judgements(ledger: Ledger) -> dict[str, JudgementCounts]:
    """Return how answers were judged that used memories, by the id of the memory."""
    found: dict[str, JudgementCounts] = {}
    for entry, ids in _judged_questions(ledger, "feedback IS NOT NULL"):
        for id_ in ids:
            known = found.get(id_, JudgementCounts())
            is_good = entry.feedback == "good"
            found[id_] = JudgementCounts(known.good + is_good, known.bad + (not is_good))
    return found


def _judged_questions(ledger: Ledger, which: str) -> Iterator[tuple[QueryEntry, Sequence[str]]]:
    """Yield the questions that were judged, each with the memories that its answer relied on."""
    of_these = f"query_id IN (SELECT query_id FROM query_log WHERE {which})"
    details = {each.query_id: each for each in ledger.query_details.select(of_these)}
    for entry in ledger.queries.select(which):
        yield entry, relied_on(entry, details.get(entry.query_id))


# --- confirming ----------------------------------------------------------------------------------


def confirm_learnings(context: UpkeepContext) -> Outcome:
    """Learn from the notes of uses of skills, and confirm what was of use or is said by others."""
    ledger, noted = context.base.store.ledger, _notes_of_skills(context)
    learnt = _learn(context, noted)
    snapshot = context.base.store.snapshot()
    columns = ["id", "agent_id"]
    holds = memory_filter(Filters(types=(LEARNING,)), context.now)
    known = snapshot.scan("memories", holds, columns).to_pylist()
    agents = {row["id"]: row["agent_id"] for row in known}
    found = [
        Confirmation(id_, f"question {entry.query_id}", context.now, context.job)
        for entry, ids in _judged_questions(ledger, "feedback = 'good'")
        for id_ in ids
        if id_ in agents
    ]
    found += [
        Confirmation(id_, f"agent {agent}", context.now, context.job)
        for id_, agent in _repeated_by_others(snapshot, agents)
    ]
    found += [
        Confirmation(id_, f"agent {other.agent_id}", context.now, context.job)
        for id_, (first, *others) in noted.items()
        for other in others
        if id_ in agents and other.agent_id not in (None, first.agent_id)
    ]
    confirmed = ledger.confirmations.of(agents)
    there = {(id_, each.source) for id_, some in confirmed.items() for each in some}
    new = [each for each in dict.fromkeys(found) if (each.memory_id, each.source) not in there]
    ids = list(dict.fromkeys(each.memory_id for each in new))
    changed = [*learnt, *ids]
    if changed and not context.options.dry_run:
        with ledger.transaction():
            ledger.confirmations.add(new)
            ledger.audit.add(context.now, "job learnings", changed)
    counts = {"learnings": len(agents), "confirmations": len(new), "from_skills": len(learnt)}
    return Outcome(counts, changed)


def _notes_of_skills(context: UpkeepContext) -> dict[str, list[Statement]]:
    """Return what the notes of uses of skills say, by the id of the learning, the earliest first.

    Each belongs to the conversations of the user whose use it was.
    """
    from memctl.memories.memory_editing import Statement

    stored, names = context.base.store.ledger.skills, context.config.namespaces
    skills = {each.skill_id: each for each in stored.all()}
    found: dict[str, list[Statement]] = {}
    for use in stored.uses.select("note != ''"):
        skill = skills.get(use.skill_id)
        if skill is None:
            continue
        statement = Statement(
            text=f"{skill.declared_name}: {use.note}",
            type=LEARNING,
            namespace=conversations_of(names, use.user_id),
            session_id=use.session_id,
            created_at=use.at,
            metadata={
                "outcome": "success" if use.success else "failure",
                "context": use.task or skill.slug,
                "skill": skill.slug,
                "skill_version": use.version,
            },
            agent_id=use.agent or None,
            method=OF_SKILL,
            source=f"skill {skill.slug}",
        )
        id_ = stated_memory_id(statement.namespace, LEARNING, statement.text)
        found.setdefault(id_, []).append(statement)
    return found


def _learn(context: UpkeepContext, statements: Mapping[str, Sequence[Statement]]) -> list[str]:
    """Store what is not known yet, and was not deleted; return the ids of the learnings.

    A note that is refused is left out, so that it does not end the job each time.
    """
    store = context.base.store
    there = store.snapshot().get("memories", list(statements), ["id"])["id"].to_pylist()
    new = sorted(statements.keys() - {*there} - store.ledger.deletions.ids())
    if new and not context.options.dry_run:

        def refuse(statement: Statement, error: UsageError) -> None:
            """Leave out a note."""
            _log.warning("a note of %s is not learnt: %s", statement.source, error.message)

        editor = context.base.services.editor()
        return editor.add_all((statements[id_][0] for id_ in new), refuse, job=context.job)
    return new


def _repeated_by_others(
    snapshot: Snapshot, agents: Mapping[str, str | None]
) -> Iterable[tuple[str, str]]:
    """Yield learnings with another agent that says nearly the same."""
    alike = col("relation_type").is_in(("near_duplicate", "restates")) & col("valid_to").is_null()
    for tie in snapshot.scan("relations", alike, ["source_id", "target_id"]).to_pylist():
        one, other = tie["source_id"], tie["target_id"]
        if one not in agents or other not in agents or agents[one] == agents[other]:
            continue
        for id_, agent in ((one, agents[other]), (other, agents[one])):
            if agent is not None:
                yield id_, agent


# --- sharing -------------------------------------------------------------------------------------


def share_learnings(context: UpkeepContext) -> Outcome:
    """Copy learnings that are to be shared into the shared namespace of the default base."""
    home, base = context.home, context.base
    if base.name != home.config.default_kb:
        return Outcome({"shared": 0})
    wanted = [memory for name in _open_bases(home) for memory in _to_share(context, name)]
    namespace = context.config.namespaces.shared
    made = [_copy(memory, namespace) for memory in wanted]
    copies = {each.id: each for each in made}
    there = base.store.snapshot().get("memories", list(copies), ["id"])["id"].to_pylist()
    gone = base.store.ledger.deletions.ids()
    new = [each for id_, each in copies.items() if id_ not in there and id_ not in gone]
    ids = [each.id for each in new]
    if new and not context.options.dry_run:
        _write_copies(context, new)
    return Outcome({"shared": len(new)}, ids)


def _open_bases(home: Home) -> Iterable[str]:
    """Yield the knowledge bases whose learnings may be shared: active, and not private."""
    for entry in home.entries():
        settings = entry.settings
        if settings is not None and settings.status == "active" and not settings.private:
            yield entry.name


def _to_share(context: UpkeepContext, name: str) -> list[Memory]:
    if name == context.base.name:
        return _chosen_for_sharing(context, context.base)
    try:
        with context.home.open(name) as other:
            return _chosen_for_sharing(context, other)
    except MemctlError:  # one that cannot be read keeps the others from nothing
        return []


def _chosen_for_sharing(context: UpkeepContext, base: KnowledgeBase) -> list[Memory]:
    """Return the learnings of one knowledge base that are marked, or that agents agree on.

    They count from when they were learnt or agreed on, whenever this job finds them.
    """
    filters = base.settings.without_private(Filters(types=(LEARNING,)))
    snapshot = base.store.snapshot()
    rows = memory_rows(snapshot.scan("memories", memory_filter(filters, context.now)))
    confirmations = base.store.ledger.confirmations.of([each.id for each in rows])
    shared = context.config.namespaces.shared
    return [
        replace(memory, valid_from=since)
        for memory in rows
        if memory.namespace != shared
        and (since := _shared_since(memory, confirmations.get(memory.id, ())))
    ]


def _shared_since(memory: Memory, confirmations: Sequence[Confirmation]) -> datetime | None:
    """Return since when a learning is to be shared; None while too few agents have said it."""
    if memory.metadata.get(SHARE) is True:
        return memory.valid_from
    agents = set() if memory.agent_id is None else {f"agent {memory.agent_id}"}
    for each in sorted(confirmations, key=lambda item: item.at):
        if each.source.startswith("agent "):
            agents.add(each.source)
            if len(agents) >= AGENTS_TO_SHARE:
                return each.at
    return None


def _copy(memory: Memory, namespace: str) -> Memory:
    metadata = {key: value for key, value in memory.metadata.items() if key != SHARE}
    return Memory(
        id=stated_memory_id(namespace, LEARNING, memory.text),
        document_id=None,
        level="memory",
        type=LEARNING,
        text=memory.text,
        namespace=namespace,
        created_at=memory.created_at,
        valid_from=memory.valid_from,
        source=SHARED,
        tags=memory.tags,
        importance=memory.importance,
        confidence=memory.confidence,
        expires_at=memory.expires_at,
        method=SHARED,
        metadata=metadata,
        agent_id=memory.agent_id,
        source_type=memory.source_type,
        kind=memory.kind,
    )


def _write_copies(context: UpkeepContext, copies: Sequence[Memory]) -> None:
    from memctl.memories.memory_editing import write_memories

    base = context.base
    editor = base.services.editor()
    prepared = [editor.prepare(each) for each in copies]
    with base.store.write() as transaction:
        before = transaction.snapshot()
        known = set(before.get("memories", [each.id for each in copies], ["id"])["id"].to_pylist())
        prepared = [each for each in prepared if each.memory.id not in known]
        write_memories(transaction, prepared, {}, context.now)
        ids = [each.memory.id for each in prepared]
        note_changes(transaction, context, before, ids, "shared")
