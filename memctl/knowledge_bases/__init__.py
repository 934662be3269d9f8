"""Several knowledge bases asked at once: questions, context and SQL over all of them."""

from memctl.knowledge_bases.bases import KnowledgeBases
from memctl.knowledge_bases.options import AskOptions

__all__ = ["AskOptions", "KnowledgeBases"]
