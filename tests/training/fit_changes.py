"""Fit the weights of ``memctl.consolidation.value_pairs`` on the labelled worlds, and print them.

    python tests/training/fit_changes.py [PAIRS]

Five folds by world; prints how many of the likeliest pairs are labelled as a change or a
contradiction (a lower bound, as not all are labelled), and with PAIRS the first of them.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from datetime import UTC, datetime
from typing import Any

import numpy as np
from measure import DATA

from memctl.consolidation import value_pairs
from memctl.consolidation.statements import Statement, StemWeights, statements
from memctl.models import BUILTIN_EMBEDDER, load_embedder
from memctl.records import Memory

TODAY = datetime(2026, 1, 1, tzinfo=UTC)


def main() -> None:
    """Fit, measure and print."""
    worlds, relations = read_worlds()
    gold = {
        (each[0], each[1], each[2], each[3])
        for each in relations
        if each[4] in ("changed", "contradicts")
    }
    rows, labels, names, pairs = [], [], [], []
    for world, documents in sorted(worlds.items()):
        found = statements(passage(each) for each in documents)
        place = units(documents)
        weights = StemWeights(found)
        for pair in value_pairs.differing_pairs(found, weights):
            vectors = embed([pair.earlier.text, pair.later.text])
            seen = value_pairs.features(
                pair.earlier, pair.later, pair.difference, float(vectors[0] @ vectors[1]), weights
            )
            rows.append(list(seen.values()))
            key = (
                *place.get(key_of(pair.earlier), ("", 0)),
                *place.get(key_of(pair.later), ("", 0)),
            )
            labels.append(key in gold)
            names.append(world)
            pairs.append(pair)
    matrix, truth = np.c_[np.array(rows), np.ones(len(rows))], np.array(labels, float)
    folds = [sorted(worlds).index(name) % 5 for name in names]
    scores = np.zeros(len(rows))
    for fold in range(5):
        test = np.array(folds) == fold
        scores[test] = matrix[test] @ fit(matrix[~test], truth[~test])
    order = np.argsort(-scores)
    print(f"{len(rows)} pairs, {int(truth.sum())} labelled")
    for most in (10, 20, 30, 60, 100):
        print(f"of the {most} likeliest {100 * truth[order[:most]].mean():.0f} % are labelled")
    weights_of = fit(matrix, truth)
    print(dict(zip([*seen, "bias"], [round(float(w), 2) for w in weights_of], strict=True)))
    for at in order[: int(sys.argv[1]) if len(sys.argv) > 1 else 0]:
        pair, what = pairs[at], pairs[at].difference
        print(
            round(scores[at], 1), bool(truth[at]), names[at],
            pair.earlier.citation, pair.later.citation,
            what and (what.earlier.value.text, what.later.value.text), sep=" | ",
        )  # fmt: skip


def fit(matrix: Any, truth: Any, penalty: float = 1.0) -> Any:
    """Return the weights of a logistic regression by Newton's method."""
    weights = np.zeros(matrix.shape[1])
    for _ in range(30):
        chance = 1 / (1 + np.exp(-matrix @ weights))
        slope = matrix.T @ (chance - truth) + penalty * weights
        curve = (matrix.T * (chance * (1 - chance))) @ matrix + penalty * np.eye(len(weights))
        weights -= np.linalg.solve(curve, slope)
    return weights


def read_worlds() -> tuple[dict[str, list[Any]], list[Any]]:
    """Return the documents of each world, and the labelled relations."""
    worlds, relations = defaultdict(list), []
    for path in sorted(DATA.glob("?.jsonl")):
        for row in map(json.loads, path.read_text("utf-8").splitlines()):
            if "relations" in row:
                relations += row["relations"]
            elif row.get("date"):
                worlds[row["id"][:5]].append(row)
    return worlds, relations


def passage(document: dict[str, Any]) -> Memory:
    """Return a document as one passage."""
    text = "\n\n".join(unit[0] for unit in document["units"])
    said = datetime.fromisoformat(document["date"][:10]).replace(tzinfo=UTC)
    return Memory(
        id=document["id"], document_id=document["id"], level="evidence", type="passage", text=text,
        namespace="", created_at=said, valid_from=TODAY, title=document.get("title") or "",
        source=document["file"], start=0, end=len(text),
    )  # fmt: skip


def units(documents: list[Any]) -> dict[tuple[str, str], tuple[str, int]]:
    """Return which unit a sentence is, by its document and its beginning."""
    found: dict[tuple[str, str], tuple[str, int]] = {}
    for each in documents:
        for at, unit in enumerate(each["units"]):
            for statement in statements([passage({**each, "units": [unit]})]):
                found.setdefault(key_of(statement), (each["id"], at))
    return found


def key_of(statement: Statement) -> tuple[str, str]:
    """Return what a sentence is known by."""
    return statement.document, statement.text


def embed(texts: list[str]) -> Any:
    """Return vectors of the built-in embedder."""
    return load_embedder(BUILTIN_EMBEDDER).embed(texts)


if __name__ == "__main__":
    main()
