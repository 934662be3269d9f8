"""Documents that the question names: a title that stands in the question, word for word.

Who asks for something by its name wants what is about it, not what mentions it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memctl.retrieve.collapse import Collapsed, raised
from memctl.retrieve.names import Phrase, spaced, title_phrases
from memctl.retrieve.question import Question
from memctl.retrieve.surroundings import Surroundings
from memctl.understand.terms import terms

WEIGHT = 2.0
"""In standard deviations of the candidates' scores."""


def with_titles(
    items: Sequence[Collapsed], question: Question, around: Surroundings
) -> list[Collapsed]:
    """Return the items, raised where the question has the title of their document in it."""
    titles = [title_phrases(item.candidate, around.languages) for item in items]
    named = _named({phrase for phrases in titles for phrase in phrases}, question, around)
    return [
        raised(item, "title", 0.0 if named.isdisjoint(phrases) else WEIGHT * around.spread)
        for item, phrases in zip(items, titles, strict=True)
    ]


def _named(titles: Iterable[Phrase], question: Question, around: Surroundings) -> frozenset[Phrase]:
    """The titles in the question that are no mere part of a longer one there.

    A single word has to be written like a name: many a document is called "Notes".
    """
    asked = [spaced(terms(question.text, language)) for language in around.languages]
    written = {term for slot in question.names for term in slot}
    found = [
        title
        for title in titles
        if (len(title) > 1 or title[0] in written) and any(spaced(title) in text for text in asked)
    ]
    return frozenset(
        title
        for title in found
        if not any(title != other and spaced(title) in spaced(other) for other in found)
    )
