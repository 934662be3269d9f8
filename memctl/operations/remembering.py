"""Operations that change memory: store, update and forget; each can be tried without writing.

Each does as ``memctl memory add``, ``memory edit`` and ``forget --memory`` do, in the namespace of
its caller.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from msgspec import Struct

from memctl.errors import UsageError
from memctl.operations.operation_context import OperationContext
from memctl.records import record_like
from memctl.validation import Rule

if TYPE_CHECKING:
    from memctl.forget.leftovers import RemainingPlace
    from memctl.knowledge_base import KnowledgeBase
    from memctl.records import Memory

StoredType = Literal["important_fact", "memories", "important_information", "summary"]
_FACT: Final = "important_fact"
_TAGS = "Words to file it under."
_IMPORTANCE = "From 0 to 1."
_PRIVATE = "Whether you keep it to yourself: no other agent sees it."
_DRY_RUN = "Write nothing; only say what would be done."
_DEFAULT_IMPORTANCE = 0.7


class StoreParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``store_important_information``."""

    information: Annotated[str, Rule("What to store, as a sentence that stands alone.")]
    memory_type: Annotated[StoredType, Rule("What it is.")] = _FACT
    metadata: Annotated[Mapping[str, Any] | None, Rule("Anything else to keep with it.")] = None
    tags: Annotated[tuple[str, ...], Rule(_TAGS)] = ()
    importance: Annotated[float, Rule(_IMPORTANCE, low=0, high=1)] = _DEFAULT_IMPORTANCE
    private: Annotated[bool, Rule(_PRIVATE)] = False
    dry_run: Annotated[bool, Rule(_DRY_RUN)] = False


class StoreReply(Struct, frozen=True):
    """What was stored."""

    success: bool
    message: str
    stored_text: str
    id: str
    memory_type: str
    dry_run: bool


def store_important_information(
    context: OperationContext, parameters: StoreParameters
) -> StoreReply:
    """Store a statement for the user; the same one twice is stored once."""
    is_fact = parameters.memory_type in (_FACT, "important_information")
    type_ = _FACT if is_fact else parameters.memory_type
    with context.for_user() as limited:
        memory = _add(
            limited,
            parameters.information,
            type_=type_,
            tags=parameters.tags,
            importance=parameters.importance,
            metadata=parameters.metadata,
            private=parameters.private,
            dry_run=parameters.dry_run,
        )
    done = "Would be stored" if parameters.dry_run else "Stored"
    message = f"{done} as {memory.type}."
    return StoreReply(True, message, memory.text, memory.id, memory.type, parameters.dry_run)


class RememberParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``remember``."""

    text: Annotated[str, Rule("What to remember, as a sentence that stands alone.")]
    type: Annotated[
        str | None, Rule("fact, decision, preference, plan, ...; by default as the text says.")
    ] = None
    tags: Annotated[tuple[str, ...], Rule(_TAGS)] = ()
    importance: Annotated[float, Rule(_IMPORTANCE, low=0, high=1)] = _DEFAULT_IMPORTANCE
    session_id: Annotated[str | None, Rule("The conversation it belongs to.")] = None
    private: Annotated[bool, Rule(_PRIVATE)] = False
    dry_run: Annotated[bool, Rule(_DRY_RUN)] = False


class MemoryReply(Struct, frozen=True):
    """A memory as it is stored, or would be."""

    id: str
    text: str
    type: str
    tags: tuple[str, ...]
    importance: float
    namespace: str
    kb: str
    version: int
    dry_run: bool


def remember(context: OperationContext, parameters: RememberParameters) -> MemoryReply:
    """Remember a statement; its names, #tags and type are read from its text.

    What a user says with a trigger, such as ``important: ...``, is kept as in a conversation:
    without the trigger and the tags.
    """
    memory = _add(
        context,
        parameters.text,
        type_=parameters.type,
        tags=parameters.tags,
        importance=parameters.importance,
        session=parameters.session_id,
        private=parameters.private,
        dry_run=parameters.dry_run,
    )
    return record_like(MemoryReply, memory, kb=context.kb_to_write, dry_run=parameters.dry_run)


def _add(
    context: OperationContext,
    text: str,
    *,
    type_: str | None,
    tags: tuple[str, ...],
    importance: float,
    session: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    private: bool,
    dry_run: bool,
) -> Memory:
    with context.open_for_adding(dry_run=dry_run) as base:
        return base.memories.add(
            text.strip(),
            type_=type_,
            namespace=None if private else context.own_namespace(),
            tags=[tag.removeprefix("#") for tag in tags],
            importance=importance,
            session=session or context.identity.session,
            metadata=metadata,
            dry_run=dry_run,
            private=private,
        )


# --- changing what is there -----------------------------------------------------------------------


class UpdateParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``update_memory``."""

    id: Annotated[str, Rule("The id of the memory, or enough of its beginning.")]
    text: Annotated[str | None, Rule("What it says now.")] = None
    type: Annotated[str | None, Rule("What it is now.")] = None
    tags: Annotated[tuple[str, ...] | None, Rule("Its tags, instead of those it has.")] = None
    importance: Annotated[float | None, Rule(_IMPORTANCE, low=0, high=1)] = None
    dry_run: Annotated[bool, Rule(_DRY_RUN)] = False


def update_memory(context: OperationContext, parameters: UpdateParameters) -> MemoryReply:
    """Write a new version of a memory; the old one stays in its history."""
    if all(
        each is None
        for each in (parameters.text, parameters.type, parameters.tags, parameters.importance)
    ):
        raise UsageError("nothing to change", "give text, type, tags or importance")
    base, memory = _changeable(context, parameters.id)
    changed = base.memories.edit(
        memory.id,
        None if parameters.text is None else parameters.text.strip(),
        type_=parameters.type,
        tags=parameters.tags,
        importance=parameters.importance,
        dry_run=parameters.dry_run,
    )
    return record_like(MemoryReply, changed, kb=base.name, dry_run=parameters.dry_run)


class ForgetParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``forget_memory``."""

    id: Annotated[str, Rule("The id of the memory, or enough of its beginning.")]
    confirm: Annotated[bool, Rule("Forget it for good; otherwise say what would go.")] = False
    dry_run: Annotated[bool, Rule("Only say what would go, even with confirm.")] = False


class ForgetReply(Struct, frozen=True):
    """What went, or would."""

    id: str
    text: str
    forgotten: bool
    memories: int
    insights: int
    left: tuple[str, ...]
    """Where some of it still stands, such as in a snapshot."""
    message: str


def forget_memory(context: OperationContext, parameters: ForgetParameters) -> ForgetReply:
    """Forget a memory for good, with its versions and the insights that rest on it."""
    from memctl.forget import Selection

    base, memory = _changeable(context, parameters.id)
    is_preview = parameters.dry_run or not parameters.confirm
    report = base.forget(Selection(memories=(memory.id,)), dry_run=is_preview)
    if is_preview:
        message = f"{memory.id} would go; with confirm set to true it is forgotten for good."
    elif report.left:
        message = (
            f"{memory.id} is gone, but some of it is left: {_describe_remaining(report.left)}."
        )
    else:
        message = f"{memory.id} is gone for good."
    return ForgetReply(
        id=memory.id,
        text=memory.text if is_preview else "",
        forgotten=not is_preview,
        memories=report.memories,
        insights=report.insights,
        left=tuple(left.place for left in report.left),
        message=message,
    )


def _describe_remaining(places: Sequence[RemainingPlace]) -> str:
    return "; ".join(dict.fromkeys(f"in {each.place}: {each.why} ({each.hint})" for each in places))


def _changeable(context: OperationContext, id_: str) -> tuple[KnowledgeBase, Memory]:
    """Return a memory that this caller may change, and its knowledge base.

    Raises:
        NotFoundError: There is none, or it is another user's.
    """
    base = context.owner("memories", id_)
    memory = base.memories.get(id_).memory
    context.check_changeable(base, memory.namespace, f"memory {id_!r}")
    return base, memory
