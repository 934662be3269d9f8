"""A model's wording of the next query of an agentic search.

What it says is only ever searched for; it is told no more than the memories found.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from memctl.models.tokens import approximate_tokens
from memctl.prompts import fenced
from memctl.records import Hit
from memctl.retrieve.context import numbered_excerpts

if TYPE_CHECKING:
    from memctl.models.chat import ChatModel
    from memctl.prompts import Prompt

_LONGEST = 300
"""Characters of a query; more is no query."""
_BUDGET = 1_500
"""Tokens of memories that the model is given."""


class ModelReformulator:
    """Lets a model word a query.

    Args:
        chat: The model.
        prompt: What it is told.
    """

    def __init__(self, chat: ChatModel, prompt: Prompt) -> None:
        self._chat = chat
        self._prompt = prompt

    def query(self, question: str, hits: Sequence[Hit], missing: Sequence[str]) -> str:
        """Return the next query; empty where the model sees nothing more to look for.

        Args:
            question: In words.
            hits: The best of what was found.
            missing: Words of the question that none of them has.

        Raises:
            ModelError: There is none.
        """
        from memctl.retrieve.reformulate_shape import QueryReply

        given = numbered_excerpts(hits, _BUDGET, approximate_tokens)
        asked = f"The question: {' '.join(question.split())}"
        lost = f"Words that no memory has: {' '.join(missing) or 'none'}"
        data = f"{fenced([item.text for item in given])}\n\n{asked}\n{lost}"
        reply = self._chat.ask(self._prompt.text, data, QueryReply, version=self._prompt.id)
        return " ".join(reply.query.split())[:_LONGEST]
