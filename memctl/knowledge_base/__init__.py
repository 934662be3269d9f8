"""``KnowledgeBase``: the one object that every surface talks to, and the composition root.

It wires the stages of ingest, retrieval, consolidation and export together and does no work
itself.  Each module has what it offers of one kind; ``KnowledgeBases`` asks several at once.
"""

from memctl.knowledge_base.knowledge_base import KnowledgeBase
from memctl.knowledge_base.resources import SETTINGS

__all__ = ["SETTINGS", "KnowledgeBase"]
