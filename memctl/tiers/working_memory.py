"""Working memory: what an agent keeps while it works on something, for minutes.

What is over is never given, whether or not it is still on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from memctl.errors import NothingFound, UsageError
from memctl.identity import checked_name
from memctl.literals import WorkingPlace
from memctl.pools.pool_values import kind_of
from memctl.store.ledger.tier_repositories import SavedValue, SharedValue, WorkingValue
from memctl.tiers.tier_values import checked_key, checked_ttl, checked_value, end_of

if TYPE_CHECKING:
    from memctl.store.ledger.ledger import Ledger

SINGLE: Mapping[WorkingPlace, str] = {
    "task_state": "task_state",
    "conversation": "conversation",
    "scratch_pad": "scratch_pad",
}
"""The places that hold one value, each with the key that it is stored under."""


OWNED = "namespace = ? AND agent = ? AND session_id = ?"
"""The condition on the rows of an owner."""


class TierOwner(Struct, frozen=True):
    """Whose values they are: an agent's, in one session."""

    agent: str
    session: str
    namespace: str
    by_person: bool = False
    """Whether a named user writes, and no agent."""

    @property
    def key(self) -> tuple[str, str, str]:
        """The values for ``OWNED``."""
        return self.namespace, self.agent, self.session


class TierClock:
    """Gives the time, and calls a listener when it is earlier than before.

    Args:
        clock: Returns the current time.
        set_back: Called with the time at first, and whenever the clock has been set back.
    """

    def __init__(
        self, clock: Callable[[], datetime], on_clock_set_back: Callable[[datetime], None]
    ) -> None:
        self._clock = clock
        self._set_back = on_clock_set_back
        self._last: datetime | None = None

    def __call__(self) -> datetime:
        """Return the time."""
        now = self._clock()
        if self._last is None or now < self._last:
            self._set_back(now)
        self._last = now
        return now


class WorkingMemory:
    """The working memory of one agent in one session.

    Args:
        ledger: Where it is kept.
        clock: Returns the current time.
        owner: Whose it is.
        ttl: Seconds that values last by default; 0 for as long as the session.
        redacts: Whether keys and passwords are taken out of values.
        require_writable: Raises where nothing may be changed.
    """

    def __init__(
        self,
        ledger: Ledger,
        clock: Callable[[], datetime],
        owner: TierOwner,
        *,
        ttl: float,
        redacts: bool,
        require_writable: Callable[[], None],
    ) -> None:
        self._ledger = ledger
        self._rows = ledger.working
        self.owner = owner
        self._ttl = ttl
        self._redacts = redacts
        self._require_writable = require_writable
        self._now = TierClock(clock, self._tidy)

    def _tidy(self, now: datetime) -> None:
        if self._ledger.is_writable:
            for rows in (self._rows, self._ledger.shared_values):
                rows.clamp(now)
                rows.remove_expired(now)

    # --- values ----------------------------------------------------------------------------------

    def store(self, key: str, value: object, ttl: float | None = None) -> WorkingValue:
        """Keep a value under a key, in place of the former one.

        Args:
            key: Its name.
            value: Anything that JSON has, up to 1 MB.
            ttl: Seconds that it lasts; 0 for as long as the session, None as the settings say.

        Raises:
            UsageError: The key, the value or the time cannot be used.
        """
        return self.put("value", key, value, ttl)

    def retrieve(self, key: str, default: Any = None) -> Any:
        """Return the value of a key, or the default."""
        return self.get("value", key, default)

    def exists(self, key: str) -> bool:
        """Return whether there is a value of a key."""
        return self.find("value", key) is not None

    def remove(self, key: str, place: WorkingPlace = "value") -> bool:
        """Remove the value of a key; return whether there was one."""
        self._require_writable()
        with self._ledger.transaction(durable=False):
            found = self.find(place, key)
            self._rows.remove(*self._key(place, key))
        return found is not None

    def keys(self) -> Sequence[str]:
        """Return the keys that have a value, sorted."""
        return [each.key for each in self.list() if each.place == "value"]

    def list(self) -> Sequence[WorkingValue]:
        """Return all that is there, of every place."""
        return self._rows.current(OWNED, *self.owner.key, now=self._now())

    def clear(self) -> int:
        """Remove all that is there; return how much that was."""
        self._require_writable()
        with self._ledger.transaction(durable=False):
            count = len(self.list())
            self._rows.delete(OWNED, *self.owner.key)
        return count

    # --- places ----------------------------------------------------------------------------------

    def put(
        self, place: WorkingPlace, key: str, value: object, ttl: float | None = None
    ) -> WorkingValue:
        """Keep a value in a place; see ``store``."""
        self._require_writable()
        _check_shape(place, value)
        plain, size = checked_value(value, redacts=self._redacts)
        seconds = checked_ttl(ttl, self._ttl, minimum=0) or None
        now = self._now()
        made = WorkingValue(*self._key(place, key), plain, size, now, seconds, end_of(now, seconds))
        self._rows.write([made], durable=False)
        return made

    def find(self, place: WorkingPlace, key: str) -> WorkingValue | None:
        """Return the value in a place with all that is known of it; None where there is none."""
        found = self._rows.current(
            f"{OWNED} AND place = ? AND key = ?", *self._key(place, key), now=self._now()
        )
        return found[0] if found else None

    def get(self, place: WorkingPlace, key: str, default: Any = None) -> Any:
        """Return the value in a place."""
        found = self.find(place, key)
        return default if found is None else found.value

    def set_task_state(self, state: Mapping[str, Any], ttl: float | None = None) -> None:
        """Keep the state of the task, an object."""
        self.put("task_state", SINGLE["task_state"], state, ttl)

    def task_state(self) -> Mapping[str, Any] | None:
        """Return the state of the task."""
        found: Mapping[str, Any] | None = self.get("task_state", SINGLE["task_state"])
        return found

    def set_step_result(self, step: str, result: object, ttl: float | None = None) -> None:
        """Keep what a step came to."""
        self.put("step_result", step, result, ttl)

    def step_result(self, step: str) -> Any:
        """Return what a step came to."""
        return self.get("step_result", step)

    def step_results(self) -> Mapping[str, Any]:
        """Return what every step came to, by its name."""
        return {each.key: each.value for each in self.list() if each.place == "step_result"}

    def set_conversation(self, messages: Iterable[Any], ttl: float | None = None) -> None:
        """Keep the messages of the conversation, in place of the former ones."""
        self.put("conversation", SINGLE["conversation"], [*messages], ttl)

    def add_message(self, message: object, ttl: float | None = None) -> None:
        """Append a message to the conversation."""
        self.append("conversation", message, ttl)

    def conversation(self) -> Sequence[Any]:
        """Return the messages of the conversation."""
        found: Sequence[Any] = self.get("conversation", SINGLE["conversation"], [])
        return found

    def set_tool_state(self, tool: str, state: object, ttl: float | None = None) -> None:
        """Keep the state of a tool."""
        self.put("tool_state", tool, state, ttl)

    def tool_state(self, tool: str) -> Any:
        """Return the state of a tool."""
        return self.get("tool_state", tool)

    def set_scratch_pad(self, text: str, ttl: float | None = None) -> None:
        """Write the scratch pad anew."""
        self.put("scratch_pad", SINGLE["scratch_pad"], text, ttl)

    def add_to_scratch_pad(self, text: str, ttl: float | None = None) -> None:
        """Append a text to the scratch pad."""
        self.append("scratch_pad", text, ttl)

    def scratch_pad(self) -> str:
        """Return the scratch pad."""
        found: str = self.get("scratch_pad", SINGLE["scratch_pad"], "")
        return found

    def append(self, place: WorkingPlace, value: object, ttl: float | None = None) -> WorkingValue:
        """Append a message to the conversation, or a line to the scratch pad.

        Raises:
            UsageError: Nothing can be appended to such a place.
        """
        self._require_writable()
        with self._ledger.transaction(durable=False):  # so that nothing of another writer is lost
            if place == "conversation":
                return self.put(place, SINGLE[place], [*self.conversation(), value], ttl)
            if place == "scratch_pad":
                _check_shape(place, value)
                text = self.scratch_pad()
                return self.put(place, SINGLE[place], f"{text}\n{value}" if text else value, ttl)
        raise UsageError(
            f"nothing can be appended to {place}", "append to conversation or scratch_pad"
        )

    # --- sharing ---------------------------------------------------------------------------------

    def share_with_agent(
        self, target: str, key: str, value: object, ttl: float | None = None
    ) -> SharedValue:
        """Let one agent, and no other, read a value.

        Args:
            target: The name of that agent.
            key: What it is read by, with this agent's name.
            value: Anything that JSON has, up to 1 MB.
            ttl: As for ``store``.
        """
        self._require_writable()
        name = checked_name(target, "an agent") or ""
        plain, size = checked_value(value, redacts=self._redacts)
        seconds = checked_ttl(ttl, self._ttl, minimum=0) or None
        now, owner = self._now(), self.owner
        made = SharedValue(
            *(owner.namespace, owner.agent, name, checked_key(key), owner.session),
            *(plain, size, now, seconds, end_of(now, seconds)),
        )
        self._ledger.shared_values.write([made], durable=False)
        return made

    def retrieve_shared(self, source: str, key: str) -> Any:
        """Return a value that another agent has shared with this one.

        Raises:
            NothingFound: There is none for this agent, whatever others may read.
        """
        found = self._ledger.shared_values.current(
            "namespace = ? AND agent = ? AND target = ? AND key = ?",
            *(self.owner.namespace, source.strip(), self.owner.agent, key),
            now=self._now(),
        )
        if not found:
            raise NothingFound(
                f"{source!r} shares no {key!r} with {self.owner.agent!r}",
                f"have it shared: memctl tier share KEY --agent {source} --to {self.owner.agent}",
            )
        return found[0].value

    def shared_with_me(self) -> Sequence[SharedValue]:
        """Return what other agents share with this one."""
        return self._ledger.shared_values.current(
            "namespace = ? AND target = ?",
            *(self.owner.namespace, self.owner.agent),
            now=self._now(),
        )

    # --- named copies ----------------------------------------------------------------------------

    def save(self, name: str) -> int:
        """Keep a copy of all that is there under a name, durably; return how many values that are.

        Raises:
            UsageError: There is nothing to keep, or the name cannot be one.
        """
        self._require_writable()
        name = checked_name(name, "a copy") or ""
        with self._ledger.transaction():
            now = self._now()
            values = self.list()
            if not values:
                raise UsageError(
                    f"session {self.owner.session!r} has no working memory to save",
                    "memctl tier list shows what there is",
                )
            self._ledger.saved_values.delete(
                "namespace = ? AND agent = ? AND name = ?",
                *(self.owner.namespace, self.owner.agent, name),
            )
            self._ledger.saved_values.save(
                *(
                    SavedValue(
                        *(each.namespace, each.agent, name, each.place, each.key),
                        *(each.session_id, each.value, each.bytes, each.ttl_seconds, now),
                    )
                    for each in values
                )
            )
        return len(values)

    def load(self, name: str) -> int:
        """Put a named copy in place of all that is there; times to live start anew.

        Returns:
            How many values that are.

        Raises:
            NothingFound: This agent has no copy of that name.
            UsageError: The name cannot be one.
        """
        self._require_writable()
        name = checked_name(name, "a copy") or ""
        with self._ledger.transaction(durable=False):
            copies = self._ledger.saved_values.select(
                "namespace = ? AND agent = ? AND name = ?",
                *(self.owner.namespace, self.owner.agent, name),
            )
            if not copies:
                known = ", ".join(self.saved()[:8])
                hint = f"there are {known}" if known else "memctl tier save NAME makes one"
                raise NothingFound(f"{self.owner.agent!r} has no copy {name!r}", hint)
            self.clear()
            now = self._now()
            self._rows.write(
                (
                    WorkingValue(
                        *(*self.owner.key, each.place, each.key),
                        *(each.value, each.bytes, now, each.ttl_seconds),
                        end_of(now, each.ttl_seconds),
                    )
                    for each in copies
                ),
                durable=False,
            )
        return len(copies)

    def saved(self) -> Sequence[str]:
        """Return the names of this agent's copies."""
        rows = self._ledger.saved_values.select(
            "namespace = ? AND agent = ?", self.owner.namespace, self.owner.agent
        )
        return list(dict.fromkeys(each.name for each in rows))

    # --- inside ----------------------------------------------------------------------------------

    def _key(self, place: WorkingPlace, key: str) -> tuple[str, str, str, str, str]:
        return *self.owner.key, place, checked_key(key)


def _check_shape(place: WorkingPlace, value: object) -> None:
    wanted = {"task_state": (Mapping, "an object"), "conversation": (list, "a list of messages"),
              "scratch_pad": (str, "a text")}.get(place)  # fmt: skip
    if wanted and not isinstance(value, wanted[0]):
        raise UsageError(f"{place} holds {wanted[1]}, not {kind_of(value)}")
