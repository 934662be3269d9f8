"""The shape of a model's reply with a query, which is all that it can say."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class QueryReply(BaseModel):
    """Another query."""

    model_config = ConfigDict(extra="forbid")

    query: str
