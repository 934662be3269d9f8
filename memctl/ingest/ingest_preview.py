"""What an ingest would do: sources are judged and read as in the real thing, nothing is written."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from memctl.config import BudgetSettings, Config
from memctl.ingest.batch_preparation import JUDGED_TOGETHER, grouped
from memctl.ingest.batches import (
    DocumentSummary,
    IdentifiedSource,
    IngestCounters,
    WantedSource,
    failed_outcome,
    ingested_outcome,
)
from memctl.ingest.deduplication import Deduplicator, Deferred
from memctl.ingest.discovery.sources import SourceOrFailure
from memctl.ingest.file_units import Unpacking, kind_of
from memctl.ingest.file_versions import FileVersions
from memctl.ingest.source_reading import Unreadable, identify, read_parts
from memctl.kb_settings import KnowledgeBaseSettings
from memctl.language.sentence_splitting import spread_evenly, text_windows, window_budget
from memctl.literals import Purpose, Task
from memctl.models import ENDPOINT
from memctl.models.call_accounting import CallUsage, call_cost
from memctl.models.protocols import estimate_tokens
from memctl.models.remote_models import TEXTS_PER_CALL
from memctl.prompts import load_prompt
from memctl.readers.media.clips import MAX_SECONDS, recording_seconds
from memctl.readers.media.recording_content import KEY_FRAMES, SECONDS_A_FRAME
from memctl.readers.media.recordings import TRANSCRIPT
from memctl.records import (
    Estimate,
    FileOutcome,
    IngestReport,
    Progress,
    ProgressListener,
    SourceText,
)

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
    versions: FileVersions | None = None,
    folders: Sequence[Path] = (),
) -> IngestReport:
    """Return what would become of sources, and what models would be asked for them.

    Args:
        store: What is known already.
        sources: What would be taken in.
        estimators: Get the text of each document that would be.
        readers: What reads files.
        progress: Called with how many sources are done.
        total: How many sources there are, where that is known.
        versions: Finds what the files were before.
        folders: Where files that are gone are looked for.
    """
    counters, snapshot = IngestCounters(), store.snapshot()
    with closing(Deduplicator(store)) as known:
        for group in grouped(sources, JUDGED_TOGETHER):
            outcomes = list(_group(known, group, estimators, readers))
            counters.add(
                versions.after(snapshot, outcomes).mark_superseded(outcomes)
                if versions
                else outcomes
            )
            if progress is not None:
                progress(Progress(counters.done, total, "documents"))
    if versions is not None and folders:
        counters.add(versions.gone(snapshot, folders).gone)
    return replace(counters.report(), dry_run=True, estimates=estimators.estimates())


def _group(
    known: Deduplicator, group: Sequence[SourceOrFailure], estimators: Estimators, readers: Readers
) -> Iterator[FileOutcome]:
    items: list[IdentifiedSource] = []
    for source in group:
        if isinstance(source, FileOutcome):
            yield source
            continue
        try:
            items.append(identify(source))
        except Unreadable as error:
            yield failed_outcome(source, error.why)
    yield from _judge_all(known, items, estimators, readers)


def _judge_all(
    known: Deduplicator, items: list[IdentifiedSource], estimators: Estimators, readers: Readers
) -> Iterator[FileOutcome]:
    while items:
        later: list[IdentifiedSource] = []
        for verdict in known.judge(items):
            if isinstance(verdict, FileOutcome):
                yield verdict
            elif isinstance(verdict, Deferred):
                later.append(verdict.item)
            elif (kind := kind_of(verdict)) is not None:
                unpacking = Unpacking(verdict, kind, readers)
                yield from _preview_units(known, unpacking, estimators, readers)
            else:
                yield _read(known, verdict, estimators, readers)
        if len(later) == len(items):  # newer versions of what this very ingest brings
            item = later.pop(0)
            wanted = WantedSource(item, item.key, replaces=item.key)
            yield _read(known, wanted, estimators, readers)
        items = later


def _preview_units(
    known: Deduplicator, file: Unpacking, estimators: Estimators, readers: Readers
) -> Iterator[FileOutcome]:
    """Return what would become of a file of many units, and of each of them."""
    try:
        for items, failures in file.groups():
            yield from failures
            yield from _judge_all(known, items, estimators, readers)
    except Unreadable as error:
        yield failed_outcome(file.wanted.item.source, error.why)
        return
    if not file.count:
        yield failed_outcome(file.wanted.item.source, file.failure)
        return
    yield _read(known, file.listing([], []), estimators, readers)


def _read(
    known: Deduplicator, wanted: WantedSource, estimators: Estimators, readers: Readers
) -> FileOutcome:
    source = wanted.item.source
    title = ""
    missing: dict[str, None] = {}
    try:
        for text in read_parts(wanted.item, readers):
            estimators.add(text, source.namespace)
            title = title or text.title
            missing |= dict.fromkeys(text.missing)
    except Unreadable as error:
        return failed_outcome(source, error.why)
    known.note_begun([wanted])
    known.note_prepared([wanted])
    return ingested_outcome(wanted, DocumentSummary(0, title, "", tuple(missing)), None)


CHARACTERS_A_TOKEN = 4
"""Of what a model gets besides, in English."""
REPLY_SHARE = 0.3
"""Tokens of what is understood for each token of text, and at least ``REPLY_LEAST`` a call."""
REPLY_LEAST = 200
COMPARED_SHARE = 1.5
VERDICT_SHARE = 0.2
"""Of what is understood of a document: its facts with what they are compared with, and the reply;
nothing where a document has no facts, or nothing is known of what they are about."""
AROUND_CHARACTERS = 800
"""Of each call besides prompt and text: title, fences, what is known of the windows before."""
PICTURE_TOKENS = 1_600
PICTURE_REPLY = 250
SPOKEN_CHARACTERS_A_SECOND = 15


class ModelPlan(Struct, frozen=True):
    """Which models there are, and how much each gets besides the data."""

    models: Mapping[Purpose, str]
    prompts: Mapping[Purpose, int]
    """Length of the prompt, in characters."""
    chunk_size: int
    most_windows: int
    budget: BudgetSettings


def plan_of(config: Config, settings: KnowledgeBaseSettings, own_prompts: Path) -> ModelPlan:
    """Return what the settings say that models are asked for.

    Args:
        config: The program's settings.
        settings: Those of the knowledge base.
        own_prompts: The folder of its own prompts.
    """
    tasks: tuple[Task, ...] = ("understand", "transcribe", "image")
    models: dict[Purpose, str]
    models = {task: name for task in tasks if (name := getattr(config.models, task))}
    if "understand" in models:
        models["compare"] = models["understand"]
    if settings.embedder.startswith(ENDPOINT):
        models["embed"] = settings.embedder.removeprefix(ENDPOINT)
    prompted: tuple[Purpose, ...] = ("understand", "image", "compare")
    prompts = {
        task: len(load_prompt(task, own_prompts).text) for task in prompted if task in models
    }
    return ModelPlan(
        models, prompts, settings.chunk_size, config.models.most_windows, config.budget
    )


class _Sum(Struct):
    calls: int = 0
    input_tokens: float = 0.0
    output_tokens: float = 0.0
    audio_seconds: float = 0.0


class Estimator(Struct):
    """Adds up what documents would need."""

    plan: ModelPlan
    _sums: dict[Purpose, _Sum] = field(default_factory=dict)

    def add(self, source: SourceText) -> None:
        """Take a document, or a part of one, into account."""
        heard = self._listen(source)
        self._look(source)
        self._understand(source.text + " " * heard, source.share)
        self._embed(source.text + " " * heard)

    def estimates(self) -> tuple[Estimate, ...]:
        """Return what it comes to for each task that a model is asked for."""
        return tuple(
            Estimate(
                task=task,
                model=self.plan.models[task],
                calls=found.calls,
                input_tokens=round(found.input_tokens),
                output_tokens=round(found.output_tokens),
                cost=call_cost(task, _usage(found), self.plan.budget),
            )
            for task, found in self._sums.items()
        )

    # --- inside ---

    def _call(self, task: Purpose, tokens: float, reply: float, calls: int = 1) -> None:
        found = self._sums.setdefault(task, _Sum())
        found.calls += calls
        found.input_tokens += tokens
        found.output_tokens += reply

    def _listen(self, source: SourceText) -> int:
        """Count the transcription of a recording; return how much text it will be."""
        if "transcribe" not in self.plan.models or TRANSCRIPT not in source.missing:
            return 0
        seconds = recording_seconds(source.metadata)
        self._call("transcribe", 0, 0, max(1, math.ceil(seconds / MAX_SECONDS)))
        self._sums["transcribe"].audio_seconds += seconds
        return round(seconds * SPOKEN_CHARACTERS_A_SECOND)

    def _look(self, source: SourceText) -> None:
        kind = source.media_type.partition("/")[0]
        if "image" not in self.plan.models or kind not in ("image", "video"):
            return
        seconds = recording_seconds(source.metadata)
        frames = min(KEY_FRAMES, int(seconds / SECONDS_A_FRAME) + 1) if kind == "video" else 1
        prompt_tokens = self._prompt("image") + PICTURE_TOKENS
        self._call("image", frames * prompt_tokens, frames * PICTURE_REPLY, frames)

    def _understand(self, text: str, share: float) -> None:
        if "understand" not in self.plan.models or not text:
            return
        facts = 0.0
        spans = text_windows(text)
        for number in spread_evenly(spans, window_budget(share, self.plan.most_windows)):
            start, end = spans[number]
            tokens = estimate_tokens(text[start:end])
            prompt_tokens = self._prompt("understand") + AROUND_CHARACTERS / CHARACTERS_A_TOKEN
            reply = max(REPLY_LEAST, tokens * REPLY_SHARE)
            self._call("understand", prompt_tokens + tokens, reply)
            facts += reply
        prompt_tokens = self._prompt("compare") + facts * COMPARED_SHARE
        self._call("compare", prompt_tokens, facts * VERDICT_SHARE)

    def _embed(self, text: str) -> None:
        if "embed" not in self.plan.models or not text:
            return
        passages = -(-len(text) // self.plan.chunk_size)
        calls = -(-passages // TEXTS_PER_CALL)
        self._call("embed", estimate_tokens(text), 0, calls)

    def _prompt(self, task: Purpose) -> float:
        return self.plan.prompts[task] / CHARACTERS_A_TOKEN


class Estimators(Struct, frozen=True):
    """Adds up what documents would need, those of private namespaces by models of their own."""

    usual: Estimator
    private: Estimator
    """The same where no namespace is private."""
    namespaces: frozenset[str] = frozenset()
    """Those that are private."""

    def add(self, source: SourceText, namespace: str) -> None:
        """Take a document, or a part of one, into account."""
        (self.private if namespace in self.namespaces else self.usual).add(source)

    def estimates(self) -> tuple[Estimate, ...]:
        """Return what it comes to for each task and model."""
        found: dict[tuple[str, str], Estimate] = {}
        each = [self.usual] if self.private is self.usual else [self.usual, self.private]
        for estimate in (e for estimator in each for e in estimator.estimates()):
            key = (estimate.task, estimate.model)
            found[key] = _together(found[key], estimate) if key in found else estimate
        return tuple(found.values())


def _together(one: Estimate, other: Estimate) -> Estimate:
    return replace(
        one,
        calls=one.calls + other.calls,
        input_tokens=one.input_tokens + other.input_tokens,
        output_tokens=one.output_tokens + other.output_tokens,
        cost=one.cost + other.cost,
    )


def _usage(found: _Sum) -> CallUsage:
    return CallUsage(round(found.input_tokens), round(found.output_tokens), found.audio_seconds)
