"""memctl: the memory that a person or an AI agent keeps on their own disk.

::

    import memctl

    with memctl.open("notes", create=True) as notes:
        notes.ingest(["minutes.md", "budget.pdf"])
        result = notes.query("when is the launch?")
        print(result.answer.text, result.answer.citations)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from memctl.errors import (
        AccessRefused,
        ConfigError,
        DamagedError,
        DiskRefused,
        KnowledgeBaseNotFound,
        KnowledgeBaseUnavailable,
        LockedError,
        MemctlError,
        ModelError,
        NotFoundError,
        QuotaExceeded,
        UsageError,
        VersionConflict,
    )
    from memctl.home import Home
    from memctl.knowledge_base import Agent, KnowledgeBase, KnowledgeBases
    from memctl.records import (
        Answer,
        Citation,
        ConsolidationReport,
        Context,
        Document,
        Filters,
        Hit,
        IngestReport,
        Memory,
        Progress,
        QueryResult,
        Question,
    )

__version__ = "0.1.0"
_LAZY_MODULES = ("errors", "records", "knowledge_base", "home")
"""Where names are imported from when they are first used, the cheapest first."""
__all__ = [
    "AccessRefused",
    "Agent",
    "Answer",
    "Citation",
    "ConfigError",
    "ConsolidationReport",
    "Context",
    "DamagedError",
    "DiskRefused",
    "Document",
    "Filters",
    "Hit",
    "Home",
    "IngestReport",
    "KnowledgeBase",
    "KnowledgeBaseNotFound",
    "KnowledgeBaseUnavailable",
    "KnowledgeBases",
    "LockedError",
    "MemctlError",
    "Memory",
    "ModelError",
    "NotFoundError",
    "Progress",
    "QueryResult",
    "Question",
    "QuotaExceeded",
    "UsageError",
    "VersionConflict",
    "__version__",
    "agent",
    "open",
    "open_home",
]


def __getattr__(name: str) -> Any:
    """Import a name when it is first used, so that ``import memctl`` stays light."""
    for module in _LAZY_MODULES if name in __all__ else ():
        found = getattr(import_module(f"memctl.{module}"), name, None)
        if found is not None:
            return found
    raise AttributeError(f"module 'memctl' has no attribute {name!r}")


def open_home(folder: Path | str | None = None) -> Home:
    """Return all knowledge bases of a folder, to create, list, change and delete them.

    Args:
        folder: Where they are; by default what the environment and the settings file say.
    """
    from memctl.config import load_config
    from memctl.home import Home

    return Home(load_config({} if folder is None else {"home": str(folder)}))


def open(name: str, *, home: Path | str | None = None, create: bool = False) -> KnowledgeBase:
    """Open a knowledge base; close it, or use it in a ``with`` statement.

    Args:
        name: Its name.
        home: The folder that holds all of them; by default as for the command line.
        create: Make it if it is not there.

    Raises:
        KnowledgeBaseNotFound: There is none of that name.
        UsageError: No knowledge base can have that name.
    """
    every = open_home(home)
    if create and not every.exists(name):
        every.create(name)
    return every.open(name)


def agent(
    name: str | None = None,
    *,
    user: str | None = None,
    session: str | None = None,
    kb: str | None = None,
    home: Path | str | None = None,
) -> Agent:
    """Return an agent in a conversation of a user; close it, or use it in a ``with`` statement.

    Args:
        name: What the agent is called; what is not named here is as for the command line.
        user: Whose conversation it is.
        session: The conversation, which is begun where it is not there.
        kb: The knowledge base that it is kept in.
        home: The folder that holds all of them.

    Raises:
        KnowledgeBaseNotFound: There is none of that name.
        UsageError: A name cannot be one.
    """
    from memctl.errors import MemctlError
    from memctl.identity import Identity
    from memctl.knowledge_base import Agent

    every = open_home(home)
    who = Identity.of(every.config, user=user, agent=name, session=session)
    base = every.acting_as(user=who.user, agent=who.agent).open_for_writing(kb)
    try:
        return Agent(base, who.session)
    except MemctlError:
        base.close()
        raise
