"""Scores of ranked hits against known evidence; knows nothing of how they were found.

Recall at k is the share of the evidence among the first k.  nDCG is that of Järvelin and
Kekäläinen (Cumulated gain-based evaluation of IR techniques, TOIS 2002) with gains of 0 and 1.
MRR is one over the rank of the first evidence, 0 where there is none (Voorhees, TREC-8, 1999).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from memctl.records import Copy, Hit

METRICS = ("recall@5", "recall@10", "ndcg@10", "mrr")
ALL = "all"
_GAINS = 10


@dataclass(frozen=True, slots=True)
class Outcome:
    """How well one question was answered: each of ``METRICS``, from 0 to 1, and how fast."""

    id: str
    category: str
    scores: Mapping[str, float]
    seconds: float


@dataclass(frozen=True, slots=True)
class Score:
    """Means over some questions of one mode, in percent, and milliseconds a question."""

    mode: str
    category: str
    """``all`` for all of them."""
    questions: int
    means: Mapping[str, float]
    p50_ms: float
    p95_ms: float


def ranked_ids(hits: Iterable[Hit], relevant: Iterable[str]) -> list[str]:
    """Return what the hits are called, best first, each once.

    A hit is called by its record's id, or where that has none by its document's, unless the
    evidence names the document or the memory itself.  It is called by what says the same, too,
    where that is the evidence.
    """
    wanted = set(relevant)
    names: dict[str, None] = {}
    for hit in hits:
        ids = _ids(hit)
        names[next((id_ for id_ in ids if id_ in wanted), ids[0])] = None
        for copy in hit.also_in:
            names |= dict.fromkeys([id_ for id_ in _ids(copy) if id_ in wanted][:1])
    return list(names)


def _ids(found: Hit | Copy) -> list[str]:
    return [id_ for id_ in (found.external_id, found.document_id, found.memory_id) if id_]


def measured(relevant: Sequence[str], ranked: Sequence[str]) -> dict[str, float]:
    """Return each of ``METRICS``, from 0 to 1; there must be something relevant."""
    wanted = set(relevant)
    places = [place for place, id_ in enumerate(ranked, start=1) if id_ in wanted]
    gain = sum(1 / math.log2(place + 1) for place in places if place <= _GAINS)
    ideal = sum(1 / math.log2(place + 1) for place in range(1, min(_GAINS, len(wanted)) + 1))
    return {
        "recall@5": sum(place <= 5 for place in places) / len(wanted),
        "recall@10": sum(place <= 10 for place in places) / len(wanted),
        "ndcg@10": gain / ideal,
        "mrr": 1 / places[0] if places else 0.0,
    }


def summed_up(mode: str, outcomes: Sequence[Outcome]) -> list[Score]:
    """Return the means over all questions, then over those of each category."""
    categories = sorted({outcome.category for outcome in outcomes if outcome.category})
    groups = {name: [o for o in outcomes if o.category == name] for name in categories}
    return [_score(mode, name, group) for name, group in {ALL: outcomes, **groups}.items()]


def _score(mode: str, category: str, outcomes: Sequence[Outcome]) -> Score:
    times = sorted(1000 * outcome.seconds for outcome in outcomes)
    slow = statistics.quantiles(times, n=20, method="inclusive")[-1] if len(times) > 1 else times[0]
    means = {
        metric: round(100 * sum(outcome.scores[metric] for outcome in outcomes) / len(outcomes), 1)
        for metric in METRICS
    }
    return Score(
        mode, category, len(outcomes), means, round(statistics.median(times), 2), round(slow, 2)
    )
