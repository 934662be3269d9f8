"""The schemas of models' replies.

Every field is required and no other is allowed, as servers that enforce a schema want it.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class _Schema(BaseModel):
    model_config = ConfigDict(extra="forbid")


class CitedSentence(_Schema):
    """A sentence with the numbers of the memories that say it."""

    text: str
    memories: list[int]


class AnswerReply(_Schema):
    """An answer, or that it is not in memory."""

    not_in_memory: bool
    sentences: list[CitedSentence]


class QueryReply(_Schema):
    """The next query of an agentic search."""

    query: str
