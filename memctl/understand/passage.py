"""What of a passage is searched by its words and what by its vector.

Writing and asking must agree on this, so it stands in one place.
"""

from __future__ import annotations

from memctl.understand.terms import terms


def passage_terms(title: str, heading: str, text: str, language: str = "") -> list[str]:
    """Return the terms that find a passage; joined by spaces they are its search text."""
    return terms("\n".join(_parts(title, heading, text)), language)


def passage_for_embedding(title: str, heading: str, text: str) -> str:
    """Return the text whose vector stands for the passage."""
    return "\n".join(_parts(title, heading, text))


def _parts(title: str, heading: str, text: str) -> list[str]:
    """Title, heading and text, without a title or heading that the text begins with anyway."""
    parts = [text]
    for above in (heading, title):
        if above and not parts[0].casefold().startswith(above.strip().casefold()):
            parts.insert(0, above.strip())
    return parts
