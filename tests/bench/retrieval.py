"""How well and how fast questions with known evidence are answered, through the real commands.

    python tests/bench/retrieval.py FOLDER... [--mode hybrid] [--fusion zscore] [--scorer PROGRAM]

A folder holds ``corpus.jsonl`` (what ``memctl ingest --jsonl`` takes) and ``queries.jsonl``
(``id``, ``question``, ``relevant``: ids of the corpus, perhaps ``namespace``).  Each set gets a
knowledge base of its own in a temporary home.  ``--as`` takes records with a ``session_id`` for
what they are (``lines``), for documents of their own (``passages``), or imports them as chats
(``sessions``).  The scorer is a program that takes the queries and
the hits and prints a JSON object with ``all``; by default ``tools/score_retrieval.py`` two
folders above the first set.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

HITS = 25
COLUMNS = ("recall@5", "recall@10", "ndcg@10")
MODES = ("hybrid", "keyword", "vector", "graph", "agentic")
FUSIONS = ("zscore", "minmax", "rrf", "weighted")
KINDS = ("lines", "passages", "sessions")
PARTLY = 3
"""The exit code when some records could not be taken in: a set may have empty ones."""
MEMCTL = (sys.executable, "-m", "memctl")


def main() -> None:
    options = arguments()
    scorer = options.scorer or options.folders[0].resolve().parents[1] / "tools/score_retrieval.py"
    print(f"{'set':14}" + "".join(f"{name:>12}" for name in (*COLUMNS, "p50 ms", "p95 ms")))
    for folder in options.folders:
        with tempfile.TemporaryDirectory() as home:
            row = measured(folder, Path(home), scorer, options.mode, options.fusion, options.kind)
        print(
            f"{folder.resolve().name:14}" + "".join(f"{value:12.1f}" for value in row), flush=True
        )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--mode", default="hybrid", choices=MODES)
    parser.add_argument("--fusion", default="zscore", choices=FUSIONS)
    parser.add_argument("--as", default="lines", choices=KINDS, dest="kind")
    parser.add_argument("--scorer", type=Path)
    return parser.parse_args()


def measured(
    folder: Path, home: Path, scorer: Path, mode: str, fusion: str, kind: str
) -> list[float]:
    """Ingest a set, ask its questions, and return the scores and the milliseconds a question."""
    memctl(home, "kb", "create", "set")
    records = [json.loads(line) for line in (folder / "corpus.jsonl").open(encoding="utf-8")]
    ids: dict[tuple[str, str, int], str] = {}
    if kind == "sessions":
        ids = import_chats(home, records)
    else:
        passage = {"type": "passage"} if kind == "passages" else {}
        lines = home / "corpus.jsonl"
        lines.write_text("".join(json.dumps(each | passage) + "\n" for each in records), "utf-8")
        memctl(home, "ingest", "--jsonl", str(lines), "-k", "set", "-o", "json")
    asked = ("-k", "set", "--batch", str(folder / "queries.jsonl"), "--mode", mode)
    asked = (*asked, "--fusion", fusion)
    answers = memctl(home, "query", *asked, "-o", "ndjson", "-n", str(HITS), "--no-answer")
    hits = home / "hits.ndjson"
    hits.write_text(named(answers, ids) if ids else answers, encoding="utf-8")
    scores = scored(scorer, folder / "queries.jsonl", hits)
    times = [1000 * json.loads(line)["seconds"] for line in answers.splitlines()]
    slow = statistics.quantiles(times, n=20)[-1] if len(times) > 1 else times[0]
    return [*(float(scores[name]) for name in COLUMNS), statistics.median(times), slow]


def import_chats(home: Path, records: list[dict[str, Any]]) -> dict[tuple[str, str, int], str]:
    """Import records as chats, a file for each namespace; return which turn each has become."""
    files: dict[str, list[str]] = {}
    said: Counter[tuple[str, str]] = Counter()
    ids = {}
    for each in records:
        place = each["namespace"], each["session_id"]
        ids[*place, each.get("turn", said[place])] = each["id"]
        said[place] += 1
        speaker, _, content = each["text"].partition(": ")
        line = {"role": speaker, "content": content, "at": each["created_at"]}
        line |= {name: each[name] for name in ("session_id", "turn") if name in each}
        files.setdefault(place[0], []).append(json.dumps(line))
    for number, (namespace, lines) in enumerate(files.items()):
        file = home / f"chat-{number}.jsonl"
        file.write_text("\n".join(lines), encoding="utf-8")
        memctl(home, "session", "import", str(file), "--namespace", namespace, "-k", "set")
    return ids


def named(answers: str, ids: dict[tuple[str, str, int], str]) -> str:
    """Return hits with the ids that their turns have in the corpus."""
    lines = []
    for line in answers.splitlines():
        answer = json.loads(line)
        for hit in answer["hits"]:
            turn = -1 if hit["turn"] is None else hit["turn"]
            hit["external_id"] = ids.get((hit["namespace"], hit["session_id"], turn))
        lines.append(json.dumps(answer) + "\n")
    return "".join(lines)


def memctl(home: Path, *command: str) -> str:
    environment = os.environ | {"MEMCTL_HOME": str(home)}
    done = subprocess.run(
        [*MEMCTL, *command], env=environment, capture_output=True, encoding="utf-8", check=False
    )
    if done.returncode not in (0, PARTLY):
        sys.exit(f"memctl {' '.join(command)}: exit {done.returncode}\n{done.stderr}")
    return done.stdout


def scored(scorer: Path, queries: Path, hits: Path) -> dict[str, Any]:
    command = [sys.executable, str(scorer), str(queries), str(hits)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=True)
    scores: dict[str, Any] = json.loads(done.stdout)["all"]
    return scores


if __name__ == "__main__":
    main()
