"""What an ingest would do: sources are judged and read as in the real thing, nothing is written."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from memctl.ingest.batch import Identified, NotRead, Wanted, failed_outcome
from memctl.ingest.estimate import Estimators
from memctl.ingest.known import Known, Later
from memctl.ingest.prepare import JUDGED_TOGETHER
from memctl.ingest.reading import Unreadable, identify, parts
from memctl.ingest.sources import SourceOrFailure
from memctl.ingest.tally import Tally
from memctl.records import FileOutcome, IngestReport, Progress, ProgressListener

if TYPE_CHECKING:
    from memctl.readers import Readers
    from memctl.store.store import Store


def preview(
    store: Store,
    sources: Iterable[SourceOrFailure],
    estimators: Estimators,
    readers: Readers,
    progress: ProgressListener | None = None,
    *,
    total: int | None = None,
) -> IngestReport:
    """Say what would become of sources, and what models would be asked for them.

    Args:
        store: What is known already.
        sources: What would be taken in.
        estimators: Get the text of each document that would be.
        readers: What reads files.
        progress: Told how many sources are dealt with.
        total: How many sources there are, where that is known.
    """
    tally = Tally()
    with closing(Known(store)) as known:
        stream = iter(sources)
        while group := list(itertools.islice(stream, JUDGED_TOGETHER)):
            tally.add(_group(known, group, estimators, readers))
            if progress is not None:
                progress(Progress(tally.done, total, "documents"))
    return replace(tally.report(), dry_run=True, estimates=estimators.estimates())


def _group(
    known: Known, group: Sequence[SourceOrFailure], estimators: Estimators, readers: Readers
) -> Iterator[FileOutcome]:
    items: list[Identified] = []
    for source in group:
        if isinstance(source, FileOutcome):
            yield source
            continue
        try:
            items.append(identify(source))
        except Unreadable as error:
            yield failed_outcome(source, NotRead(error.reason, error.hint, error.error))
    while items:
        later: list[Identified] = []
        for verdict in known.judge(items):
            if isinstance(verdict, FileOutcome):
                yield verdict
            elif isinstance(verdict, Later):
                later.append(verdict.item)
            else:
                yield _read(known, verdict, estimators, readers)
        if len(later) == len(items):  # newer versions of what this very ingest brings
            item = later.pop(0)
            wanted = Wanted(item, item.key, replaces=item.key)
            yield _read(known, wanted, estimators, readers)
        items = later


def _read(known: Known, wanted: Wanted, estimators: Estimators, readers: Readers) -> FileOutcome:
    source = wanted.item.source
    title = ""
    missing: dict[str, None] = {}
    try:
        for text in parts(wanted.item, readers):
            estimators.add(text, source.namespace)
            title = title or text.title
            missing |= dict.fromkeys(text.missing)
    except Unreadable as error:
        return failed_outcome(source, NotRead(error.reason, error.hint, error.error))
    known.begun([wanted])
    known.prepared([wanted])
    return FileOutcome(
        source.source,
        "superseded" if wanted.replaces else "ingested",
        document_id=wanted.document_id,
        title=title,
        missing=tuple(missing),
        line=source.line,
    )
