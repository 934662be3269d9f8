"""How well what an answer cites is the known evidence, and how much of that evidence it cites.

    python tests/bench/answers.py FOLDER... [--every 1]

Folders are as for ``retrieval.py``.  ``refused`` is the share of the questions that get no answer,
``precision`` the share of the citations, over the questions that get one, which are of records
known to answer; ``recall`` the share of those records that are cited, over all questions.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from pathlib import Path

import memctl
from memctl.records import Filters


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--every", type=int, default=1, help="ask only every so many questions")
    options = parser.parse_args()
    for folder in options.folders:
        print(f"{folder.resolve().name:12} {_measured(folder, options.every)}", flush=True)


def _measured(folder: Path, every: int) -> str:
    precisions, recalls, cited = [], [], []
    with tempfile.TemporaryDirectory() as home, memctl.open("set", home=home, create=True) as kb:
        kb.ingest(jsonl=folder / "corpus.jsonl")
        lines = (folder / "queries.jsonl").read_text("utf-8").splitlines()
        for asked in [json.loads(line) for line in lines if line.strip()][::every]:
            namespace = asked.get("namespace")
            filters = Filters(namespaces=(namespace,) if namespace else ())
            found = kb.query(asked["question"], filters=filters)
            external = {hit.memory_id: hit.external_id for hit in found.hits}
            records = [external.get(each.memory_id) for each in found.answer.citations]
            relevant = set(asked["relevant"])
            recalls.append(len(relevant & set(records)) / len(relevant))
            if records:
                precisions.append(sum(each in relevant for each in records) / len(records))
                cited.append(len(records))
    figures = {
        "refused": 100 * (1 - len(cited) / len(recalls)),
        "precision": 100 * statistics.mean(precisions),
        "recall": 100 * statistics.mean(recalls),
        "sentences": statistics.mean(cited),
    }
    return "  ".join(f"{name} {value:.1f}" for name, value in figures.items())


if __name__ == "__main__":
    main()
