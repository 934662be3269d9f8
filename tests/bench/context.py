"""How much of the known evidence ``memctl context`` puts into a budget, and how often it is silent.

    python tests/bench/context.py FOLDER... [--budget 1500 --budget 4000] [--every 1]

Folders are as for ``retrieval.py``.  For each budget the share of the records known to answer a
question that are in its context, by default (``hybrid``) and by keywords alone (BM25).  Then
``--auto``: the share of the questions that still get a context, and of everyday messages to an
assistant (below) that rightly get none.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import memctl
from memctl.choices import Mode
from memctl.knowledge_base import KnowledgeBase
from memctl.records import Context, Filters

BUDGETS = (1500, 4000)
MODES: tuple[Mode, ...] = ("keyword", "hybrid")
MESSAGES = (
    "thanks, that works", "ok great", "hello there", "hi, how are you?", "yes please", "continue",
    "no, leave it as it is", "can you say that in fewer words?", "write a haiku about autumn",
    "write a python function that reverses a string", "run it again", "tell me a joke",
    "fix this bug: TypeError: 'NoneType' object is not subscriptable", "give me an example",
    'translate "good morning" into Spanish', "explain recursion like I'm five",
    "how do I sort a list in Python?", "what's 17% of 340?", "convert 5 miles to kilometers",
    "make the second paragraph shorter", "add a unit test for that", "rename the variable to total",
    "summarise the following text in two sentences", "give me ten names for a coffee shop",
    "what does HTTP 503 mean?", "how many days are there in a leap year?", "let's move on",
    "draft a polite email declining an invitation", "refactor this class to use composition",
    "what's the difference between TCP and UDP?", "is it going to rain tomorrow?",
    "write a SQL query that counts orders by customer", "how do I center a div?",
    "what is a good recipe for pancakes?", "check the spelling of this sentence",
    "why is the sky blue?", "use tabs instead of spaces", "that's wrong, try again",
    "please format this as a table", "generate a random password", "what time is it in Tokyo?",
    "how do I undo the last git commit?", "can you make it more formal?",
    "what are the symptoms of a cold?", "write a short story about a dragon",
    "create a workout plan for beginners", "what is machine learning?", "sounds good, go ahead",
    "open the file and read it", "what should I cook tonight?", "how does photosynthesis work?",
    "rewrite this in the passive voice", "compare Python and Go", "what's new in Python 3.13?",
)  # fmt: skip


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--budget", type=int, action="append", metavar="TOKENS")
    parser.add_argument("--every", type=int, default=1, help="ask only every so many questions")
    options = parser.parse_args()
    for folder in options.folders:
        with tempfile.TemporaryDirectory() as home, _filled(folder, home) as kb:
            questions = _questions(folder)[:: options.every]
            _show(folder.resolve().name, kb, questions, options.budget or BUDGETS)


def _filled(folder: Path, home: str) -> KnowledgeBase:
    kb = memctl.open("set", home=home, create=True)
    kb.ingest(jsonl=folder / "corpus.jsonl")
    return kb


def _questions(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "queries.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines if line.strip()]


def _show(
    name: str, kb: KnowledgeBase, questions: Sequence[Mapping[str, Any]], budgets: Sequence[int]
) -> None:
    known = kb.export("memories").read_all()
    external = dict(zip(*(known[it].to_pylist() for it in ("id", "external_id")), strict=True))
    for budget in budgets:
        shares = []
        for mode in MODES:
            found = [_share(_context(kb, each, budget, mode), each, external) for each in questions]
            shares.append(f"{mode} {100 * statistics.mean(found):5.1f}")
        print(f"{name:12} {budget:5} tokens: {'  '.join(shares)}", flush=True)
    given = statistics.mean(bool(_context(kb, each, auto=True).text) for each in questions)
    namespaces = sorted({each.get("namespace", "") for each in questions})
    silent = statistics.mean(
        not _context(kb, {"question": text, "namespace": namespaces[at % len(namespaces)]},
                     auto=True).text
        for at, text in enumerate(MESSAGES)
    )  # fmt: skip
    print(f"{name:12} --auto: questions {100 * given:5.1f}  silent {100 * silent:5.1f}", flush=True)


def _context(
    kb: KnowledgeBase,
    asked: Mapping[str, Any],
    budget: int = BUDGETS[0],
    mode: Mode = "hybrid",
    *,
    auto: bool = False,
) -> Context:
    namespace = asked.get("namespace")
    filters = Filters(namespaces=(namespace,) if namespace else ())
    return kb.context(asked["question"], budget=budget, mode=mode, filters=filters, auto=auto)


def _share(found: Context, asked: Mapping[str, Any], external: Mapping[str, str]) -> float:
    relevant = set(asked["relevant"])
    return len(relevant & {external[each.memory_id] for each in found.citations}) / len(relevant)


if __name__ == "__main__":
    main()
