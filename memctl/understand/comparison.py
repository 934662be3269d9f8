"""The shape of a model's reply about new facts and what was known before, which is all it can say.

It names facts by the numbers that it was given; it can neither word nor delete one.
"""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from memctl.understand.reply import Shape, one_of

Word = Literal["update", "contradiction", "restatement", "unrelated"]


class Verdict(Shape):
    """How one new fact stands to one known memory."""

    new: int
    known: int
    verdict: Annotated[Word, one_of(get_args(Word), "unrelated")]
    why: str


class ComparisonReply(Shape):
    """What a model makes of some new facts; pairs that it does not name have nothing to do."""

    verdicts: list[Verdict]
