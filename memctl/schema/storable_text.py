"""What text tables and ledger can hold."""

from __future__ import annotations


def storable(text: str) -> str:
    """Return a text as it is stored: with ``?`` for lone surrogates, which UTF-8 has no bytes for.

    The name of a file that is no UTF-8 has some.
    """
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
