"""What a job of upkeep is: a name, a schedule, a function, and what running it came to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from msgspec import Struct, field

from memctl.errors import MemctlError
from memctl.schedules import OFF, Schedule

if TYPE_CHECKING:
    from memctl.config import Config
    from memctl.home import Home
    from memctl.knowledge_base import KnowledgeBase

JobEvent = Literal["heard", "summarised", "consolidated", "promoted", "upkeep"]
AS_NEEDED = "as needed"
"""The schedule of jobs that the watcher runs whenever there is something to do."""


class UpkeepOptions(Struct, frozen=True):
    """How a job runs when it is started by hand."""

    dry_run: bool = False
    force: bool = False
    """Whether ``rot`` archives more than it does by itself."""
    merge: bool = False
    """Whether ``duplicates`` ends the older one of two."""


BY_ITSELF = UpkeepOptions()
"""How a job runs on its schedule."""


class UpkeepContext(Struct, frozen=True):
    """What a job works with."""

    base: KnowledgeBase
    home: Home
    now: datetime
    job: int | None = None
    """The number under which its changes are noted; None for a dry run, and for a job that opens
    its own entry in the ledger."""
    options: UpkeepOptions = BY_ITSELF

    @property
    def config(self) -> Config:
        """The program's settings."""
        return self.base.resources.program_config


class JobNotice(Struct, frozen=True):
    """Something that a watcher says of a run."""

    kind: JobEvent
    message: str
    detail: Mapping[str, int] = field(default_factory=dict)
    document_id: str | None = None


class Outcome(Struct, frozen=True):
    """What one run of a job came to, or would."""

    counts: Mapping[str, int] = field(default_factory=dict)
    ids: Sequence[str] = ()
    """The memories that it is about."""
    warning: str = ""
    hint: str = ""
    note: str = ""
    """What the person who started it by hand should know."""
    notices: Sequence[JobNotice] = ()
    worked: bool = False
    """Whether there may be more to do at once."""


class JobFailed(MemctlError):
    """A job failed, and the ledger is to say why.

    Args:
        message: Why; it has no words of what is remembered, which could not be forgotten there.
        hint: The next step.
        counts: What it came to.
    """

    def __init__(
        self, message: str, hint: str = "", counts: Mapping[str, int] | None = None
    ) -> None:
        super().__init__(message, hint)
        self.counts = counts or {}


class UpkeepJob(Struct, frozen=True):
    """Recurring work."""

    name: str
    about: str
    """In one line."""
    run: Callable[[UpkeepContext], Outcome]
    schedule: Schedule = OFF
    """Its default schedule."""
    is_as_needed: bool = False
    """Whether the watcher runs it whenever there is something to do, and no schedule says when."""
    keeps_own_entry: bool = False
    """Whether what it calls notes the job in the ledger."""
    kind: str = ""
    """What the ledger calls it; by default its name."""

    @property
    def entry_kind(self) -> str:
        """What the ledger calls it."""
        return self.kind or self.name
