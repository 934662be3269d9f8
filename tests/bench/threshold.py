"""What ``--threshold`` keeps of the evidence, and how often it is silent where there is none.

    python tests/bench/threshold.py FOLDER FOLDER... [--threshold 0.7] [--questions 60]

Folders are as for ``retrieval.py``, at least two.  ``kept`` is how many in a hundred questions
whose evidence is among the first ten hits still have some of it, ``share`` how much of it they
have.  ``off`` is how many questions of the other sets get no hit at all; ``gone`` the same of the
set's own questions once the records known to answer them are left out: much of what is left is
about the same thing, so this is the vaguer measure.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from refusal import questions

import memctl
from memctl.knowledge_base import KnowledgeBase
from memctl.records import Filters, Hit

COLUMNS = ("kept", "share", "off", "gone")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--threshold", type=float, default=0.7)
    parser.add_argument("--questions", type=int, default=60)
    options = parser.parse_args()
    sets = {folder.resolve().name: questions(folder) for folder in options.folders}
    print(f"{'set':12}" + "".join(f"{name:>8}" for name in COLUMNS))
    for folder in options.folders:
        name = folder.resolve().name
        others = [item for other, items in sets.items() if other != name for item in items]
        chosen = random.Random(0).sample(sets[name], min(options.questions, len(sets[name])))
        strangers = random.Random(1).sample(others, min(options.questions, len(others)))
        with tempfile.TemporaryDirectory() as home:
            row = measured(folder, home, chosen, strangers, options.threshold)
        print(f"{name:12}" + "".join(f"{100 * value:8.0f}" for value in row), flush=True)


def measured(
    folder: Path,
    home: str,
    chosen: Sequence[Mapping[str, Any]],
    strangers: Sequence[Mapping[str, Any]],
    threshold: float,
) -> list[float]:
    """Return the four shares."""
    kept: list[bool] = []
    shares: list[float] = []
    gone: list[bool] = []
    with memctl.open("set", home=home, create=True) as base:
        base.ingest(jsonl=folder / "corpus.jsonl")
        for item in chosen:
            relevant = set(item["relevant"])
            namespace = item.get("namespace")
            found = hits(base, item["question"], namespace)
            evidence = [hit for hit in found if hit.external_id in relevant]
            if evidence:
                above = sum(hit.relevance >= threshold for hit in evidence)
                kept.append(above > 0)
                shares.append(above / len(evidence))
            left = hits(base, item["question"], namespace, relevant)
            gone.append(not any(hit.relevance >= threshold for hit in left))
        off = [
            not any(
                hit.relevance >= threshold
                for hit in hits(base, item["question"], chosen[place].get("namespace"))
            )
            for place, item in enumerate(strangers[: len(chosen)])
        ]
    return [sum(values) / max(1, len(values)) for values in (kept, shares, off, gone)]


def hits(
    base: KnowledgeBase, question: str, namespace: str | None, without: Iterable[str] = ()
) -> Sequence[Hit]:
    """Return the first ten hits, without some records."""
    listed = ", ".join("'" + id.replace("'", "''") + "'" for id in sorted(without))
    where = f"external_id NOT IN ({listed})" if listed else None
    filters = Filters(namespaces=(namespace,) if namespace else (), where=where)
    return base.query(question, filters=filters, answer=False, limit=10, log=False).hits


if __name__ == "__main__":
    main()
