"""The shape of what a model says of a picture, which is all that it can say.

Every field is required and no other is allowed, as servers that hold a model to a schema want it.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Picture(BaseModel):
    """What is asked for."""

    model_config = ConfigDict(extra="forbid")

    description: str
    text: str
