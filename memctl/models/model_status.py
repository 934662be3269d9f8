"""Which model does which task, and whether it does: one round trip each."""

from __future__ import annotations

import io
import time
import wave
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from memctl.config import BudgetSettings, Config, endpoint_key
from memctl.errors import BadReply, MemctlError
from memctl.instants import utc_now
from memctl.literals import Task
from memctl.models.call_accounting import CallUsage, ModelAccount
from memctl.models.providers import TASKS, Providers
from memctl.records import Usage

if TYPE_CHECKING:
    from memctl.models.onnx_models import CrossEncoder

BUILT_IN: Mapping[Task, str] = {
    "understand": "rules and statistics",
    "consolidate": "rules and statistics",
    "answer": "quotes from what was found",
    "embed": "word vectors, on this machine",
    "rerank": "the scores of the search",
    "transcribe": "subtitles beside or inside",
    "image": "tesseract or the ocr extra",
}
"""How each task is done where no model is configured for it."""

_RATE = 16_000
_SECONDS = 1
_SIDE = 64
_CHAT: tuple[Task, ...] = ("understand", "consolidate", "answer")


class TaskModel(Struct, frozen=True):
    """Who does a task."""

    task: Task
    model: str
    """The model's name; "" for the built-in way."""
    builtin: bool
    url: str
    """Where the model is; "" for one in a folder."""
    has_key: bool
    """Whether a key would be sent; the key itself is never shown."""
    without: str
    """How the task is done where there is no model."""
    problem: str = ""
    """Why the model cannot be asked as it is configured."""
    hint: str = ""
    folder: str = ""
    """Of a model on this machine: where its files are."""


class ProbeResult(Struct, frozen=True):
    """What came of asking a model for something small."""

    task: Task
    model: str
    url: str
    ok: bool
    seconds: float
    input_tokens: int
    output_tokens: int
    error: str = ""
    hint: str = ""


def task_models(config: Config) -> list[TaskModel]:
    """Return who does each task by the settings."""
    return [_task_model(config, task) for task in TASKS]


def _task_model(config: Config, task: Task) -> TaskModel:
    providers = Providers(config, _account(_UsageCounter()))
    name = providers.model_name(task)
    task_model = TaskModel(task, name, not name, "", False, BUILT_IN[task])
    if not name:
        return task_model
    local = _local(providers, task)
    try:
        if local is not None:
            task_model = replace(task_model, folder=str(local.folder))
            local.check()
            return task_model
        url = providers.endpoint(task).base_url
        return replace(task_model, url=url, has_key=bool(endpoint_key(config, task, url)))
    except MemctlError as error:
        return replace(task_model, problem=error.message, hint=error.hint)


def _local(providers: Providers, task: Task) -> CrossEncoder | None:
    """The model for a task where that is in a folder."""
    return providers.cross_encoder() if task == "rerank" else None


def probe_models(config: Config, tasks: Sequence[Task] = ()) -> Iterator[ProbeResult]:
    """Ask each model that is configured, one after the other and once; nothing is kept.

    Args:
        config: The settings.
        tasks: Only for these.
    """
    once = replace(config, endpoint=replace(config.endpoint, retries=0))
    for task_model in task_models(config):
        if task_model.model and (not tasks or task_model.task in tasks):
            yield _probe(once, task_model)


def _probe(config: Config, task_model: TaskModel) -> ProbeResult:
    counter = _UsageCounter()
    began = time.monotonic()
    error = hint = ""
    try:
        providers = Providers(config, _account(counter))
        (_local(providers, task_model.task) or providers.endpoint(task_model.task)).prepare()
        began = time.monotonic()
        _TESTS[task_model.task](providers, task_model.task)
    except MemctlError as failure:
        error, hint = failure.message, failure.hint
    return ProbeResult(
        task=task_model.task,
        model=task_model.model,
        url=task_model.url,
        ok=not error,
        seconds=time.monotonic() - began,
        input_tokens=sum(usage.input_tokens for usage in counter.noted),
        output_tokens=sum(usage.output_tokens for usage in counter.noted),
        error=error,
        hint=hint,
    )


# --- what each is asked --------------------------------------------------------------------------


def _try_chat(providers: Providers, task: Task) -> None:
    from pydantic import BaseModel, ConfigDict

    class Ready(BaseModel):
        """What a model is asked for to see whether it can keep to a shape."""

        model_config = ConfigDict(extra="forbid")

        ready: bool

    model = providers.chat(task)
    if model is not None:
        model.ask(
            "Reply with JSON that says that you are ready.", "Ready?", Ready, version="test/1"
        )


def _try_embed(providers: Providers, task: Task) -> None:
    name = providers.model_name(task)
    with providers.account.calling(task, name) as call:
        reply = providers.endpoint(task).call(
            lambda client: client.embeddings.create(
                model=name, input=["ready"], encoding_format="float"
            )
        )
        call.spent = CallUsage(reply.usage.prompt_tokens if reply.usage else 0)
    if not reply.data or not reply.data[0].embedding:
        raise BadReply(f"{name} gave no vector")


def _try_rerank(providers: Providers, _: Task) -> None:
    reranker = providers.reranker()
    if reranker is not None:
        reranker.score("Which is a fruit?", ["an apple", "a hammer"])


def _try_transcribe(providers: Providers, _: Task) -> None:
    sound = io.BytesIO()
    with wave.open(sound, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(_RATE)
        file.writeframes(bytes(2 * _RATE * _SECONDS))
    model = providers.transcriber()
    if model is not None:
        model.transcribe(sound.getvalue(), "silence.wav", _SECONDS)


def _try_image(providers: Providers, _: Task) -> None:
    from PIL import Image

    from memctl.models.remote_models import jpeg_of

    model = providers.image_reader("Reply with JSON that says what the picture shows.", "test/1")
    if model is not None:
        model.read(jpeg_of(Image.new("RGB", (_SIDE, _SIDE), "navy")))


_TESTS: Mapping[Task, Callable[[Providers, Task], None]] = {
    **dict.fromkeys(_CHAT, _try_chat),
    "embed": _try_embed,
    "rerank": _try_rerank,
    "transcribe": _try_transcribe,
    "image": _try_image,
}


# --- an account that is forgotten ----------------------------------------------------------------


class _UsageCounter:
    """Use that is counted and not written down."""

    def __init__(self) -> None:
        self.noted: list[Usage] = []

    def add(self, day: str, usage: Usage) -> None:
        """Count a call."""
        del day
        self.noted.append(usage)

    def of_day(self, day: str) -> list[Usage]:
        """Return what was counted; there is but one day."""
        del day
        return self.noted

    def of(self, document_id: str) -> _UsageCounter:
        """Return itself; nothing is asked about documents."""
        del document_id
        return self


def _account(counter: _UsageCounter) -> ModelAccount:
    return ModelAccount(None, counter, BudgetSettings(), utc_now)
