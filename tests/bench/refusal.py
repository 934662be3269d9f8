"""How often a question is refused that could be answered, and answered that should be refused.

    python tests/bench/refusal.py FOLDER FOLDER... [--questions 100]

Folders are as for ``retrieval.py``, at least two.  Every question is asked of its own set as it
is (``wrongly refused``; and of those, where evidence was among the first five hits), once more
without the records that answer it (``removed``), and questions of the other sets are asked too
(``off topic``).  AUROC is the chance that a question that can be answered gets a higher
confidence than one that cannot.  ``first`` is the share of answers whose first citation is of a
record known to be evidence.  Other records may well answer a question whose evidence was removed,
so refusing those is the harder and vaguer measure.
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
from memctl.records import Filters, QueryResult

FIRST = 5
COLUMNS = ("wrongly", "at hand", "removed", "off", "AUROC rem", "AUROC off", "first")


@dataclass
class Outcomes:
    """Confidences of questions asked in three ways, and what became of the first."""

    asked: list[float] = field(default_factory=list)
    removed: list[float] = field(default_factory=list)
    off: list[float] = field(default_factory=list)
    refused: list[bool] = field(default_factory=list)
    refused_at_hand: list[bool] = field(default_factory=list)
    refused_removed: list[bool] = field(default_factory=list)
    refused_off: list[bool] = field(default_factory=list)
    first_right: list[bool] = field(default_factory=list)

    def row(self) -> list[float]:
        shares = (self.refused, self.refused_at_hand, self.refused_removed, self.refused_off)
        return [
            *(100 * mean(share) for share in shares),
            100 * auroc(self.asked, self.removed),
            100 * auroc(self.asked, self.off),
            100 * mean(self.first_right),
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
            result = ask(base, item["question"], namespace)
            outcomes.off.append(confidence(result))
            outcomes.refused_off.append(not found(result))
    return outcomes


def judge(base: KnowledgeBase, item: dict[str, Any], outcomes: Outcomes) -> None:
    relevant = set(item["relevant"])
    result = ask(base, item["question"], item.get("namespace"))
    outcomes.asked.append(confidence(result))
    outcomes.refused.append(not found(result))
    if any(hit.external_id in relevant for hit in result.hits[:FIRST]):
        outcomes.refused_at_hand.append(not found(result))
    if result.answer is not None and result.answer.citations:
        ids = {hit.memory_id: hit.external_id for hit in result.hits}
        outcomes.first_right.append(ids[result.answer.citations[0].memory_id] in relevant)
    without = ask(base, item["question"], item.get("namespace"), relevant)
    outcomes.removed.append(confidence(without))
    outcomes.refused_removed.append(not found(without))


def ask(
    base: KnowledgeBase, question: str, namespace: str | None, without: Iterable[str] = ()
) -> QueryResult:
    listed = ", ".join("'" + id.replace("'", "''") + "'" for id in sorted(without))
    where = f"external_id NOT IN ({listed})" if listed else None
    filters = Filters(namespaces=(namespace,) if namespace else (), where=where)
    return base.query(question, filters=filters)


def found(result: QueryResult) -> bool:
    return result.answer is not None and result.answer.found


def confidence(result: QueryResult) -> float:
    return result.answer.confidence if result.answer is not None else 0.0


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
