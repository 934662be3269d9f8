"""What of the ledger goes along with an export of everything, and comes back with it.

That is what somebody decided or said: which names mean the same, and the questions that were asked
with how good the answers were; and which facts wait to be compared, for they would wait forever
elsewhere.  Inbox files, jobs, receipts, costs, kept replies and snapshots are of this disk alone.
Each book is a member of its own, as JSON lines.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from datetime import datetime
from types import NoneType
from typing import TYPE_CHECKING, Any, get_args

from memctl.choices import QueryKind, Verdict
from memctl.errors import DamagedError
from memctl.store.books import from_text, to_text
from memctl.store.graph_book import NameDecision
from memctl.store.query_book import QueryEntry

if TYPE_CHECKING:
    from memctl.store.ledger import Ledger
    from memctl.store.transaction import Statement

BOOKS = ("names", "queries", "comparisons")
_Kinds = Mapping[str, type | tuple[type, ...]]
"""The keys of a line, and what may stand under each."""
_NUMBER = (int, float)
_NAME: _Kinds = {"one": str, "other": str, "same": bool, "at": str}
_COMPARISON: _Kinds = {"memory_id": str}
_QUERY: _Kinds = {
    "at": str, "question": str, "mode": str, "hits": int, "seconds": _NUMBER, "query_id": str,
    "kind": str, "found": bool, "mean_score": (*_NUMBER, NoneType), "filters": dict,
    "hit_ids": list, "feedback": (str, NoneType),
}  # fmt: skip


def exported_books(ledger: Ledger) -> Iterator[tuple[str, bytes]]:
    """Yield the books that go along, each by its name with its content."""
    names = ({**each._asdict(), "at": to_text(each.at)} for each in ledger.names.all())
    yield "names", _lines(names)
    queries = ledger.queries.all()
    yield "queries", _lines({**asdict(each), "at": to_text(each.at)} for each in queries)
    yield "comparisons", _lines({"memory_id": id_} for id_ in ledger.comparisons.pending())


def _lines(rows: Iterable[Mapping[str, Any]]) -> bytes:
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


def restoring(ledger: Ledger, name: str, content: bytes, now: datetime) -> Statement:
    """Return what puts a book back, after its content has been checked.

    Args:
        ledger: Where to.
        name: Which of the books.
        content: As :func:`exported_books` gives it.
        now: Since when facts wait here.

    Raises:
        DamagedError: The content is something else.
    """
    try:
        rows = [json.loads(line) for line in content.splitlines()]
        if name == "names":
            decisions = [_decision(_checked(row, _NAME)) for row in rows]
            return lambda _: ledger.names.restore(decisions)
        if name == "queries":
            entries = [_query(_checked(row, _QUERY)) for row in rows]
            return lambda _: ledger.queries.restore(entries)
        waiting = [_checked(row, _COMPARISON)["memory_id"] for row in rows]
        return lambda _: ledger.comparisons.add(waiting, now)
    except (ValueError, TypeError, RecursionError) as error:  # no JSON, no instant, other values
        raise DamagedError(
            f"ledger/{name} in the export cannot be read: {error}", "copy it again"
        ) from error


def _checked(row: Any, kinds: _Kinds) -> Mapping[str, Any]:
    if not isinstance(row, dict) or row.keys() != kinds.keys():
        raise ValueError("a line has other keys")
    wrong = [key for key, kind in kinds.items() if not isinstance(row[key], kind)]
    if wrong:
        raise ValueError(f"{', '.join(wrong)} of a line is something else")
    return row


def _decision(row: Mapping[str, Any]) -> NameDecision:
    return NameDecision(row["one"], row["other"], row["same"], from_text(row["at"]))


def _query(row: Mapping[str, Any]) -> QueryEntry:
    ids = row["hit_ids"]
    known = row["kind"] in get_args(QueryKind) and row["feedback"] in (None, *get_args(Verdict))
    if not known or not all(isinstance(id_, str) for id_ in ids):
        raise ValueError("a question is noted in another way")
    return QueryEntry(**{**row, "at": from_text(row["at"]), "hit_ids": tuple(ids)})
