"""Runs of a question set: asked of knowledge bases, measured, compared, and saved to files.

Recall at k is the share of the evidence among the first k.  nDCG is that of Järvelin and
Kekäläinen (Cumulated gain-based evaluation of IR techniques, TOIS 2002) with gains of 0 and 1.
MRR is one over the rank of the first evidence, 0 where there is none (Voorhees, TREC-8, 1999).
A saved run has the scores of each question, but no texts and no hits.
"""

from __future__ import annotations

import json
import math
import statistics
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from memctl import __version__
from memctl.errors import UsageError
from memctl.evaluation.question_sets import EvalQuestion
from memctl.feedback.feedback_statistics import bootstrap_interval
from memctl.files import make_folder, save_file
from memctl.home import Home
from memctl.knowledge_base import KnowledgeBases
from memctl.literals import Mode
from memctl.paths import display_path
from memctl.records import DuplicateHit, Filters, Hit, Progress, ProgressListener, Question

if TYPE_CHECKING:
    from memctl.config import Config
    from memctl.knowledge_base import KnowledgeBase

METRICS = ("recall@5", "recall@10", "ndcg@10", "mrr")
ALL = "all"
_MAX_GAINS = 10


class QuestionResult(Struct, frozen=True):
    """The scores of one question, each of ``METRICS`` from 0 to 1, and its duration."""

    id: str
    category: str
    scores: Mapping[str, float]
    seconds: float


class Score(Struct, frozen=True):
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


def _ids(hit: Hit | DuplicateHit) -> list[str]:
    return [id_ for id_ in (hit.external_id, hit.document_id, hit.memory_id) if id_]


def measure(relevant: Sequence[str], ranked: Sequence[str]) -> dict[str, float]:
    """Return each of ``METRICS``, from 0 to 1; ``relevant`` must not be empty."""
    wanted = set(relevant)
    places = [place for place, id_ in enumerate(ranked, start=1) if id_ in wanted]
    gain = sum(1 / math.log2(place + 1) for place in places if place <= _MAX_GAINS)
    ideal = sum(1 / math.log2(place + 1) for place in range(1, min(_MAX_GAINS, len(wanted)) + 1))
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


class Comparison(Struct, frozen=True):
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


def comparable_mode(mode: str, saved: Mapping[str, object], mode_count: int) -> str | None:
    """Return the mode of a saved run to compare a mode with.

    It is the same mode, or where both runs have only one, that one.

    Args:
        mode: The mode in this run.
        saved: The saved run, by mode.
        mode_count: Number of modes in this run.
    """
    if mode in saved:
        return mode
    return next(iter(saved)) if len(saved) == mode_count == 1 else None


# --- runs -----------------------------------------------------------------------------------------

_NAME = "eval"
_ID_COLUMNS = ("id", "document_id", "external_id")


@contextmanager
def temporary_base(config: Config, embedder: str = "") -> Iterator[KnowledgeBase]:
    """Yield a new knowledge base with the configured settings, which is deleted afterwards.

    Args:
        config: The settings.
        embedder: Its model for vectors; by default as configured.
    """
    with tempfile.TemporaryDirectory(prefix="memctl-eval-", ignore_cleanup_errors=True) as folder:
        home = Home(replace(config, home=Path(folder)))
        home.create(_NAME, embedder=embedder)
        with home.open(_NAME) as base:
            yield base


def known_ids(bases: KnowledgeBases) -> set[str]:
    """Return every id that evidence can be given by."""
    found: set[str] = set()
    for base in bases:
        rows = base.store.snapshot().scan("memories", columns=list(_ID_COLUMNS))
        for column in _ID_COLUMNS:
            found.update(rows[column].to_pylist())
    return found


def run_questions(
    bases: KnowledgeBases,
    questions: Sequence[EvalQuestion],
    mode: Mode,
    limit: int,
    notes: set[str],
    progress: ProgressListener | None = None,
) -> list[QuestionResult]:
    """Ask every question and score its hits; the query log is left alone.

    Args:
        bases: The knowledge bases to ask.
        questions: Each is asked of its own namespace.
        mode: How memories are found.
        limit: Most hits for each.
        notes: Receives what a search did without because a model was unavailable.
        progress: Receives the progress.
    """
    asked = [Question(item.text, item.id, item.namespace) for item in questions]
    results = bases.query_many(
        asked, mode=mode, filters=Filters(), limit=limit, answer=False, log=False
    )
    outcomes: list[QuestionResult] = []
    for item, result in zip(questions, results, strict=True):
        notes.update(result.notes)
        scores = measure(item.relevant, ranked_ids(result.hits, item.relevant))
        outcomes.append(QuestionResult(item.id, item.category, scores, result.seconds))
        if progress is not None:
            progress(Progress(len(outcomes), len(questions), "questions", mode))
    return outcomes


_FORMAT = "memctl-eval"
_VERSION = 1

Run = Mapping[str, Sequence[QuestionResult]]
"""The results of all questions, by mode."""


def save_run(path: Path, run: Run, now: datetime) -> None:
    """Write a run to a file, atomically.

    Raises:
        OSError: The file cannot be written.
    """
    value = {
        "format": _FORMAT,
        "version": _VERSION,
        "memctl": __version__,
        "made_at": now.isoformat(),
        "modes": {mode: [asdict(outcome) for outcome in found] for mode, found in run.items()},
    }
    save_file(path, json.dumps(value, ensure_ascii=False, indent=1).encode())


HISTORY = "evaluations.jsonl"
"""Beside the knowledge bases: one line for each mode of each run that was saved."""
_MAX_KEPT = 10_000


def note_run(home: Path, run: Run, about: str, kbs: Sequence[str], now: datetime) -> None:
    """Add a run that was saved to the history of the home.

    Args:
        home: The folder of all knowledge bases.
        run: The results.
        about: The question set.
        kbs: The knowledge bases that were asked; none for one that was thrown away.
        now: The time.

    Raises:
        OSError: The file cannot be written.
    """
    lines = [
        json.dumps(
            {
                "at": now.isoformat(),
                "memctl": __version__,
                "set": about,
                "kbs": list(kbs),
                "mode": mode,
                "questions": score.questions,
                **score.means,
                "p50_ms": score.p50_ms,
                "p95_ms": score.p95_ms,
            },
            ensure_ascii=False,
        )
        for mode, found in run.items()
        for score in summarize(mode, found)
        if score.category == ALL
    ]
    make_folder(home, mode=0o700)
    before = [json.dumps(row, ensure_ascii=False) for row in saved_history(home)]
    kept = [*before, *lines][-_MAX_KEPT:]
    save_file(home / HISTORY, "".join(f"{line}\n" for line in kept).encode())


def saved_history(home: Path, about: str | None = None) -> list[Mapping[str, Any]]:
    """Return the runs that were saved, the oldest first; lines that are none are left out.

    Args:
        home: The folder of all knowledge bases.
        about: Only those of this question set.
    """
    path = home / HISTORY
    if not path.is_file():
        return []
    found: list[Mapping[str, Any]] = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict) and {"at", "set", "mode", *METRICS} <= row.keys():
            found.append(row)
    return [row for row in found if about in (None, row["set"])]


def load_run(path: Path) -> Run:
    """Read a saved run.

    Raises:
        UsageError: The file is no saved run.
        OSError: The file cannot be read.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        if value["format"] != _FORMAT or value["version"] != _VERSION:
            raise ValueError("another format")
        return {mode: [_outcome(item) for item in found] for mode, found in value["modes"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            f"{display_path(path)} is no saved run", "give what memctl eval --save FILE wrote"
        ) from error


def _outcome(item: Any) -> QuestionResult:
    scores = {metric: float(item["scores"][metric]) for metric in METRICS}
    return QuestionResult(str(item["id"]), str(item["category"]), scores, float(item["seconds"]))
