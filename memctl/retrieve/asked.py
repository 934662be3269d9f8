"""The question in a message that says more than it asks."""

from __future__ import annotations

from memctl.understand.sentences import sentences

_ENDING = ("?", "？", "؟")
_AFTER = "\"'”’)]»* "


def question_in(message: str) -> str:
    """Return the last question of a message; empty where there is none, or nothing else."""
    asked = [message[start:end].strip() for start, end in sentences(message)]
    questions = [each for each in asked if each.rstrip(_AFTER).endswith(_ENDING)]
    return questions[-1] if questions and len(asked) > 1 else ""
