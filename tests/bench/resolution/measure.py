"""How well names that mean the same are told from those that do not.

    python tests/bench/resolution/measure.py [tune.txt|test.txt]

The sample is invented: notes, mails and chats, each with pairs of names that mean the same there
(``=``) and that do not (``!``).  The rules were made with an eye on ``tune.txt``; ``test.txt`` is
for measuring.  Every text goes through ``memctl ingest`` as a document of its own.  A name that is
not recognised at all is one with nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Pair:
    """Two names in one text, and whether they mean the same."""

    text: str
    one: str
    other: str
    same: bool


def main() -> None:
    names = sys.argv[1:] or ["tune.txt", "test.txt"]
    for name in names:
        texts, pairs = read(HERE / name)
        with tempfile.TemporaryDirectory() as home:
            found = judged(texts, pairs, Path(home))
        report(name, pairs, found)


def read(path: Path) -> tuple[dict[str, str], list[Pair]]:
    texts: dict[str, str] = {}
    pairs: list[Pair] = []
    for block in path.read_text(encoding="utf-8").split("\n# "):
        title, *lines = block.removeprefix("# ").strip().splitlines()
        texts[title] = "\n".join(line for line in lines if line[:2] not in ("= ", "! "))
        pairs += pairs_of(title, lines)
    return texts, pairs


def pairs_of(title: str, lines: list[str]) -> Iterator[Pair]:
    for line in lines:
        if line[:2] in ("= ", "! "):
            one, other = line[2:].split(" | ")
            yield Pair(title, one, other, line[0] == "=")


def judged(texts: dict[str, str], pairs: list[Pair], home: Path) -> list[bool | None]:
    """Whether memctl takes each pair for the same; None where a name was not recognised."""
    lines = [json.dumps({"id": title, "text": text}) for title, text in texts.items()]
    corpus = home / "corpus.jsonl"
    corpus.write_text("\n".join(lines), encoding="utf-8")
    environment = os.environ | {"MEMCTL_HOME": str(home)}
    command = [sys.executable, "-m", "memctl", "ingest", "--jsonl", str(corpus)]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    os.environ["MEMCTL_HOME"] = str(home)

    from memctl.config import load_config
    from memctl.home import Home

    with Home(load_config({})).open("default") as base:
        documents = base.documents.list().to_pylist()
        places = base.graph.view().graph.index.places
    contexts = {row["external_id"]: row["session_id"] or row["id"] for row in documents}
    found: list[bool | None] = []
    for pair in pairs:
        context = contexts[pair.text]
        nodes = [places.get((context, name)) for name in (pair.one, pair.other)]
        found.append(None if None in nodes else nodes[0] == nodes[1])
    return found


def report(name: str, pairs: list[Pair], found: list[bool | None]) -> None:
    true = sum(pair.same and bool(same) for pair, same in zip(pairs, found, strict=True))
    said = sum(map(bool, found))
    alike = sum(pair.same for pair in pairs)
    unknown = sum(same is None for same in found)
    for pair, same in zip(pairs, found, strict=True):
        if bool(same) != pair.same:
            what = "not recognised" if same is None else "taken for the same" if same else "missed"
            print(f"  {what}: {pair.one} | {pair.other} in {pair.text}")
    print(
        f"{name}: {len(pairs)} pairs, {alike} the same; precision {true}/{said} = "
        f"{true / max(said, 1):.3f}, recall {true}/{alike} = {true / max(alike, 1):.3f}; "
        f"a name not recognised in {unknown}"
    )


if __name__ == "__main__":
    main()
