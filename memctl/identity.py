"""Who asks and who writes: a user, an agent, a conversation; and the namespaces of each user.

Knows names alone; what an agent may do, and which rows a namespace has, is for others to say.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from memctl.errors import UsageError

if TYPE_CHECKING:
    from memctl.config import Config, NamespaceSettings

DEFAULT_USER = "default_user"
"""The user of a conversation that names none."""
DEFAULT_SESSION = "default_session"
"""The conversation of a call that needs one and names none."""
DEFAULT_NAMESPACE = "default"
"""Where things go for which no user is named."""
LONGEST_NAME = 200
"""Characters of the name of a user, an agent or a conversation."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a call is made for; None where nobody is named."""

    user: str | None = None
    agent: str | None = None
    session: str | None = None

    @classmethod
    def of(
        cls,
        config: Config,
        *,
        user: str | None = None,
        agent: str | None = None,
        session: str | None = None,
    ) -> Self:
        """Return what a command names, and for what it leaves out what the environment does.

        Raises:
            UsageError: A name cannot be one.
        """
        return cls(
            checked_name(user or config.user, "a user"),
            checked_name(agent or config.agent, "an agent"),
            checked_name(session or config.session, "a conversation"),
        )


def checked_name(name: str | None, what: str) -> str | None:
    """Return a name without the blanks around it.

    Raises:
        UsageError: It is empty, too long, has a colon, which separates the parts of a namespace,
            or characters that cannot be shown.
    """
    if name is None:
        return None
    stripped = name.strip()
    is_shown = stripped.isprintable() and ":" not in stripped
    if not stripped or len(stripped) > LONGEST_NAME or not is_shown:
        raise UsageError(
            f"{name[:40]!r} cannot be the name of {what}",
            f"use 1 to {LONGEST_NAME} characters that can be shown, and no colon",
        )
    return stripped


def conversations_of(namespaces: NamespaceSettings, user: str) -> str:
    """Return the namespace of a user's conversations."""
    return namespaces.conversations.replace("{user_id}", user)


def documents_of(namespaces: NamespaceSettings, user: str) -> str:
    """Return the namespace of what a user ingests."""
    return namespaces.documents.replace("{user_id}", user)


def readable_by(namespaces: NamespaceSettings, user: str) -> tuple[str, ...]:
    """Return the namespaces that a query of a user reads."""
    return (conversations_of(namespaces, user), documents_of(namespaces, user), namespaces.shared)
