"""What a user has stored in all knowledge bases on this disk: counted, and deleted."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from memctl.errors import NotFoundError
from memctl.identity import checked_name, conversations_of, documents_of, owner_of, require_seen
from memctl.kb_settings import is_kb_name

if TYPE_CHECKING:
    from memctl.home import Home
    from memctl.knowledge_base import KnowledgeBase
    from memctl.store.ledger.content_tables import ContentOwner


class UserReport(Struct, frozen=True):
    """What is known of a user, and what they have stored."""

    name: str
    namespaces: tuple[str, ...]
    title: str = ""
    created_at: datetime | None = None
    """When the user was added; None for a user that was never added."""
    stored: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """How much there is, by knowledge base and table."""
    left: tuple[str, ...] = ()
    """Where some of it still is after it was to be forgotten."""


def user_names(home: Home) -> list[str]:
    """Return the users who were added or own a namespace in which something is, sorted.

    A user who is named sees their own name alone.
    """
    found = {user.name for user in home.accounts.users()}
    for base in home.readable():
        owners = (owner_of(home.config.namespaces, n) for n in base.statistics.namespaces())
        found.update(owner for owner in owners if owner is not None)
    acting = home.config.user
    return sorted(found if acting is None else found & {acting})


def user_report(home: Home, name: str) -> UserReport:
    """Return what is known of a user, and how much they have stored.

    Raises:
        UsageError: No user can have that name.
        AccessRefused: Another user is named as the one who acts.
    """
    owner = _content_owner(home, name)
    for namespace in owner.namespaces or ():
        require_seen(home.config, namespace)
    stored = {}
    for base in home.readable():
        pools = len(_owned_pools(home, base, name))
        stored[base.name] = {
            **base.erasure.count_owned(owner),
            **({"pools": pools} if pools else {}),
        }
    known = home.accounts.user(name)
    return UserReport(
        name,
        owner.namespaces or (),
        known.title if known else "",
        known.created_at if known else None,
        {kb: counts for kb, counts in stored.items() if counts},
    )


def clear_user(home: Home, name: str, *, forget: bool = False) -> UserReport:
    """Delete all that a user has stored in any knowledge base; return what that was.

    Args:
        home: All knowledge bases.
        name: Who.
        forget: Remove it from the disk too, and search what is left for it.

    Raises:
        LockedError: Another process is writing and does not stop.
        AccessRefused: Another user is named as the one who acts.
    """
    from memctl.forget import Selection

    report, owner = user_report(home, name), _content_owner(home, name)
    left: list[str] = []
    for kb in report.stored:
        with home.open(kb) as base:
            for pool in _owned_pools(home, base, name):
                base.pools.acting_as(name).delete(pool)
            for namespace in owner.namespaces or () if forget else ():
                with suppress(NotFoundError):
                    done = base.forget(Selection(namespace=namespace))
                    left += [f"{kb}: {each.place}" for each in done.left]
            base.erasure.clear(owner)
    return replace(report, left=tuple(dict.fromkeys(left)))


def _content_owner(home: Home, user: str) -> ContentOwner:
    from memctl.store.ledger.content_tables import ContentOwner

    checked_name(user, "a user")
    templates = home.config.namespaces
    stored = {name for base in home.readable() for name in base.statistics.namespaces()}
    further = sorted(name for name in stored if owner_of(templates, name) == user)
    own = (conversations_of(templates, user), documents_of(templates, user), *further)
    return ContentOwner(tuple(dict.fromkeys(own)), user)


def _owned_pools(home: Home, base: KnowledgeBase, user: str) -> list[str]:
    """Return the pools that a user owns; an agent that is known by that name owns its own."""
    from memctl.pools import DEFAULT_POOL

    if is_kb_name(user) and home.accounts.agent_path(user) is not None:
        return []
    pools = base.pools.acting_as(user).list(include_expired=True)
    owned = [pool.pool_id for pool in pools if pool.owner == user]
    return [pool_id for pool_id in owned if pool_id != DEFAULT_POOL]
