"""Write down which sentences the product would judge for each question of the training data.

    python tests/training/candidates.py FILE

Each world is written as files and ingested into a new knowledge base; a line of FILE is a question
with the sentences that the search finds for it and whether each of them answers.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from measure import DATA, plain, write_document

import memctl
from memctl.search.answering import evidence_sentences
from memctl.search.answering.evidence_sentences import CandidateSentence
from memctl.search.answering.search_outcome import SearchOutcome

MOST = 60
"""Sentences written down for a question."""
FEATURES = (
    "own", "near", "cosine", "time_weight", "lacks_name", "is_below_asked_key", "is_of_another",
    "adds_no_words",
)  # fmt: skip


def main() -> None:
    """Write the candidates of all worlds."""
    worlds: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for path in sorted(DATA.glob("*.jsonl")):
        for row in map(json.loads, path.read_text("utf-8").splitlines()):
            if "units" in row:
                worlds[row["id"].rsplit("-", 1)[0]].append(row)
    with Path(sys.argv[1]).open("w", encoding="utf-8") as out:
        for world, documents in worlds.items():
            for row in world_candidates(world, documents):
                out.write(json.dumps(row, ensure_ascii=False) + "\n")
            out.flush()


def world_candidates(world: str, documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the questions of a world with their candidates."""
    found: list[CandidateSentence] = []

    def keep(outcome: SearchOutcome) -> list[Any]:
        found[:] = evidence_sentences.candidate_sentences(outcome)[:MOST]
        return []

    rows = []
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder, "files")
        for document in documents:
            write_document(files, document)
        evidence_sentences.rank_sentences = keep
        with memctl.open("world", create=True, home=Path(folder, "home")) as kb:
            kb.ingest(files)
            for document in documents:
                for number, (question, right, answer) in enumerate(document["qa"]):
                    kb.query(question)
                    gold = [plain(document["units"][at][0]) for at in right]
                    rows.append(
                        {
                            "id": f"{document['id']}-{number}",
                            "world": world,
                            "question": question,
                            "answer": answer,
                            "gold": [document["units"][at][0] for at in right],
                            "candidates": [candidate_row(each, gold) for each in found],
                        }
                    )
    return rows


def candidate_row(candidate: CandidateSentence, gold: list[str]) -> dict[str, Any]:
    """Return what the model reads of a candidate, what else is known of it, and if it answers."""
    text = plain(candidate.part.text)
    return {
        "before": candidate.before,
        "text": candidate.part.text_with_path,
        "source": Path(candidate.hit.source).name,
        "start": candidate.part.start,
        "hit": candidate.hit.memory_id,
        "rank": candidate.hit.rank,
        "overlap": candidate.overlap,
        "right": any(g and (g in text or (len(text) > 8 and text in g)) for g in gold),
        **{name: float(getattr(candidate, name)) for name in FEATURES},
        "path": bool(candidate.part.path),
    }


if __name__ == "__main__":
    main()
