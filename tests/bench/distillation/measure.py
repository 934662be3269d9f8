"""How many of the statements that are distilled deserve it, and how many deserving are found.

    python tests/bench/distillation/measure.py [--part tune|report] [--verbose]

``tune.txt`` is for looking at while patterns are written, ``report.txt`` for measuring.  The report
part is not blind: sample and patterns have one author, and when tightening the patterns cost it
recall, its sentences were looked at and two patterns loosened again.  Its figures are therefore an
upper bound; text of other origin is harder.

Each line of a document is ``label | text``; a label may name several types that are right,
joined by slashes, and ``junk`` among them means that leaving it out is right as well. ``+``
continues the line before. A type counts as right when it is one of the label's.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from memctl.records import Distilled, Segment, SourceText
from memctl.understanding import BuiltinUnderstander

HERE = Path(__file__).parent
TYPES = ("fact", "important_fact", "decision", "preference", "plan", "observation")


@dataclass
class Sentence:
    """One labelled sentence and where it stands in its document."""

    labels: tuple[str, ...]
    start: int
    end: int


@dataclass
class Sample:
    """One labelled document."""

    name: str
    kind: str
    text: str = ""
    sentences: list[Sentence] = field(default_factory=list)

    def add(self, label: str, text: str) -> None:
        """Append a sentence: after a space in prose and for ``+``, else on a line of its own."""
        joined = text.startswith("+ ") or self.kind == "prose"
        self.text += "" if not self.text else " " if joined else "\n"
        start = len(self.text)
        self.text += text.removeprefix("+ ")
        self.sentences.append(Sentence(tuple(label.split("/")), start, len(self.text)))


def samples(path: Path) -> list[Sample]:
    """Read the labelled documents of a file."""
    found: list[Sample] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("## ") and line.count(";") == 3:
            name, kind, *_ = (piece.strip() for piece in line[3:].split(";"))
            found.append(Sample(name, kind))
        elif " | " in line:
            found[-1].add(*line.split(" | ", 1))
    return found


def source(sample: Sample) -> SourceText:
    """The document as its reader would hand it over."""
    return SourceText(sample.text, "text/plain", "text/1", tuple(_segments(sample)))


def _segments(sample: Sample) -> Iterator[Segment]:
    position, speaker, heading = 0, None, ""
    for line in sample.text.splitlines(keepends=True):
        end = position + len(line.rstrip("\n"))
        if sample.kind == "chat":
            speaker = line.split(":")[0]
        if line.startswith("#"):
            heading = line.strip("# \n")
        kind = "turn" if speaker else "heading" if line.startswith("#") else "prose"
        yield Segment(position, end, kind, heading, speaker=speaker)
        position += len(line)


def measure(part: str, *, verbose: bool = False) -> dict[str, float]:
    """Print precision and recall of a part and return the totals."""
    right, given, wanted, found = Counter(), Counter(), Counter(), Counter()
    worth = 0
    for sample in samples(HERE / f"{part}.txt"):
        [understood] = BuiltinUnderstander().understand([source(sample)])
        hit: set[int] = set()
        for statement in understood.distilled:
            number = _labelled(sample, statement)
            labels = sample.sentences[number].labels
            hit.add(number)
            given[statement.type] += 1
            right[statement.type] += statement.type in labels
            worth += labels != ("junk",)
            if verbose and statement.type not in labels:
                print(f"  wrong  {sample.name}: {labels} {statement.type} "
                      f"({statement.reason}): {statement.text}")  # fmt: skip
        for number, sentence in enumerate(sample.sentences):
            if "junk" not in sentence.labels:
                wanted[sentence.labels[0]] += 1
                found[sentence.labels[0]] += number in hit
                if verbose and number not in hit:
                    text = sample.text[sentence.start : sentence.end]
                    print(f"  missed {sample.name}: {sentence.labels} {text}")
    _print(part, right, given, wanted, found, worth)
    total = max(sum(given.values()), 1)
    return {
        "precision": sum(right.values()) / total,
        "worth remembering": worth / total,
        "recall": sum(found.values()) / max(sum(wanted.values()), 1),
    }


def _labelled(sample: Sample, statement: Distilled) -> int:
    """The sentence that a statement stands in."""
    assert sample.text[statement.start : statement.end] == statement.text
    return next(n for n, one in enumerate(sample.sentences) if statement.start < one.end)


def _print(
    part: str, right: Counter, given: Counter, wanted: Counter, found: Counter, worth: int
) -> None:
    print(part)
    print(f"  {'type':<16}{'given':>6}{'right':>6}{'precision':>11}{'wanted':>8}{'recall':>8}")
    for name in TYPES:
        print(_row(name, given[name], right[name], wanted[name], found[name]))
    totals = (sum(counter.values()) for counter in (given, right, wanted, found))
    print(_row("all", *totals))
    share = worth / max(sum(given.values()), 1)
    print(f"  worth remembering, whatever the type: {share:.2f}")


def _row(name: str, given: int, right: int, wanted: int, found: int) -> str:
    precision = f"{right / given:.2f}" if given else "-"
    recall = f"{found / wanted:.2f}" if wanted else "-"
    return f"  {name:<16}{given:>6}{right:>6}{precision:>11}{wanted:>8}{recall:>8}"


def main() -> None:
    """Measure the part that is named, the report part by default."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=("tune", "report"), default="report")
    parser.add_argument("--verbose", action="store_true", help="show what is wrong or missed")
    arguments = parser.parse_args()
    measure(arguments.part, verbose=arguments.verbose)


if __name__ == "__main__":
    main()
