"""The shape of a model's reply about a document, which is all that it can say.

Every field is required and no other is allowed, as servers that hold a model to a schema want it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

EntityType = Literal["person", "organization", "place", "product", "project", "event", "other"]
FactType = Literal["fact", "decision", "preference", "plan", "observation", "important_fact"]


def one_of(words: tuple[str, ...], otherwise: str) -> BeforeValidator:
    """Take an unknown word for the most general one: it is no reason to ask again."""

    def known(value: Any) -> Any:
        """Return one of the words; what is no text is left to be refused."""
        if not isinstance(value, str):
            return value
        word = value.strip().lower().replace(" ", "_")
        return word if word in words else otherwise

    return BeforeValidator(known)


class StrictModel(BaseModel):
    """Whatever is not asked for makes a reply invalid."""

    model_config = ConfigDict(extra="forbid")


class NamedEntity(StrictModel):
    """A person or thing that the document names."""

    name: str
    type: Annotated[EntityType, one_of(get_args(EntityType), "other")]


class Fact(StrictModel):
    """A statement, with the words of the document that make it."""

    subject: str
    relation: str
    object: str
    type: Annotated[FactType, one_of(get_args(FactType), "fact")]
    quote: str
    why: str


class DocumentReply(StrictModel):
    """What a model understood of a document, or of it as far as one part of it."""

    gist: str
    entities: list[NamedEntity]
    topics: list[str]
    importance: Annotated[float, Field(ge=0, le=1)]
    importance_reason: str
    dates: list[str]
    facts: list[Fact]


VerdictName = Literal["update", "contradiction", "restatement", "unrelated"]


class Verdict(StrictModel):
    """How one new fact stands to one known memory."""

    new: int
    known: int
    verdict: Annotated[VerdictName, one_of(get_args(VerdictName), "unrelated")]
    why: str


class ComparisonReply(StrictModel):
    """What a model makes of some new facts; pairs that it does not name have nothing to do."""

    verdicts: list[Verdict]


class SourceQuote(StrictModel):
    """Words of a memory, by the number that it was given under."""

    source: int
    quote: str


class AnswerCheck(StrictModel):
    """What is to be said of an answer."""

    verdict: Literal["good", "bad"]
    quotes: list[SourceQuote]
    why: str
