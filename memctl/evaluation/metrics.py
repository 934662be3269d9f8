"""Metrics of ranked hits against known evidence, and the comparison of two runs.

Recall at k is the share of the evidence among the first k.  nDCG is that of Järvelin and
Kekäläinen (Cumulated gain-based evaluation of IR techniques, TOIS 2002) with gains of 0 and 1.
MRR is one over the rank of the first evidence, 0 where there is none (Voorhees, TREC-8, 1999).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from memctl.records import DuplicateHit, Hit

METRICS = ("recall@5", "recall@10", "ndcg@10", "mrr")
ALL = "all"
_GAINS = 10


@dataclass(frozen=True, slots=True)
class QuestionResult:
    """The scores of one question, each of ``METRICS`` from 0 to 1, and its duration."""

    id: str
    category: str
    scores: Mapping[str, float]
    seconds: float


@dataclass(frozen=True, slots=True)
class Score:
    """Means over some questions in one mode, in percent, and milliseconds per question."""

    mode: str
    category: str
    """``all`` for all questions."""
    questions: int
    means: Mapping[str, float]
    p50_ms: float
    p95_ms: float


def ranked_ids(hits: Iterable[Hit], relevant: Iterable[str]) -> list[str]:
    """Return the ids of the hits, best first, each once.

    A hit counts under the id of its record, or else of its document, unless the evidence gives the
    document or the memory itself.  It also counts as a duplicate that is evidence.
    """
    wanted = set(relevant)
    names: dict[str, None] = {}
    for hit in hits:
        ids = _ids(hit)
        names[next((id_ for id_ in ids if id_ in wanted), ids[0])] = None
        for copy in hit.also_in:
            names |= dict.fromkeys([id_ for id_ in _ids(copy) if id_ in wanted][:1])
    return list(names)


def _ids(found: Hit | DuplicateHit) -> list[str]:
    return [id_ for id_ in (found.external_id, found.document_id, found.memory_id) if id_]


def measure(relevant: Sequence[str], ranked: Sequence[str]) -> dict[str, float]:
    """Return each of ``METRICS``, from 0 to 1; ``relevant`` must not be empty."""
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


def summarize(mode: str, outcomes: Sequence[QuestionResult]) -> list[Score]:
    """Return the means over all questions, then over each category."""
    categories = sorted({outcome.category for outcome in outcomes if outcome.category})
    groups = {name: [o for o in outcomes if o.category == name] for name in categories}
    return [_score(mode, name, group) for name, group in {ALL: outcomes, **groups}.items()]


def _score(mode: str, category: str, outcomes: Sequence[QuestionResult]) -> Score:
    times = sorted(1000 * outcome.seconds for outcome in outcomes)
    slow = statistics.quantiles(times, n=20, method="inclusive")[-1] if len(times) > 1 else times[0]
    means = {
        metric: round(100 * sum(outcome.scores[metric] for outcome in outcomes) / len(outcomes), 1)
        for metric in METRICS
    }
    return Score(
        mode, category, len(outcomes), means, round(statistics.median(times), 2), round(slow, 2)
    )


_DRAWS = 10_000
_DRAWS_AT_ONCE = 500
_SEED = 20_260_101
_BOUNDS = (2.5, 97.5)


@dataclass(frozen=True, slots=True)
class Comparison:
    """One metric of two runs, in percent, over the questions they share."""

    mode: str
    before_mode: str
    metric: str
    questions: int
    before: float
    after: float
    difference: float
    """Mean gain of a question, in percentage points."""
    low: float | None
    """Its 95 % interval by paired bootstrap; None with fewer than two questions.

    The differences are drawn with replacement ten thousand times, from a fixed seed; 95 % of the
    means lie within it (Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapter 13;
    for retrieval Sakai, Evaluating evaluation metrics based on the bootstrap, SIGIR 2006).
    """
    high: float | None
    better: int
    """Questions that gained."""
    worse: int
    """Questions that lost."""


def compare_runs(
    mode: str, before_mode: str, before: Sequence[QuestionResult], after: Sequence[QuestionResult]
) -> list[Comparison]:
    """Compare two runs in every metric; [] where they share no question."""
    earlier = {outcome.id: outcome for outcome in before}
    pairs = [(earlier[outcome.id], outcome) for outcome in after if outcome.id in earlier]
    if not pairs:
        return []
    return [
        _comparison(
            mode,
            before_mode,
            metric,
            [(100 * old.scores[metric], 100 * new.scores[metric]) for old, new in pairs],
        )
        for metric in METRICS
    ]


def _comparison(
    mode: str, before_mode: str, metric: str, pairs: Sequence[tuple[float, float]]
) -> Comparison:
    differences = [new - old for old, new in pairs]
    low, high = bootstrap_interval(differences)
    return Comparison(
        mode=mode,
        before_mode=before_mode,
        metric=metric,
        questions=len(pairs),
        before=_mean([old for old, _ in pairs]),
        after=_mean([new for _, new in pairs]),
        difference=_mean(differences, 2),
        low=low,
        high=high,
        better=sum(difference > 1e-9 for difference in differences),
        worse=sum(difference < -1e-9 for difference in differences),
    )


def _mean(values: Sequence[float], digits: int = 1) -> float:
    return round(sum(values) / len(values), digits)


def bootstrap_interval(differences: Sequence[float]) -> tuple[float, float] | tuple[None, None]:
    """Return the 95 % interval of the mean, reproducibly; None with fewer than two values."""
    import numpy as np

    if len(differences) < 2:
        return None, None
    given = np.asarray(differences, np.float64)
    random = np.random.default_rng(_SEED)
    means = np.concatenate(
        [
            given[random.integers(len(given), size=(_DRAWS_AT_ONCE, len(given)))].mean(axis=1)
            for _ in range(_DRAWS // _DRAWS_AT_ONCE)
        ]
    )
    low, high = (round(float(bound), 2) for bound in np.percentile(means, _BOUNDS))
    return low, high


def comparable_mode(mode: str, saved: Mapping[str, object], asked: int) -> str | None:
    """Return the mode of a saved run to compare a mode with.

    It is the same mode, or where both runs have only one, that one.

    Args:
        mode: The mode in this run.
        saved: The saved run, by mode.
        asked: Number of modes in this run.
    """
    if mode in saved:
        return mode
    return next(iter(saved)) if len(saved) == asked == 1 else None
