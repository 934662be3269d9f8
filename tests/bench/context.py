"""How much of the known evidence ``memctl context`` puts into a budget, and how often it is silent.

    python tests/bench/context.py FOLDER... [--budget 1500 --budget 4000] [--every 1] [--from 0]
    python tests/bench/context.py FOLDER... --every 2 --from 1    the half that nothing was tuned on

Folders are as for ``retrieval.py``.  For each budget the share of the records known to answer a
question that are in its context, by default (``hybrid``) and by keywords alone (BM25), and the
median time of one.  Then the share of questions that get nothing, or what is said to be in doubt:
as they are, without the records that answer them, and questions of the other folders (``off``).
Then ``--auto``: the share of the questions that still get a context, and of everyday messages to
an assistant (``messages.py``) that rightly get none.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from messages import BLIND, PLAIN

import memctl
from memctl.knowledge_base import KnowledgeBase
from memctl.literals import Mode
from memctl.records import Context, Filters
from memctl.search.answering.excerpts import DOUBT

BUDGETS = (1500, 4000)
MODES: tuple[Mode, ...] = ("keyword", "hybrid")
SAMPLE = 100
Asked = dict[str, Any]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--budget", type=int, action="append", metavar="TOKENS")
    parser.add_argument("--every", type=int, default=1, help="ask only every so many questions")
    parser.add_argument("--from", type=int, default=0, dest="first", help="the first to ask")
    options = parser.parse_args()
    asked = {
        folder: _questions(folder)[options.first :: options.every] for folder in options.folders
    }
    for folder, questions in asked.items():
        others = [each for other, them in asked.items() if other != folder for each in them]
        with tempfile.TemporaryDirectory() as home, _filled(folder, home) as kb:
            name = f"{folder.resolve().name:12}"
            _show_shares(name, kb, questions, options.budget or BUDGETS)
            _show_silence(name, kb, questions, others)
            _show_auto(name, kb, questions)


def _filled(folder: Path, home: str) -> KnowledgeBase:
    kb = memctl.open("set", home=home, create=True)
    kb.ingest(jsonl=folder / "corpus.jsonl")
    return kb


def _questions(folder: Path) -> list[Asked]:
    lines = (folder / "queries.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines if line.strip()]


def _show_shares(
    name: str, kb: KnowledgeBase, questions: Sequence[Asked], budgets: Sequence[int]
) -> None:
    known = kb.export("memories").read_all()
    external = dict(zip(*(known[it].to_pylist() for it in ("id", "external_id")), strict=True))
    for budget in budgets:
        figures = []
        for mode in MODES:
            shares, seconds = [], []
            for each in questions:
                started = time.perf_counter()
                found = _context(kb, each, budget, mode)
                seconds.append(time.perf_counter() - started)
                shares.append(_share(found, each, external))
            median = 1000 * statistics.median(seconds)
            figures.append(f"{mode} {100 * statistics.mean(shares):5.1f} ({median:.0f} ms)")
        print(f"{name} {budget:5} tokens: {'  '.join(figures)}", flush=True)


def _show_silence(
    name: str, kb: KnowledgeBase, questions: Sequence[Asked], others: Sequence[Asked]
) -> None:
    chosen = random.Random(0).sample(questions, min(SAMPLE, len(questions)))
    strangers = random.Random(1).sample(others, min(SAMPLE, len(others)))
    asked = {
        "asked": [_context(kb, each) for each in chosen],
        "removed": [_context(kb, each, without=each["relevant"]) for each in chosen],
        "off": [
            _context(kb, each | {"namespace": chosen[at % len(chosen)].get("namespace")})
            for at, each in enumerate(strangers)
        ],
    }
    shares = [
        f"{kind} {100 * statistics.mean(not each.text for each in found):5.1f}"
        f" + {100 * statistics.mean(DOUBT in each.text for each in found):.1f}"
        for kind, found in asked.items()
        if found
    ]
    print(f"{name} nothing + in doubt: {'  '.join(shares)}", flush=True)


def _show_auto(name: str, kb: KnowledgeBase, questions: Sequence[Asked]) -> None:
    given = statistics.mean(bool(_context(kb, each, auto=True).text) for each in questions)
    namespaces = sorted({each.get("namespace", "") for each in questions})
    shares = [f"questions {100 * given:5.1f}"]
    for kind, messages in {"in view": PLAIN, **BLIND}.items():
        spoken = [
            text
            for at, text in enumerate(messages)
            if _context(
                kb, {"question": text, "namespace": namespaces[at % len(namespaces)]}, auto=True
            ).text
        ]
        shares.append(f"{kind} {len(spoken)}/{len(messages)}" + (f" {spoken}" if spoken else ""))
    print(f"{name} --auto speaks: {'  '.join(shares)}", flush=True)


def _context(
    kb: KnowledgeBase,
    asked: Asked,
    budget: int = BUDGETS[0],
    mode: Mode = "hybrid",
    *,
    auto: bool = False,
    without: Sequence[str] = (),
) -> Context:
    namespace = asked.get("namespace")
    listed = ", ".join("'" + id.replace("'", "''") + "'" for id in sorted(without))
    where = f"external_id NOT IN ({listed})" if listed else None
    filters = Filters(namespaces=(namespace,) if namespace else (), where=where)
    return kb.context(asked["question"], budget=budget, mode=mode, filters=filters, auto=auto)


def _share(found: Context, asked: Asked, external: Mapping[str, str]) -> float:
    relevant = set(asked["relevant"])
    return len(relevant & {external[each.memory_id] for each in found.citations}) / len(relevant)


if __name__ == "__main__":
    main()
