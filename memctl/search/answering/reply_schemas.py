"""The shape of a model's answer, which is all that it can say.

Every field is required and no other is allowed, as servers that hold a model to a schema want it.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class _Shape(BaseModel):
    model_config = ConfigDict(extra="forbid")


class CitedSentence(_Shape):
    """A sentence, and the numbers of the memories that say it."""

    text: str
    memories: list[int]


class AnswerReply(_Shape):
    """An answer, or that there is none."""

    not_in_memory: bool
    sentences: list[CitedSentence]


class QueryReply(BaseModel):
    """Another query."""

    model_config = ConfigDict(extra="forbid")

    query: str
