"""In which order hits go into a budget of tokens: by what they are worth for their length.

The chance that a hit is evidence falls with its rank about as one over it.  At the same rank a
long one is evidence more often than a short one, but not twice as often where it is twice as long,
so a budget holds more evidence in short ones.  And who answers in one turn of a conversation tends
to say more in others.  Measured in ``tests/bench/retrieval.md``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import sqrt

from memctl.records import Hit

TOGETHER = 0.01
"""Of the chances of all other turns of its conversation, the share that is a turn's as well."""
_FRAME = 32
"""Characters of a number, a place or a day that stand with each hit, roughly."""

_Conversation = tuple[str, str, str]


def by_worth(hits: Sequence[Hit]) -> list[Hit]:
    """Return hits that are best first in the order to fill a budget with; the best stays first."""
    chances = [1 / rank for rank, _ in enumerate(hits, start=1)]
    conversations = [_conversation(hit) for hit in hits]
    told: dict[_Conversation, float] = defaultdict(float)
    for conversation, chance in zip(conversations, chances, strict=True):
        if conversation is not None:
            told[conversation] += chance

    def worth(at: int) -> float:
        """Return the chance that a hit is evidence, for its length."""
        chance, conversation = chances[at], conversations[at]
        if conversation is not None:
            chance += TOGETHER * (told[conversation] - chance)
        return chance / sqrt(len(hits[at].text) + _FRAME)

    others = sorted(range(1, len(hits)), key=worth, reverse=True)
    return [*hits[:1], *(hits[at] for at in others)]


def _conversation(hit: Hit) -> _Conversation | None:
    """The conversation that a hit is a turn of."""
    if hit.level != "evidence" or hit.type != "turn" or hit.session_id is None:
        return None
    return hit.kb, hit.namespace, hit.session_id
