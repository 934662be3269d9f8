"""How a search understood a question and what it went by, for ``--explain``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memctl.retrieve.candidates import Key
from memctl.retrieve.collapse import Collapsed
from memctl.retrieve.diversity import Likest
from memctl.retrieve.expansion import Expansions
from memctl.retrieve.question import Question
from memctl.retrieve.ranking import Plan
from memctl.retrieve.statistics import TermStatistics
from memctl.retrieve.syntax import Node, told
from memctl.retrieve.times import explained_times

if TYPE_CHECKING:
    from memctl.retrieve.walk import Way


def explained_search(
    plan: Plan, question: Question, statistics: TermStatistics, languages: Sequence[str]
) -> dict[str, Any]:
    """What was looked for and by what; of times which days they mean."""
    return {
        "mode": plan.mode,
        "fusion": plan.fusion if plan.mode in ("hybrid", "graph") else None,
        "languages": list(languages),
        "terms": {term: round(statistics.idf(term), 3) for term in question.terms},
        "memories": statistics.memories,
        "sampled": statistics.sampled,
        **explained_times(question),
    }


def explained_syntax(required: Node | None, meant: Expansions) -> dict[str, Any]:
    """What must hold, and what words with ``*`` and ``~`` stand for; nothing of plain words."""
    expanded = {str(pattern): list(terms) for pattern, terms in meant.items()}
    return ({"required": told(required)} if required else {}) | (
        {"expanded": expanded} if expanded else {}
    )


def explained_ways(ways: Mapping[Key, Way], ranked: Sequence[Collapsed]) -> dict[str, Any]:
    """The way that led to each hit: memory ids, with the names between."""
    told = {key[1]: list(ways[key]) for item in ranked if (key := item.candidate.key) in ways}
    return {"paths": told} if told else {}


def explained_spread(plan: Plan, likest: Mapping[Key, Likest]) -> dict[str, Any]:
    """What was asked for, and the better hit that each hit is most like."""
    told = {
        key[1]: {"memory_id": each.key[1], "cosine": each.cosine} for key, each in likest.items()
    }
    return ({"per_document": plan.per_document} if plan.per_document else {}) | (
        {"diversity": plan.diversity, "likest": told} if plan.diversity else {}
    )
