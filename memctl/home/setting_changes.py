"""Changing the settings of a knowledge base: checked, written, noted in the audit trail."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from memctl.config import Config, with_own_settings
from memctl.errors import (
    DamagedError,
    KnowledgeBaseUnavailable,
    LockedError,
)
from memctl.home.kb_folders import Clock, open_ledger, writing_to
from memctl.identity import require_seen
from memctl.kb_settings import (
    Inbox,
    KnowledgeBaseSettings,
    Layout,
    load_settings,
    save_settings,
    settings_lock,
)
from memctl.knowledge_base.resources import refuse_distant
from memctl.validation import allowed_values

if TYPE_CHECKING:
    from memctl.store.ledger.audit_repositories import Noted


def change_settings(
    config: Config,
    layout: Layout,
    changes: Mapping[str, Any],
    clock: Clock,
    forget_questions: Callable[[], None],
) -> KnowledgeBaseSettings:
    """Change settings of a knowledge base and return all of them.

    Args:
        config: The settings of the program.
        layout: Where the knowledge base stands.
        changes: New values, or what makes them from the settings as they are by then.
        clock: Returns the current time.
        forget_questions: Called where more of it becomes private.

    Raises:
        UsageError: A setting cannot have that value; nothing is changed then.
        AccessRefused: A namespace of another user or agent would be private no more.
        LockedError: Another process keeps changing them.
    """
    before = load_settings(layout.settings)
    # First: killed after it is private, nothing would forget it any more.
    if _hides_more(before, _with_changes(config, layout, before, changes)):
        forget_questions()
    with writing_to(layout.folder), settings_lock(layout.settings):
        before = load_settings(layout.settings)
        after = _with_changes(config, layout, before, changes)
        save_settings(layout.settings, after)
    if _hides_more(before, after):  # what was asked meanwhile
        forget_questions()
    _audit(config, layout, clock(), list(changes), before, after)
    return after


def _with_changes(
    config: Config, layout: Layout, settings: KnowledgeBaseSettings, changes: Mapping[str, Any]
) -> KnowledgeBaseSettings:
    """Return settings as changes make them.

    Raises:
        UsageError: They cannot be like that.
        AccessRefused: A namespace would be private no more that is another user's or agent's.
    """
    made = {key: value(settings) if callable(value) else value for key, value in changes.items()}
    if after := made.pop("after", None):
        made["inboxes"] = tuple(
            replace(inbox, after=after) if inbox.path == layout.inbox else inbox
            for inbox in made.get("inboxes", settings.inboxes)
        )
    changed = replace(settings, **made)
    for opened in {*settings.private_namespaces}.difference(changed.private_namespaces):
        require_seen(config, opened)
    refuse_distant(config, changed)
    with_own_settings(config, changed, changed.name)
    return changed


def _hides_more(before: KnowledgeBaseSettings, after: KnowledgeBaseSettings) -> bool:
    """Return whether a change makes something private that was not."""
    new_namespaces = {*after.private_namespaces}.difference(before.private_namespaces)
    return bool(new_namespaces) or (after.private and not before.private)


def _noted_values(settings: KnowledgeBaseSettings, names: Sequence[str]) -> dict[str, Noted]:
    """Return the settings that the audit trail has with their value: numbers, and fixed words."""
    known = {name: getattr(settings, name) for name in names if hasattr(settings, name)}
    return {
        name: value
        for name, value in known.items()
        if isinstance(value, (int, float))
        or (isinstance(value, str) and allowed_values(KnowledgeBaseSettings, name))
    }


def _changed_grants(
    before: KnowledgeBaseSettings, after: KnowledgeBaseSettings
) -> Iterator[tuple[list[str], dict[str, Noted], dict[str, Noted]]]:
    """Yield whom each changed grant is for, with its level before and after; none if none is."""
    was, now = (
        {f"{'team' if grant.is_team else 'agent'} {grant.to}": grant.level for grant in each.grants}
        for each in (before, after)
    )
    changed = [who for who in was | now if was.get(who) != now.get(who)]
    for who in changed:
        levels = [{"level": each[who]} if who in each else {} for each in (was, now)]
        yield [who], {**levels[0]}, {**levels[1]}
    if not changed:
        yield [], {}, {}


def _audit(
    config: Config,
    layout: Layout,
    now: datetime,
    names: Sequence[str],
    before: KnowledgeBaseSettings,
    after: KnowledgeBaseSettings,
) -> None:
    """Record in the audit trail which settings were changed.

    They can be changed where the ledger is damaged or may only be read, which has no trail.
    """
    from memctl.store.ledger.audit_repositories import actor_of

    with (
        suppress(DamagedError, KnowledgeBaseUnavailable, LockedError),
        open_ledger(layout) as ledger,
    ):
        ledger.audit.actor = actor_of(config.user, config.agent)
        named = [name for name in names if name != "grants"]
        if named:
            values = [_noted_values(each, named) for each in (before, after)]
            ledger.audit.add(now, "settings", named, None, *values)
        if "grants" in names:
            for grantees, *levels in _changed_grants(before, after):
                ledger.audit.add(now, "grants", ["grants", *grantees], None, *levels)


def with_inboxes(settings: KnowledgeBaseSettings, added: Sequence[Inbox]) -> tuple[Inbox, ...]:
    """Return the inboxes of a knowledge base with some more; one of the same path is replaced."""
    inboxes = {inbox.path: inbox for inbox in (*settings.inboxes, *added)}
    return tuple(inboxes.values())
