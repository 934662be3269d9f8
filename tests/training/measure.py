"""Measure answers on the worlds that the reading model was not trained on, through the commands.

    python tests/training/measure.py [--details FILE]

Each world is written as files, ingested into a new home, and asked its questions.  An answer is
right if a citation quotes a unit that answers.  Prints a table by threshold of confidence.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

DATA = Path(__file__).with_name("data")
HELD_OUT = ("a-w02", "a-w07", "b-w02", "b-w07", "c-w02", "c-w07", "k-w03", "l-w02", "m-w04",
            "n-w04", "o-w03", "p-w02", "q-w02", "s-w02", "t-w02", "v-w05", "w-w05", "x-w05",
            "y-w05", "zsh", "ntpsec")  # fmt: skip
"""Worlds that nothing is trained on: thresholds are chosen on them and figures come from them."""
_AS_TEXT = (".pdf", ".docx", ".xlsx", ".png", ".jpg", ".mbox", ".eml", ".html", ".ics", ".vcf",
            ".csv", ".json")  # fmt: skip
"""Files of these kinds would need more than their text."""


def main() -> None:
    """Ask the questions of the held-out worlds and print how they were answered."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--details", type=Path)
    options = parser.parse_args()
    asked = [each for world in HELD_OUT for each in ask_world(world)]
    if options.details:
        options.details.write_text(json.dumps(asked, indent=1, ensure_ascii=False), "utf-8")
    report(asked)


def ask_world(world: str) -> list[dict[str, Any]]:
    """Return the questions of a world with what was answered."""
    documents = [
        row
        for path in sorted(DATA.glob("*.jsonl"))
        for row in map(json.loads, path.read_text("utf-8").splitlines())
        if row.get("id", "").startswith(f"{world}-")
    ]
    with tempfile.TemporaryDirectory() as folder:
        files, batch = Path(folder, "files"), Path(folder, "questions.jsonl")
        questions = []
        for document in documents:
            write_document(files, document)
            for number, (question, right, _) in enumerate(document["qa"]):
                gold = [document["units"][at][0] for at in right]
                id_ = f"{document['id']}-{number}"
                questions.append({"id": id_, "question": question, "gold": gold})
        batch.write_text("".join(json.dumps(each) + "\n" for each in questions), "utf-8")
        home = Path(folder, "home")
        run(home, "kb", "create", "world")
        run(home, "ingest", "-k", "world", "-q", files)
        lines = run(home, "query", "-k", "world", "--batch", batch, "-o", "ndjson").splitlines()
        results = {row["id"]: row for row in map(json.loads, lines)}
    return [judged(each, results[each["id"]]) for each in questions]


def write_document(files: Path, document: dict[str, Any]) -> None:
    """Write a document as a person would have it, a unit a line."""
    path = files / document["file"]
    path = path.with_suffix(".txt") if path.suffix in _AS_TEXT else path
    path.parent.mkdir(parents=True, exist_ok=True)
    title, date = document.get("title") or "", document.get("date") or ""
    head = [f"# {title}" if path.suffix == ".md" else title, date, ""]
    path.write_text("\n".join([*head, *(unit[0] for unit in document["units"]), ""]), "utf-8")
    if re.fullmatch(r"\d{4}-\d\d-\d\d", date):
        moment = datetime.datetime.fromisoformat(date).timestamp()
        os.utime(path, (moment, moment))


def judged(question: dict[str, Any], result: dict[str, Any]) -> dict[str, Any]:
    """Return a question with its answer and whether that quotes what answers it."""
    answer = result.get("answer") or {}
    quotes = [plain(each["quote"]) for each in answer.get("citations", [])]
    gold = [plain(each) for each in question["gold"]]
    return {
        **question,
        "answer": answer.get("text"),
        "confidence": answer.get("confidence") or 0.0,
        "sure": bool(answer.get("found")),
        "unsure": bool(answer.get("unsure")),
        "right": any(
            g and (g in quote or (len(quote) > 8 and quote in g)) for g in gold for quote in quotes
        ),
        "in_hits": any(g and g in plain(h["text"]) for g in gold for h in result["hits"][:5]),
    }


def plain(text: str) -> str:
    """Return the words of a text in lower case."""
    return re.sub(r"\W+", " ", text.lower()).strip()


def report(asked: Sequence[dict[str, Any]]) -> None:
    """Print shares in percent, of the answerable and of the unanswerable."""
    real = [each for each in asked if each["gold"]]
    none = [each for each in asked if not each["gold"]]
    print(
        f"answerable {len(real)}: right {share(real, lambda e: e['sure'] and e['right'])}"
        f" hedged {share(real, lambda e: e['unsure'] and e['right'])}"
        f" false {share(real, lambda e: e['sure'] and not e['right'])}"
        f" evidence in 5 {share(real, lambda e: e['in_hits'])}"
    )
    print(
        f"unanswerable {len(none)}:"
        f" refused {share(none, lambda e: not e['sure'] and not e['unsure'])}"
        f" unsure {share(none, lambda e: e['unsure'])} false {share(none, lambda e: e['sure'])}"
    )
    for tenth in range(1, 10):
        given = [each for each in asked if each["confidence"] >= tenth / 10]
        print(
            f"from {tenth / 10}: right {share(real, lambda e, g=given: e in g and e['right'])}"
            f" of the answerable; wrong {share(given, lambda e: not e['right'])} of the given;"
            f" given {share(none, lambda e, g=given: e in g)} of the unanswerable"
        )


def share(items: Sequence[dict[str, Any]], is_one: Any) -> float:
    """Return the percentage of which something holds."""
    return round(100 * sum(map(bool, map(is_one, items))) / max(len(items), 1), 1)


def run(home: Path, *arguments: object) -> str:
    """Run memctl and return what it prints."""
    command = [sys.executable, "-m", "memctl", *map(str, arguments)]
    env = os.environ | {"MEMCTL_HOME": str(home), "NO_COLOR": "1"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 3, 4):
        raise SystemExit(done.stderr[-1000:])
    return done.stdout


if __name__ == "__main__":
    main()
