"""The shape of what a model says of a group of memories, which is all that it can say.

Every field is required and no other is allowed, as servers that hold a model to a schema want it.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class _Shape(BaseModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=True)


class Contradiction(_Shape):
    """Two memories that cannot both be true."""

    first: int
    second: int


class ConnectionReply(_Shape):
    """How one memory hangs together with another."""

    start: int = Field(alias="from")
    end: int = Field(alias="to")
    relationship: str


class InsightReply(_Shape):
    """What memories say together; memories by the numbers that they were given under."""

    text: str
    connects: str
    changed: str
    contradictions: list[Contradiction]
    sources: list[int]
    connections: list[ConnectionReply]
