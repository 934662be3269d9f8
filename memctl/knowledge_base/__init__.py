"""``KnowledgeBase``: one object by composition, and the composition root below ``home``.

Each module holds parts of one kind; ``KnowledgeBases`` asks several at once.
"""

from memctl.knowledge_base.knowledge_base import Agent, KnowledgeBase, KnowledgeBases
from memctl.knowledge_base.resources import SETTINGS

__all__ = ["SETTINGS", "Agent", "KnowledgeBase", "KnowledgeBases"]
