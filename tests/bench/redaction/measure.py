"""How well what is secret in texts of documents is told from what only looks like it.

    python tests/bench/redaction/measure.py

Each line of ``sample.txt`` is a text: one that begins with ``=`` has a secret between ⟦ and ⟧, one
that begins with ``!`` has none.  All keys are invented, in the shapes that their providers give
them; the ``¦`` in each is left out, and keeps scanners of repositories from taking them for real
ones.  A secret counts as found when nothing of it is left, and a text without one as mistaken when
anything of it goes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from memctl.redaction import MARK, redact_secrets

SAMPLE = Path(__file__).parent / "sample.txt"
_SECRET = re.compile("⟦(.*?)⟧", re.DOTALL)
_LEFT = 8
"""Characters of a secret in a row that count as some of it."""


@dataclass(frozen=True)
class Case:
    """A text, and what is secret in it; nothing where it is empty."""

    text: str
    secret: str

    @property
    def is_found(self) -> bool:
        """Whether nothing is left of the secret, and all is left of what stands before it."""
        clean = redact_secrets(self.text)
        pieces = (self.secret[at : at + _LEFT] for at in range(0, len(self.secret), _LEFT))
        is_gone = not any(piece in clean for piece in pieces if len(piece) == _LEFT)
        return MARK in clean and is_gone and self.secret not in clean

    @property
    def is_untouched(self) -> bool:
        """Whether it stays as it is."""
        return redact_secrets(self.text) == self.text


def cases() -> Iterator[Case]:
    for line in SAMPLE.read_text(encoding="utf-8").splitlines():
        text = line[2:].replace("\\n", "\n").replace("¦", "")
        match = _SECRET.search(text)
        yield Case(_SECRET.sub(r"\1", text), match[1] if match else "")


def measured(sample: list[Case]) -> tuple[float, float]:
    """Return precision and recall."""
    found = sum(case.is_found for case in sample if case.secret)
    mistaken = sum(not case.is_untouched for case in sample if not case.secret)
    return found / max(found + mistaken, 1), found / sum(bool(case.secret) for case in sample)


def main() -> None:
    sample = list(cases())
    precision, recall = measured(sample)
    for case in sample:
        if case.secret and not case.is_found:
            print(f"missed    {case.text[:100]!r}")
        if not case.secret and not case.is_untouched:
            print(f"mistaken  {case.text[:100]!r}: {redact_secrets(case.text)[:100]!r}")
    print(f"{len(sample)} texts: precision {precision:.3f}, recall {recall:.3f}")


if __name__ == "__main__":
    main()
