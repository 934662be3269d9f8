"""What speaks for a hit besides its own words: who says it, and what resembles it or leads to it.

Each clue decides by the question and by what was found whether it has anything to say, raises the
scores of hits or brings up others, and leaves its share in ``legs`` for ``--explain``.
"""

from __future__ import annotations

from collections.abc import Sequence

from memctl.records import Hit
from memctl.retrieve.bridge import with_bridges
from memctl.retrieve.collapse import Collapsed, ordered
from memctl.retrieve.events import CLUE as TIME
from memctl.retrieve.events import with_events
from memctl.retrieve.likeness import with_likeness
from memctl.retrieve.question import Question
from memctl.retrieve.rerank import RERANK
from memctl.retrieve.surroundings import Surroundings
from memctl.retrieve.titles import with_titles
from memctl.retrieve.turns import with_turns

WALK = "graph"
"""The share of the mode ``graph``."""
CLUES = (
    "importance",
    "confidence",
    "recency",
    "alike",
    "title",
    "speaker",
    "neighbours",
    "telling",
    TIME,
    "bridge",
    WALK,
)


def own_score(hit: Hit) -> float:
    """Return what a hit's own words gave it, which a model that has read them says best."""
    if RERANK in hit.legs:
        return hit.score
    return hit.score - sum(hit.legs.get(clue, 0.0) for clue in CLUES)


def with_clues(
    items: Sequence[Collapsed], question: Question, around: Surroundings
) -> list[Collapsed]:
    """Return the items, and perhaps others, best first, with all clues counted in."""
    found = with_likeness(around.with_standing(items), question, around)
    found = with_titles(found, question, around)
    found = with_turns(found, question, around)
    found = with_events(found, question, around)
    return ordered(with_bridges(found, question, around))
