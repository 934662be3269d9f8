"""Who asks and who writes: a user, an agent, a conversation; and the namespaces of each user.

Knows names alone; what an agent may do, and which rows a namespace has, is for others to say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from msgspec import Struct
from msgspec.structs import replace

from memctl.errors import AccessRefused, ConfigError, UsageError
from memctl.ids import agent_namespace, private_agent, without_keeper

if TYPE_CHECKING:
    from memctl.config import Config, NamespaceSettings
    from memctl.records import Filters

DEFAULT_USER = "default_user"
"""The user of a conversation that names none."""
DEFAULT_SESSION = "default_session"
"""The conversation of a call that needs one and names none."""
DEFAULT_NAMESPACE = "default"
"""Where things go for which no user is named."""
_USER = "{user_id}"
LONGEST_NAME = 200
"""Characters of the name of a user, an agent or a conversation."""


class Identity(Struct, frozen=True):
    """The user that a call is made for; None if none is named."""

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


def conversations_of(namespaces: NamespaceSettings, user: str | None) -> str:
    """Return the namespace of a user's conversations; the default one where none is named.

    Raises:
        ConfigError: The template is the same for every user.
    """
    return _fill(namespaces.conversations, "conversations", user)


def documents_of(namespaces: NamespaceSettings, user: str | None) -> str:
    """Return the namespace of what a user ingests; the default one where none is named.

    Raises:
        ConfigError: The template is the same for every user.
    """
    return _fill(namespaces.documents, "documents", user)


def _fill(template: str, name: str, user: str | None) -> str:
    if not user:
        return DEFAULT_NAMESPACE
    if _USER not in template:
        raise ConfigError(
            f"the setting namespaces.{name} is {template!r}, the same for every user",
            f'write it with {_USER}, like "user:{_USER}:{name}"',
        )
    return template.replace(_USER, user)


def private_namespace(namespaces: NamespaceSettings, agent: str, user: str | None) -> str:
    """Return the namespace of what an agent keeps to itself, of a user or of none."""
    return agent_namespace(agent, None if user is None else conversations_of(namespaces, user))


def readable_by(
    namespaces: NamespaceSettings, user: str, agent: str | None = None
) -> tuple[str, ...]:
    """Return the namespaces that a query of a user reads, and the agent's own where one asks."""
    own = (
        ()
        if agent is None
        else (private_namespace(namespaces, agent, user), agent_namespace(agent))
    )
    return (
        conversations_of(namespaces, user),
        documents_of(namespaces, user),
        namespaces.shared,
        *own,
    )


def owner_of(namespaces: NamespaceSettings, namespace: str) -> str | None:
    """Return the user that a namespace belongs to; None if it belongs to no single user.

    What begins as a user's namespaces do, up to the colon after the name, is that user's, too: an
    agent may name others for them than the program's settings.  So is what an agent keeps of them.
    """
    namespace = without_keeper(namespace)
    for template in (namespaces.conversations, namespaces.documents):
        before, _, after = template.partition(_USER)
        if not namespace.startswith(before):
            continue
        rest = namespace.removeprefix(before)
        name, colon, _ = rest.partition(":")
        if before and colon and after.startswith(":"):
            return name or None
        name = rest.removesuffix(after)
        if name and ":" not in name and template.replace(_USER, name) == namespace:
            return name
    return None


def may_see(config: Config, namespace: str) -> bool:
    """Return whether the acting user or agent may see a namespace, which must not be another's."""
    if config.agent is not None and private_agent(namespace) not in (None, config.agent):
        return False
    return config.user is None or owner_of(config.namespaces, namespace) in (None, config.user)


def require_seen(config: Config, namespace: str) -> None:
    """Refuse a namespace of another user or agent.

    Raises:
        AccessRefused: It is one.
    """
    if may_see(config, namespace):
        return
    if config.user is None:
        raise AccessRefused(
            f"{namespace!r} is what agent {private_agent(namespace)!r} keeps to itself",
            f"use another namespace, like {agent_namespace(config.agent or '')}",
        )
    raise AccessRefused(
        f"{namespace!r} is not of user {config.user!r}",
        f"there are {', '.join(readable_by(config.namespaces, config.user, config.agent))}",
    )


def within_reach(filters: Filters, config: Config) -> Filters:
    """Return filters limited to what the user or agent that is named reads, else as they are.

    Raises:
        AccessRefused: They name a namespace of another user or agent.
    """
    for namespace in filters.namespaces:
        require_seen(config, namespace)
    if config.agent is not None:
        filters = replace(filters, agent=config.agent)
    if config.user is None or filters.namespaces:
        return filters
    readable = readable_by(config.namespaces, config.user, config.agent)
    return replace(filters, namespaces=readable)
