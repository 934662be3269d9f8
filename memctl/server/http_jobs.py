"""What takes long, done one after the other behind requests: uploads that are read, consolidation.

A job that was accepted is on disk: it is done even if the server is killed, at its next start.
"""

from __future__ import annotations

import json
import logging
import queue
import re
import secrets
import shutil
import threading
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from memctl.errors import MemctlError, NotFoundError
from memctl.files import clear_temporaries, make_folder, save_file
from memctl.operations.operation_context import OperationContext
from memctl.records import Progress
from memctl.server.http_access import error_body
from memctl.server.http_calls import Caller, Calls

FOLDER = "uploads"
"""In the folder of a knowledge base: what was sent, until it is taken in."""
JobState = Literal["waiting", "running", "done", "failed"]
_ID = re.compile(r"j_[0-9a-f]{16}")
_REQUEST = "request.json"
_MAX_KEPT = 200
_log = logging.getLogger(__name__)

JobFunction = Callable[[OperationContext, "Job", Callable[[Progress], None]], object]


class Job(Struct, frozen=True):
    """What is to be done, and how far it is."""

    id: str
    kb: str
    kind: str
    caller: Caller
    created_at: datetime
    arguments: Mapping[str, Any] = field(default_factory=dict)
    file: str = ""
    """The name of the upload, in the job's folder."""
    state: JobState = "waiting"
    done: int = 0
    total: int | None = None
    result: object = None
    error: Mapping[str, Any] | None = None

    def view(self) -> dict[str, Any]:
        """Return it as clients see it."""
        return {
            "id": self.id,
            "kb": self.kb,
            "kind": self.kind,
            "state": self.state,
            "created_at": self.created_at,
            "done": self.done,
            "total": self.total,
            "result": self.result,
            "error": self.error,
        }


class JobQueue:
    """Does jobs one after the other, in a thread of its own.

    Args:
        calls: Carries them out.
        kinds: What is done for each kind of job.
    """

    def __init__(self, calls: Calls, kinds: Mapping[str, JobFunction]) -> None:
        self._calls = calls
        self._kinds = kinds
        self._jobs: dict[str, Job] = {}
        self._waiting: queue.Queue[str | None] = queue.Queue()
        self._mutex = threading.Lock()
        self._is_stopping = False
        self._thread = threading.Thread(target=self._work, name="memctl-jobs")

    def start(self) -> None:
        """Queue what an earlier server accepted and did not finish, and start working."""
        for entry in self._calls.entries():
            self._take_up(entry.name, entry.folder / FOLDER)
        self._thread.start()

    def stop(self) -> None:
        """Finish the job in hand; the others wait on disk for the next start."""
        self._is_stopping = True
        self._waiting.put(None)
        if self._thread.is_alive():
            self._thread.join()

    def folder_of(self, kb: str, job_id: str) -> Path:
        """Return where the files of a job are."""
        return self._calls.home.layout(kb).folder / FOLDER / job_id

    def new_folder(self, kb: str) -> tuple[str, Path]:
        """Make the folder of a new job; it is removed at the next start if no request is in it."""
        job_id = f"j_{secrets.token_hex(8)}"
        folder = self.folder_of(kb, job_id)
        make_folder(folder, mode=0o700)
        return job_id, folder

    def accept(self, job: Job) -> Job:
        """Queue a job; it is on disk when this returns."""
        folder = self.folder_of(job.kb, job.id)
        request = {
            "kind": job.kind,
            "caller": asdict(job.caller),
            "created_at": job.created_at.isoformat(),
            "arguments": dict(job.arguments),
            "file": job.file,
        }
        save_file(folder / _REQUEST, json.dumps(request).encode())
        self._add(job)
        return job

    def get(self, job_id: str) -> Job:
        """Return a job as it is now.

        Raises:
            NotFoundError: There is none, or it was done before the server started.
        """
        with self._mutex:
            found = self._jobs.get(job_id)
        if found is None:
            raise NotFoundError(
                f"there is no job {job_id[:40]!r}", "jobs that were done are forgotten at a restart"
            )
        return found

    def list(self) -> list[Job]:
        """Return the jobs that are known, the latest first."""
        with self._mutex:
            return [*self._jobs.values()][::-1]

    def retry(self, job_id: str) -> Job:
        """Queue a failed job again; any other stays as it is.

        Raises:
            NotFoundError: There is none.
        """
        found = self.get(job_id)
        if found.state == "failed":
            self._update(job_id, state="waiting", error=None)
            self._waiting.put(job_id)
        return self.get(job_id)

    def remove(self, job_id: str) -> Job:
        """Forget a job that failed or is done, with what was sent for it.

        Raises:
            NotFoundError: There is none.
        """
        found = self.get(job_id)
        if found.state in ("done", "failed"):
            with self._mutex:
                self._jobs.pop(job_id, None)
            shutil.rmtree(self.folder_of(found.kb, job_id), ignore_errors=True)
        return found

    # --- inside -----------------------------------------------------------------------------------

    def _take_up(self, kb: str, folder: Path) -> None:
        if not folder.is_dir():
            return
        for path in sorted(folder.iterdir()):
            request = path / _REQUEST
            if not _ID.fullmatch(path.name):
                continue
            if not request.is_file():  # it was cut off before it was accepted
                clear_temporaries(path.glob(".*.tmp"))
                if not any(path.glob(".*.tmp")):
                    shutil.rmtree(path, ignore_errors=True)
                continue
            stored = json.loads(request.read_bytes())
            named = stored["caller"]
            caller = Caller(named["user"], named["agent"], named["session"], tuple(named["kbs"]))
            self._add(
                Job(
                    path.name,
                    kb,
                    stored["kind"],
                    caller,
                    datetime.fromisoformat(stored["created_at"]),
                    stored["arguments"],
                    stored["file"],
                )
            )

    def _add(self, job: Job) -> None:
        with self._mutex:
            self._jobs[job.id] = job
            over = [each.id for each in self._jobs.values() if each.state == "done"]
            for old in over[: max(0, len(self._jobs) - _MAX_KEPT)]:
                del self._jobs[old]
        self._waiting.put(job.id)

    def _update(self, job_id: str, **changes: Any) -> None:
        with self._mutex:
            if job_id in self._jobs:
                self._jobs[job_id] = replace(self._jobs[job_id], **changes)

    def _work(self) -> None:
        while (job_id := self._waiting.get()) is not None and not self._is_stopping:
            job = self.get(job_id)
            self._update(job_id, state="running")
            try:
                result = self._calls.carry_out(
                    job.caller,
                    lambda context, job=job: self._kinds[job.kind](  # type: ignore[misc]
                        context, job, lambda now: self._progress(job.id, now)
                    ),
                    "write",
                )
            except MemctlError as error:
                failed = error_body(error.message, error.hint, error.exit_code)
                self._update(job_id, state="failed", **failed)
            except Exception as error:  # noqa: BLE001 - one job fails, and not the server
                _log.exception("a job failed")
                failed = error_body(f"unexpected {type(error).__name__}")
                self._update(job_id, state="failed", **failed)
            else:
                shutil.rmtree(self.folder_of(job.kb, job.id), ignore_errors=True)
                self._update(job_id, state="done", result=result)

    def _progress(self, job_id: str, now: Progress) -> None:
        self._update(job_id, done=now.done, total=now.total)
