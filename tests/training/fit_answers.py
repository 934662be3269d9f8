"""Fit the weights of ``memctl.search.answering`` on the held-out worlds, and print them.

    python tests/training/fit_answers.py CANDIDATES [--scored FILE]

CANDIDATES is what ``candidates.py`` writes.  Five folds by world; prints the weights of a single
sentence and of the confidence in the best one, and how many questions are answered rightly for some
shares of false answers.  The model's odds take a while and are kept in ``--scored FILE``.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from fit_changes import fit
from measure import HELD_OUT

from memctl.models.task_encoder import load_task_encoder
from memctl.search.answering import evidence_sentences as product
from memctl.search.answering.extractive_answer import (
    MAX_MARGIN,
    MAX_SENTENCES,
)
from memctl.search.answering.states_over_time import MIN_SCORE_SHARE

JUDGED = 30
"""Sentences of a question that are judged."""
LIKELIEST = 8
"""Of a question, which are learned from."""
LONGEST_QUOTE = 260
"""Characters that are quoted; a sentence is right if its quote has what answers."""


def main() -> None:
    """Fit, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("candidates", type=Path)
    parser.add_argument("--scored", type=Path)
    options = parser.parse_args()
    rows = scored(options.candidates, options.scored)
    worlds = sorted({row["world"] for row in rows})
    names = list(product.WEIGHTS)
    given: list[tuple[float, bool, bool]] = []
    for fold in range(5):
        test = set(worlds[fold::5])
        mine = [row for row in rows if row["world"] not in test]
        weights = sentence_weights(mine)
        trust = confidence_weights(mine, weights)
        for row in rows:
            if row["world"] in test:
                features, right = confidence_features(row, weights)
                given.append((float(features @ trust), right, bool(row["gold"])))
    weights = sentence_weights(rows)
    print(dict(zip(names, (round(float(each), 2) for each in weights), strict=True)))
    trust = confidence_weights(rows, weights)
    print(dict(zip(("best", "margin", "bias"), np.round(trust, 2).tolist(), strict=True)))
    report(given)


def scored(candidates: Path, kept: Path | None) -> list[dict[str, Any]]:
    """Return the questions of the held-out worlds, each sentence with the model's odds."""
    if kept and kept.exists():
        return list(map(json.loads, kept.read_text("utf-8").splitlines()))
    rows = []
    for line in candidates.read_text("utf-8").splitlines():
        row = json.loads(line)
        if row["world"] not in HELD_OUT or not row.get("candidates"):
            continue
        row["candidates"] = row["candidates"][:JUDGED]
        texts = [(each["before"], each["text"]) for each in row["candidates"]]
        odds = load_task_encoder().score_answers(row["question"], texts)
        for each, odd in zip(row["candidates"], odds, strict=True):
            each["odds"] = float(odd)
        mark_quotes(row["candidates"])
        rows.append(row)
    if kept:
        kept.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return rows


def mark_quotes(candidates: Sequence[dict[str, Any]]) -> None:
    """Say of each sentence whether what is quoted of it, with those around it, answers."""
    for each in candidates:
        each["quote_right"] = each["right"] or any(
            other["right"]
            and other["hit"] == each["hit"]
            and abs(other["start"] - each["start"]) + len(other["text"]) <= LONGEST_QUOTE / 1.3
            for other in candidates
            if not each["path"]
        )


def features(each: dict[str, Any]) -> list[float]:
    """Return what the product judges a sentence by."""
    found = product.evidence_features(
        each["odds"],
        own=each["own"],
        near=each["near"],
        cosine=each["cosine"],
        lacks_name=bool(each.get("lacks_name")),
        is_below_asked_key=bool(each.get("is_below_asked_key")),
        is_of_another=bool(each["is_of_another"]),
    )
    return list(found.values())


def sentence_weights(rows: Sequence[dict[str, Any]]) -> Any:
    """Return weights for the likeliest sentences of each question."""
    pairs = [
        (features(each), each["quote_right"])
        for row in rows
        for each in sorted(row["candidates"], key=lambda item: -item["odds"])[:LIKELIEST]
    ]
    return fit(np.array([pair[0] for pair in pairs]), np.array([pair[1] for pair in pairs], float))


def confidence_features(row: dict[str, Any], weights: Any) -> tuple[Any, bool]:
    """Return the log odds of the best sentence, its lead, and whether what is given answers."""
    values = np.array([features(each) for each in row["candidates"]]) @ weights
    order = np.argsort(-values)
    best, chances = values[order[0]], 1 / (1 + np.exp(-values))
    likely = [at for at in order if chances[at] >= MIN_SCORE_SHARE * chances[order[0]]]
    given = likely[:MAX_SENTENCES]
    rest = [at for at in order if at not in given]
    margin = min(best - values[rest[0]] if rest else MAX_MARGIN, MAX_MARGIN)
    answers = any(row["candidates"][at]["quote_right"] for at in given)
    return np.array([best, margin, 1.0]), answers


def confidence_weights(rows: Sequence[dict[str, Any]], weights: Any) -> Any:
    """Return weights for the confidence in the best sentence."""
    pairs = [confidence_features(row, weights) for row in rows]
    return fit(np.array([pair[0] for pair in pairs]), np.array([pair[1] for pair in pairs], float))


def report(given: Sequence[tuple[float, bool, bool]]) -> None:
    """Print right and false answers, in percent of the answerable, by threshold."""
    real = sum(has_answer for _, _, has_answer in given)
    none = len(given) - real
    print(f"{real} answerable, {none} unanswerable")
    for confidence in (0.3, 0.4, 0.5, 0.55, 0.6, 0.65, 0.7, 0.8):
        least = np.log(confidence / (1 - confidence))
        sure = [each for each in given if each[0] >= least]
        right = sum(is_right for _, is_right, _ in sure)
        false = sum(has_answer and not is_right for _, is_right, has_answer in sure)
        asked_in_vain = sum(not has_answer for _, _, has_answer in sure)
        print(
            f"from {confidence}: right {100 * right / real:.1f}, false {100 * false / real:.1f},"
            f" given of the unanswerable {100 * asked_in_vain / max(none, 1):.1f}"
        )


if __name__ == "__main__":
    main()
