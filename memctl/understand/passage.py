"""What of a passage is searched by its words and what by its vector.

Writing and asking must agree on this, so it stands in one place.
"""

from __future__ import annotations

from memctl.understand.terms import terms

TITLE_WEIGHT = 2
"""How often a title counts: a passage rarely repeats what it is about."""


def passage_terms(title: str, heading: str, text: str, language: str = "") -> list[str]:
    """Return the terms that find a passage; joined by spaces they are its search text."""
    whole = passage_for_embedding(title, heading, text)
    missing = [title] * (TITLE_WEIGHT - 1)
    return terms("\n".join([*missing, whole]), language)


def passage_for_embedding(title: str, heading: str, text: str) -> str:
    """Return the text whose vector stands for the passage.

    A title or heading that the text begins with anyway is not said twice.
    """
    if not title and not heading:
        return text
    parts = [text]
    for above in (heading.strip(), title.strip()):
        if above and not parts[0].casefold().startswith(above.casefold()):
            parts.insert(0, above)
    return "\n".join(parts)
