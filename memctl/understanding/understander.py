"""What other packages may ask of an understander; the built-in one is one implementation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from memctl.records import SourceText, Understanding

MODEL = "model/"
"""How the method of a model begins; the model's name and its prompt follow."""
NOT_BY_MODEL = "model understanding"
"""What is missing from a document that a model should have understood and did not."""

NOT_ALL_BY_MODEL = "model understanding of all parts"
"""What is missing from a document that is too long for a model to have read all of it."""

BY_MODEL = frozenset((NOT_BY_MODEL, NOT_ALL_BY_MODEL))


class Understander(Protocol):
    """Turns the text of a document into structure."""

    @property
    def method(self) -> str:
        """Name and version, stored with every record it makes: ``builtin/1``.

        What could not be made this way says so with another method, and is redone later.
        """
        ...

    def understand(self, sources: Sequence[SourceText]) -> list[Understanding]:
        """Return one understanding for each source, in order; never raises for odd text.

        Raises:
            ModelUnavailable: What understands cannot be had now, and they are to wait for it.
            ModelRefused: It will not do it as it is configured.
        """
        ...
