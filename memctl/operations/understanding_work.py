"""Operations by which a caller does what a configured model would: get work, and give replies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Struct

from memctl.errors import NotFoundError, UsageError
from memctl.literals import WorkKind
from memctl.operations.finding import opened
from memctl.operations.operation_context import OperationContext
from memctl.records import record_like
from memctl.validation import Rule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memctl.knowledge_base import KnowledgeBase

_KIND = "Only of this kind."
_OF_ALL = frozenset(("comparison", "insight", "answer"))
"""Kinds that may concern several users, and are not handed out to one of them."""


class ListWorkParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``list_work``."""

    kind: Annotated[WorkKind | None, Rule(_KIND)] = None
    limit: Annotated[int, Rule("At most this many.", low=1, high=200)] = 20


class ListedWork(Struct, frozen=True):
    """Something that waits for understanding."""

    kb: str
    kind: str
    about: str
    title: str
    statements: int


class WorkList(Struct, frozen=True):
    """What waits."""

    work: tuple[ListedWork, ...]
    total: int


def list_work(context: OperationContext, parameters: ListWorkParameters) -> WorkList:
    """List what waits for understanding, in every knowledge base that is read."""
    found = [
        record_like(ListedWork, each, kb=base.name)
        for base in opened(context)
        for each in base.work.list(context.filters(), kinds=_kinds(context, parameters.kind))
    ]
    return WorkList(tuple(found[: parameters.limit]), len(found))


class NextWorkParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``next_work``."""

    kind: Annotated[WorkKind | None, Rule(_KIND)] = None


class NextWork(Struct, frozen=True):
    """What is to be done next, with all that is needed for it."""

    waits: bool
    id: str
    kb: str
    kind: str
    about: str
    instructions: str
    data: str
    reply_schema: Mapping[str, Any]


def next_work(context: OperationContext, parameters: NextWorkParameters) -> NextWork:
    """Hand out what waits longest of what is least understood; the same until it is replied to."""
    kinds = _kinds(context, parameters.kind)
    for base in opened(context):
        item = base.work.next(context.filters(), kinds=kinds)
        if item is not None:
            id_ = f"{base.name}:{item.id}"
            return record_like(
                NextWork, item, waits=True, id=id_, kb=base.name, reply_schema=item.schema
            )
    return NextWork(False, "", "", "", "", "", "", {})


def work_text(item: NextWork) -> str:
    """Return an item as a model reads it."""
    if not item.waits:
        return "Nothing waits."
    return (
        f"{item.instructions}\n\n{item.data}\n\n"
        f'Call submit_work with the id "{item.id}" and a reply of the shape in reply_schema.'
    )


class SubmitWorkParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``submit_work``."""

    id: Annotated[str, Rule("The id that next_work gave.")]
    reply: Annotated[Mapping[str, Any], Rule("The reply, of the shape that was asked for.")]
    dry_run: Annotated[bool, Rule("Write nothing; only check the shape.")] = False


class SubmittedWork(Struct, frozen=True):
    """What came of a reply."""

    id: str
    is_done: bool
    accepted: int
    """Facts, verdicts, insights or quotes that were taken."""
    dropped: int
    """Those that were rejected, since what they quote or cite is not in the data."""
    message: str
    dry_run: bool


def submit_work(context: OperationContext, parameters: SubmitWorkParameters) -> SubmittedWork:
    """Take in a reply, checked against the text as a model's is.

    Raises:
        NotFoundError: It does not wait, or not for this caller.
        UsageError: The reply has another shape.
    """
    kb, _, id_ = parameters.id.partition(":")
    base = _base(context, kb, parameters.id)
    kind, _, rest = id_.partition(":")
    if kind in _OF_ALL and context.identity.user is not None:
        raise NotFoundError(f"nothing waits as {parameters.id!r}")
    if kind == "document":
        about = rest.rpartition(":")[0]
        document = base.documents.get(about).document
        context.check_changeable(base, document.namespace, f"document {about!r}")
    done = base.work.submit(id_, parameters.reply, dry_run=parameters.dry_run)
    return record_like(SubmittedWork, done, id=parameters.id, dry_run=parameters.dry_run)


def _base(context: OperationContext, name: str, id_: str) -> KnowledgeBase:
    for base in opened(context):
        if base.name == name:
            return base
    raise NotFoundError(f"nothing waits as {id_[:80]!r}", "next_work hands out what waits")


def _kinds(context: OperationContext, kind: WorkKind | None) -> Sequence[WorkKind]:
    """Return the kinds that a caller is handed.

    Raises:
        UsageError: It asks for one that concerns others, too.
    """
    from memctl.knowledge_base.caller_work import KINDS

    is_own = context.identity.user is not None
    if kind is not None and is_own and kind in _OF_ALL:
        raise UsageError(f"{kind} may concern several users", "leave out the user")
    if kind is not None:
        return (kind,)
    return tuple(each for each in KINDS if not (is_own and each in _OF_ALL))
