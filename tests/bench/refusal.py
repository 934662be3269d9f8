"""How often a question is refused that could be answered, and answered that should be refused.

    python tests/bench/refusal.py FOLDER FOLDER... [--questions 100]

Folders are as for ``retrieval.py``, at least two.  Every question is asked of its own set as it
is (``hand``: where evidence was among the first five hits), once more without the records that
answer it (``gone``), and questions of the other sets are asked too (``off``).  Of each ``no`` is
the share that is said not to be in memory, and ``?`` that of which what is closest is named as
unsure; the rest are answered.  AUROC is the chance that a question whose evidence was among the
first five hits gets a higher confidence than one that cannot be answered.  ``first`` is the share
of answers whose first citation is of a record known to be evidence, ``first ?`` the same of what
is named as unsure.  Other records may well answer a question whose evidence was removed, so
refusing those is the harder and vaguer measure.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import memctl
from memctl.knowledge_base import KnowledgeBase
from memctl.records import Answer, Filters, QueryResult

FIRST = 5
COLUMNS = (
    *("hand no", "hand ?", "gone no", "gone ?", "off no", "off ?"),
    *("AUROC gone", "AUROC off", "first", "first ?"),
)


@dataclass
class Outcomes:
    """The answers to questions asked in three ways, and whether the first citation was right."""

    hand: list[Answer] = field(default_factory=list)
    gone: list[Answer] = field(default_factory=list)
    off: list[Answer] = field(default_factory=list)
    first: list[bool] = field(default_factory=list)
    first_unsure: list[bool] = field(default_factory=list)

    def row(self) -> list[float]:
        hand, gone, off = map(confidences, (self.hand, self.gone, self.off))
        return [
            *(share for answers in (self.hand, self.gone, self.off) for share in shares(answers)),
            *(100 * auroc(hand, others) for others in (gone, off)),
            *(100 * mean(right) for right in (self.first, self.first_unsure)),
        ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--questions", type=int, default=100)
    options = parser.parse_args()
    sets = {folder.resolve().name: questions(folder) for folder in options.folders}
    print(f"{'set':12}" + "".join(f"{name:>11}" for name in COLUMNS))
    for folder in options.folders:
        name = folder.resolve().name
        others = [item for other, items in sets.items() if other != name for item in items]
        chosen = random.Random(0).sample(sets[name], min(options.questions, len(sets[name])))
        strangers = random.Random(1).sample(others, min(options.questions, len(others)))
        with tempfile.TemporaryDirectory() as home:
            row = measured(folder, home, chosen, strangers).row()
        print(f"{name:12}" + "".join(f"{value:11.1f}" for value in row), flush=True)


def questions(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def measured(
    folder: Path, home: str, chosen: Sequence[dict[str, Any]], strangers: Iterable[dict[str, Any]]
) -> Outcomes:
    outcomes = Outcomes()
    with memctl.open("set", home=home, create=True) as base:
        base.ingest(jsonl=folder / "corpus.jsonl")
        for item in chosen:
            judge(base, item, outcomes)
        for place, item in enumerate(strangers):
            namespace = chosen[place % len(chosen)].get("namespace")
            outcomes.off.append(answer_of(ask(base, item["question"], namespace)))
    return outcomes


def judge(base: KnowledgeBase, item: dict[str, Any], outcomes: Outcomes) -> None:
    relevant = set(item["relevant"])
    result = ask(base, item["question"], item.get("namespace"))
    answer = answer_of(result)
    if any(hit.external_id in relevant for hit in result.hits[:FIRST]):
        outcomes.hand.append(answer)
    if answer.citations:
        ids = {hit.memory_id: hit.external_id for hit in result.hits}
        right = ids[answer.citations[0].memory_id] in relevant
        (outcomes.first if answer.found else outcomes.first_unsure).append(right)
    without = ask(base, item["question"], item.get("namespace"), relevant)
    outcomes.gone.append(answer_of(without))


def ask(
    base: KnowledgeBase, question: str, namespace: str | None, without: Iterable[str] = ()
) -> QueryResult:
    listed = ", ".join("'" + id.replace("'", "''") + "'" for id in sorted(without))
    where = f"external_id NOT IN ({listed})" if listed else None
    filters = Filters(namespaces=(namespace,) if namespace else (), where=where)
    return base.query(question, filters=filters)


def answer_of(result: QueryResult) -> Answer:
    assert result.answer is not None
    return result.answer


def shares(answers: Sequence[Answer]) -> list[float]:
    """Return how many in a hundred are not in memory, and how many unsure."""
    refused = [not answer.found and not answer.unsure for answer in answers]
    return [100 * mean(refused), 100 * mean([answer.unsure for answer in answers])]


def confidences(answers: Iterable[Answer]) -> list[float]:
    return [answer.confidence for answer in answers]


def mean(values: Sequence[bool]) -> float:
    return sum(values) / len(values) if values else 0.0


def auroc(higher: Sequence[float], lower: Sequence[float]) -> float:
    """Return the chance that one of ``higher`` is above one of ``lower``; equal ones count half."""
    if not higher or not lower:
        return 0.5
    wins = sum((high > low) + 0.5 * (high == low) for high in higher for low in lower)
    return wins / (len(higher) * len(lower))


if __name__ == "__main__":
    main()
