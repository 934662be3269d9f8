"""What is sent to be remembered: texts and files, spooled to disk, then read like any other file.

An upload is taken in before the reply, or, with ``Prefer: respond-async``, by a job
(https://www.rfc-editor.org/rfc/rfc7240).
"""

from __future__ import annotations

import asyncio
import io
import shutil
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from msgspec import Struct
from msgspec.structs import replace
from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from memctl import errors
from memctl.errors import MemctlError, NotFoundError, UnreadableSource, UsageError
from memctl.files import atomic_write, make_folder
from memctl.literals import DocType
from memctl.operations.operation_context import OperationContext
from memctl.records import IngestReport, Progress
from memctl.server.http_access import MAX_BODY_BYTES
from memctl.server.http_calls import (
    Caller,
    caller_of,
    calls_of,
    json_body,
    json_reply,
)
from memctl.server.http_endpoints import Listing, check_arguments, refuse_query
from memctl.server.http_jobs import FOLDER, Job, JobQueue
from memctl.server.http_streams import event, stream_reply
from memctl.validation import Rule

_POLL_SECONDS = 0.2
_LONGEST_NAME = 120
INGEST, CONSOLIDATE = "ingest", "consolidate"
Report = Callable[[Progress], None]


class IngestParameters(Struct, frozen=True, kw_only=True):
    """What to remember, and what is known of it."""

    text: Annotated[str | None, Rule("One text.")] = None
    jsonl: Annotated[str | None, Rule("One document a line, as JSON.")] = None
    title: Annotated[str, Rule("What it is called.")] = ""
    doc_type: Annotated[DocType | None, Rule("What it is.")] = None
    namespace: Annotated[str | None, Rule("Its namespace; by default the user's.")] = None
    tags: Annotated[tuple[str, ...], Rule("Its tags.")] = ()
    source: Annotated[str | None, Rule("Where it comes from.")] = None
    session: Annotated[str | None, Rule("The conversation it belongs to.")] = None
    metadata: Annotated[Mapping[str, Any] | None, Rule("What else is known of it.")] = None
    dry_run: Annotated[bool, Rule("Only say what would be done.")] = False


class ConsolidateParameters(Struct, frozen=True, kw_only=True):
    """How to consolidate."""

    dry_run: Annotated[bool, Rule("Show the insights without writing them.")] = False


def upload_routes() -> Sequence[BaseRoute]:
    """Return the routes of uploads and jobs."""
    return (
        Route("/v1/kbs/{kb}/ingest", _ingest, methods=["POST"]),
        Route("/v1/kbs/{kb}/consolidate", _consolidate, methods=["POST"]),
        Route("/v1/jobs", _jobs, methods=["GET"]),
        Route("/v1/jobs/{job}", _job, methods=["GET"]),
        Route("/v1/jobs/{job}", _remove_job, methods=["DELETE"]),
        Route("/v1/jobs/{job}/retry", _retry_job, methods=["POST"]),
        Route("/v1/jobs/{job}/events", _job_events, methods=["GET"]),
    )


def jobs_of(request: Request) -> JobQueue:
    """Return the jobs of the server that received a request."""
    jobs: JobQueue = request.app.state.jobs
    return jobs


# --- receiving ------------------------------------------------------------------------------------


class Upload(Struct, frozen=True):
    """What a request sent: arguments, and a file in the folder of its job."""

    job_id: str
    folder: Path
    arguments: dict[str, Any]
    file: str = ""

    @property
    def path(self) -> Path | None:
        """Where the file is; None where there is none."""
        return self.folder / "file" / self.file if self.file else None

    def discard(self) -> None:
        """Remove what was sent."""
        shutil.rmtree(self.folder, ignore_errors=True)


async def receive(request: Request, kb: str) -> Upload:
    """Spool what a request sends into a knowledge base's folder.

    Raises:
        UsageError: It is neither JSON, nor a form, nor bytes.
    """
    jobs = jobs_of(request)
    calls_of(request).require_writing()
    kind = _content_type(request)
    if kind != "application/octet-stream":
        refuse_query(request, "knowledge_base_id")
    job_id, folder = jobs.new_folder(kb)
    try:
        if kind == "multipart/form-data":
            return await _receive_form(request, job_id, folder)
        if kind == "application/octet-stream":
            arguments = _strings(request.query_params.multi_items())
            name = _file_name(str(arguments.pop("filename", "")))
            await _save(request.stream(), folder / "file" / name)
            return Upload(job_id, folder, arguments, name)
        return Upload(job_id, folder, await json_body(request))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _content_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def _is_dry_run(request: Request) -> bool:
    """Return whether a request asks only what would be done; its body can be read again.

    Raises:
        UsageError: It is neither JSON, nor a form, nor bytes.
    """
    kind = _content_type(request)
    if kind == "multipart/form-data":
        return bool(_strings((await _form_of(request)).multi_items()).get("dry_run"))
    if kind == "application/octet-stream":
        return bool(_strings(request.query_params.multi_items()).get("dry_run"))
    return bool((await json_body(request)).get("dry_run"))


async def _form_of(request: Request) -> FormData:
    """Return the form that a request sends.

    Raises:
        UsageError: It cannot be read.
    """
    try:
        return await request.form(max_files=1, max_part_size=MAX_BODY_BYTES)
    except MultiPartException as error:
        raise UsageError(f"the form cannot be read: {error.message}") from None


async def _receive_form(request: Request, job_id: str, folder: Path) -> Upload:
    form = await _form_of(request)
    try:
        arguments, name = _strings(form.multi_items()), ""
        upload = form.get("file")
        if isinstance(upload, UploadFile):
            name = _file_name(upload.filename or "")
            await _save(_pieces(upload), folder / "file" / name)
    finally:
        await form.close()
    return Upload(job_id, folder, arguments, name)


def _strings(items: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return the fields of a form or query, ``tags`` as a list and ``dry_run`` as a boolean."""
    found: dict[str, Any] = {}
    for key, value in items:
        if isinstance(value, str) and key == "tags":
            found.setdefault("tags", []).append(value)
        elif isinstance(value, str):
            found[key] = value == "true" if key == "dry_run" else value
    return found


async def _pieces(upload: UploadFile) -> AsyncIterator[bytes]:
    while piece := await upload.read(1 << 20):
        yield piece


async def _save(pieces: AsyncIterator[bytes], path: Path) -> None:
    make_folder(path.parent, mode=0o700)
    loop = asyncio.get_running_loop()
    with atomic_write(path) as file:
        async for piece in pieces:
            await loop.run_in_executor(None, file.write, piece)


def _file_name(text: str) -> str:
    """Return the last part of a name that a client says, as a file of ours can be called."""
    name = PurePosixPath(text.replace("\\", "/")).name.encode("utf-8", "replace").decode()
    shown = "".join(each if each.isprintable() else "_" for each in name).strip(" .")
    stem, suffix = PurePosixPath(shown).stem[:_LONGEST_NAME], PurePosixPath(shown).suffix[:16]
    return f"{stem}{suffix}" or "upload"


# --- taking in ------------------------------------------------------------------------------------


def take_in(
    context: OperationContext,
    parameters: IngestParameters,
    path: Path | None,
    progress: Report | None = None,
) -> IngestReport:
    """Remember what was sent.

    Raises:
        UsageError: There is nothing, or several kinds at once.
        UnreadableSource: There is one document, and it cannot be read.
    """
    kinds = [path is not None, parameters.text is not None, parameters.jsonl is not None]
    if sum(kinds) != 1:
        what = "one kind at a time" if any(kinds) else "nothing to ingest"
        raise UsageError(what, "send a file, text or jsonl")
    if parameters.text is not None and not parameters.text.strip():
        raise UsageError("the text is empty", "send some")
    base = context.writing()
    shared: dict[str, Any] = {
        "namespace": parameters.namespace,
        "tags": parameters.tags,
        "session": parameters.session or context.identity.session,
        "title": parameters.title,
        "doc_type": parameters.doc_type,
        "metadata": parameters.metadata,
        "dry_run": parameters.dry_run,
        "source": parameters.source,
        "progress": progress,
    }
    if path is None:
        lines = None if parameters.jsonl is None else io.BytesIO(_utf8(parameters.jsonl))
        report = base.ingest(text=parameters.text, jsonl=lines, **shared)
    else:
        with path.open("rb") as stream:
            if path.suffix == ".jsonl":
                report = base.ingest(jsonl=stream, **shared)
            else:
                report = base.ingest(stream=stream, stream_name=path.name, **shared)
    _raise_failure(report)
    return report


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")


def _raise_failure(report: IngestReport) -> None:
    """Raise why the only document that was sent failed."""
    if report.failed != 1 or len(report.outcomes) != 1:
        return
    outcome = report.outcomes[0]
    kind = getattr(errors, outcome.error, UnreadableSource)
    is_ours = isinstance(kind, type) and issubclass(kind, MemctlError)
    raise (kind if is_ours else UnreadableSource)(outcome.reason, outcome.hint)


def run_ingest(context: OperationContext, job: Job, progress: Report) -> object:
    """Take in the upload of a job."""
    base = context.writing()
    path = base.layout.folder / FOLDER / job.id / "file" / job.file if job.file else None
    return take_in(
        context, check_arguments(IngestParameters, job.arguments, INGEST), path, progress
    )


def run_consolidation(context: OperationContext, job: Job, progress: Report) -> object:
    """Draw insights, as a job."""
    parameters = check_arguments(ConsolidateParameters, job.arguments, CONSOLIDATE)
    return context.writing().consolidate(dry_run=parameters.dry_run, progress=progress)


JOB_KINDS = {INGEST: run_ingest, CONSOLIDATE: run_consolidation}


async def _ingest(request: Request) -> Response:
    calls, named = calls_of(request), request.path_params["kb"]
    try:
        is_dry_run = calls.is_to_be_made(named) and await _is_dry_run(request)
        require = calls.require_served if is_dry_run else calls.require_written
        kb = await calls.in_thread(lambda: require(named))
        upload = await receive(request, kb)
    finally:
        await request.close()
    return await ingest_reply(request, kb, caller_of(request, kb), upload, json_reply)


async def ingest_reply(
    request: Request,
    kb: str,
    caller: Caller,
    upload: Upload,
    reply: Callable[[IngestReport], Response],
) -> Response:
    """Ingest an upload and reply; with ``Prefer: respond-async`` start a job for it.

    Args:
        request: What was sent.
        kb: The knowledge base.
        caller: For whom.
        upload: What was sent.
        reply: Makes the reply from the report.

    Raises:
        MemctlError: It cannot be taken in; nothing of it is left.
    """
    calls, jobs = calls_of(request), jobs_of(request)
    try:
        parameters = check_arguments(IngestParameters, upload.arguments, INGEST)
    except UsageError:
        upload.discard()
        raise
    if is_async(request):
        job = Job(
            upload.job_id, kb, INGEST, caller, calls.home.now(), upload.arguments, upload.file
        )
        return accepted_reply(jobs.accept(job))

    def work() -> IngestReport:
        """Take it in, and remove what was sent."""
        try:
            return calls.carry_out(
                caller, lambda context: take_in(context, parameters, upload.path), "write"
            )
        finally:
            upload.discard()

    report = await calls.in_thread(work)
    return await calls.in_thread(lambda: reply(report))


def is_async(request: Request) -> bool:
    """Return whether a client wants a job rather than wait."""
    wishes = ",".join(request.headers.getlist("prefer")).lower().split(",")
    return "respond-async" in (wish.partition(";")[0].strip() for wish in wishes)


def accepted_reply(job: Job) -> Response:
    """Return the reply to a request that becomes a job."""
    headers = {"location": f"/v1/jobs/{job.id}", "preference-applied": "respond-async"}
    return json_reply(job.view(), 202, headers)


async def _consolidate(request: Request) -> Response:
    calls, jobs = calls_of(request), jobs_of(request)
    kb = calls.require_served(request.path_params["kb"])
    arguments = await json_body(request)
    parameters = check_arguments(ConsolidateParameters, arguments, CONSOLIDATE)
    caller = caller_of(request, kb)
    if is_async(request):
        calls.require_writing()
        job_id, _ = jobs.new_folder(kb)
        return accepted_reply(
            jobs.accept(Job(job_id, kb, CONSOLIDATE, caller, calls.home.now(), arguments))
        )
    report = await calls.in_thread(
        lambda: calls.carry_out(
            caller,
            lambda context: context.writing().consolidate(dry_run=parameters.dry_run),
            "write",
        )
    )
    return json_reply(report)


# --- jobs -----------------------------------------------------------------------------------------


async def _jobs(request: Request) -> Response:
    user = caller_of(request).user
    found = [job for job in jobs_of(request).list() if _is_visible(job, user)]
    rows = [job.view() for job in found]
    return json_reply(Listing(rows, len(rows)).plain())


def _is_visible(job: Job, user: str | None) -> bool:
    """Return whether a job is one of a user who is named, if any is."""
    return user is None or job.caller.user == user


def _job_id(request: Request) -> str:
    """Return the id of the job that a request is about.

    Raises:
        NotFoundError: There is none, or it is another user's.
    """
    job_id: str = request.path_params["job"]
    if not _is_visible(jobs_of(request).get(job_id), caller_of(request).user):
        raise NotFoundError(f"there is no job {job_id[:40]!r}")
    return job_id


async def _job(request: Request) -> Response:
    return json_reply(jobs_of(request).get(_job_id(request)).view())


async def _retry_job(request: Request) -> Response:
    calls_of(request).require_writing()
    return json_reply(jobs_of(request).retry(_job_id(request)).view())


async def _remove_job(request: Request) -> Response:
    calls_of(request).require_writing()
    return json_reply(jobs_of(request).remove(_job_id(request)).view())


async def _job_events(request: Request) -> Response:
    """Send how far a job is, until it is done."""
    jobs, calls, job_id = jobs_of(request), calls_of(request), _job_id(request)

    async def pieces() -> AsyncIterator[str]:
        """Yield the job whenever it has changed, until it ends."""
        before: Job | None = None
        while not calls.closing.is_set() and not await request.is_disconnected():
            job = jobs.get(job_id)
            if job != before:
                yield event(job.state, job.view())
                before = job
            if job.state in ("done", "failed"):
                return
            await asyncio.sleep(_POLL_SECONDS)

    return stream_reply(pieces())


def with_arguments(upload: Upload, **changes: Any) -> Upload:
    """Return an upload with other arguments."""
    return replace(upload, arguments={k: v for k, v in changes.items() if v is not None})
