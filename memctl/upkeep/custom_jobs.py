"""Shell commands of the user's that run on a schedule.

They come from the user's own config file alone: never from the settings of a knowledge base, which
may have been imported.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from memctl.config import child_environment
from memctl.upkeep.upkeep_job import JobFailed, Outcome, UpkeepContext, UpkeepJob

if TYPE_CHECKING:
    from memctl.config import Config, CustomJob

_MOST_SAID = 500
"""Characters of a command's output that are reported when it fails."""


def custom_jobs(config: Config, kb: str) -> tuple[UpkeepJob, ...]:
    """Return the jobs of the user's own that are for a knowledge base."""
    return tuple(
        UpkeepJob(
            name=job.name,
            about=f"Run {job.command}",
            run=partial(_run, job),
            schedule=job.schedule,
            kind=f"custom {job.name}",
        )
        for job in config.custom_jobs
        if not job.kbs or kb in job.kbs
    )


def _run(job: CustomJob, context: UpkeepContext) -> Outcome:
    if context.options.dry_run:
        return Outcome({"would_run": 1})
    named = {"MEMCTL_KB": context.base.name, "MEMCTL_HOME": str(context.home.config.home)}
    try:
        done = subprocess.run(
            _shell(job.command),
            env=child_environment(named),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=job.timeout_seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise JobFailed(
            f"the command of {job.name!r} took longer than {job.timeout_seconds:g} seconds",
            "give it a larger timeout_seconds in [[upkeep.custom]]",
        ) from None
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip()[-_MOST_SAID:]
        raise JobFailed(
            f"the command of {job.name!r} ended with exit code {done.returncode}",
            said or "it printed no error",
            {"exit_code": done.returncode},
        )
    return Outcome({"exit_code": 0})


def _shell(command: str) -> Sequence[str]:
    """Return a command line as the system's shell is to run it."""
    if os.name == "nt":
        return (os.environ.get("COMSPEC", "cmd.exe"), "/c", command)
    return ("/bin/sh", "-c", command)
