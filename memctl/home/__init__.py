"""All knowledge bases on this disk: create, list, open, change, rename, delete.

Knows folders and settings; what is inside a knowledge base only ``KnowledgeBase`` knows.
"""

from memctl.home.home import Home
from memctl.home.kb_folders import KnowledgeBaseEntry

__all__ = ["Home", "KnowledgeBaseEntry"]
