"""Every job of upkeep, in the order in which they run where several are due at once.

To add one, write its function beside this module and an entry in ``JOBS``; ``memctl watch``,
``memctl upkeep`` and its operations follow.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterable, Sequence
from datetime import time, timedelta
from functools import partial
from typing import TYPE_CHECKING

from memctl.config import child_environment
from memctl.errors import ConfigError, UsageError
from memctl.schedules import OFF, Schedule, daily, parse_schedule
from memctl.schema.table_names import COMPARISON, CONSOLIDATION, PROMOTION, UPKEEP
from memctl.upkeep.daily_summary import write_missing_pages
from memctl.upkeep.learnings import confirm_learnings, share_learnings
from memctl.upkeep.tidying import (
    archive_stale,
    fold_access_counts,
    merge_duplicates,
    prune_sessions,
    remove_expired_memories,
)
from memctl.upkeep.upkeep_job import JobFailed, JobNotice, Outcome, UpkeepContext, UpkeepJob
from memctl.validation import nearest

if TYPE_CHECKING:
    from memctl.config import Config, CustomJob
    from memctl.knowledge_base import KnowledgeBase

_MAX_SAID = 500
"""Characters of a command's output that are reported when it fails."""


# --- what other packages do ----------------------------------------------------------------------


def _take_over_sessions(context: UpkeepContext) -> Outcome:
    base = context.base
    if context.options.dry_run:
        waiting = base.store.ledger.turns.count_pending()
        return Outcome({"messages": waiting, "summaries": 0})
    folded, notices = base.sessions.fold(), []
    if folded.turns:
        message = f"{folded.turns} messages of {len(folded.sessions)} conversations"
        notices.append(JobNotice("heard", message, {"memories": folded.memories}))
    summaries = base.sessions.compress_due()
    for made in summaries:
        message = f"{made.messages} messages of {made.session_id}"
        notices.append(JobNotice("summarised", message, document_id=made.document_id))
    counts = {"messages": folded.turns, "summaries": len(summaries)}
    return Outcome(counts, notices=notices)


def _consolidate(context: UpkeepContext) -> Outcome:
    report = context.base.insights.consolidate(dry_run=context.options.dry_run)
    detail = {"examined": report.examined, "insights": len(report.insights)}
    message = f"{report.examined} memories examined, {len(report.insights)} insights"
    if report.note:
        message += f"; without the model: {report.note}"
    said = bool(report.examined or report.waiting)
    notices = [JobNotice("consolidated", message, detail)] if said else []
    return Outcome(detail, notices=notices, worked=bool(report.examined))


def _compare(context: UpkeepContext) -> Outcome:
    if context.options.dry_run:
        return Outcome({"waiting": context.base.store.ledger.comparisons.count()})
    context.base.resources.begin_change()
    facts = context.base.services.ingestor.compare()
    found = {"added": facts.added, "updated": facts.updated, "contradicted": facts.contradicted}
    return Outcome(found | {"restated": facts.restated, "waiting": facts.waiting})


def _promote(context: UpkeepContext) -> Outcome:
    report = context.base.tiers.promote(dry_run=context.options.dry_run)
    detail = {"promoted": len(report.promoted), "removed": report.removed}
    message = f"{len(report.promoted)} short-term entries promoted, {report.removed} removed"
    notices = [JobNotice("promoted", message, detail)] if report.promoted or report.removed else []
    return Outcome(detail, notices=notices)


def _tidy_tables(context: UpkeepContext) -> Outcome:
    from memctl.pools import remove_expired

    store = context.base.store
    if context.options.dry_run:
        return Outcome({"compacted": 0})
    remove_expired(store.ledger, context.base.clock())
    report = store.upkeep()
    return Outcome({"compacted": len(report.compacted), "versions_pruned": report.versions_pruned})


def _reflect(context: UpkeepContext) -> Outcome:
    week_ago = context.now - timedelta(days=7)
    write = not context.options.dry_run
    found = context.base.judgements.reflect(week_ago, write=write, job=context.job)
    ids = [found.memory_id] if found.memory_id else []
    return Outcome({"findings": len(found.findings)}, ids=ids)


def _find_skill_conflicts(context: UpkeepContext) -> Outcome:
    scan = context.base.skills.conflicts(now=context.now).scan()
    said = [f"{each.type}: {each.explanation}" for each in scan.found]
    return _skill_outcome(scan.skills, scan.new + scan.resolved, said)


def _repair_skills(context: UpkeepContext) -> Outcome:
    if not context.config.skills.auto_repair:
        return _skill_outcome(0, 0)
    report = context.base.skills.conflicts(now=context.now).repair(job=context.job)
    said = [f"memctl job undo {report.job} takes it back"] if report.job else []
    repaired = len(report.repaired)
    return _skill_outcome(report.left + repaired, repaired, said)


def _decay_skills(context: UpkeepContext) -> Outcome:
    skills = context.base.skills.acting_as(now=context.now)
    return _skill_outcome(_count_skills(context), skills.decay())


def _reembed_skills(context: UpkeepContext) -> Outcome:
    skills = context.base.skills.acting_as(now=context.now)
    return _skill_outcome(_count_skills(context), skills.reembed())


def _learn_from_skill_uses(context: UpkeepContext) -> Outcome:
    learned = context.base.skills.proposals(now=context.now).learn(job=context.job)
    said = [f"version {each.version} of {each.slug} waits for review" for each in learned]
    return _skill_outcome(_count_skills(context), len(learned), said)


def _find_skill_gaps(context: UpkeepContext) -> Outcome:
    gaps = context.base.skills.gaps(context.now)
    return _skill_outcome(len(gaps), 0, [f"{each.team}: {each.kind} {each.name}" for each in gaps])


def _expire_skill_proposals(context: UpkeepContext) -> Outcome:
    proposals = context.base.store.ledger.skills.proposals
    expired = context.base.skills.proposals(now=context.now).expire()
    return _skill_outcome(proposals.count(), expired)


def _skill_outcome(examined: int, changed: int, said: Iterable[str] = ()) -> Outcome:
    """Return an outcome with what a person should look at."""
    notices = [JobNotice("upkeep", text) for text in said]
    return Outcome({"examined": examined, "changed": changed}, notices=notices)


def _count_skills(context: UpkeepContext) -> int:
    return context.base.store.ledger.skills.count()


def _on_skills(
    name: str, about: str, run: Callable[[UpkeepContext], Outcome], at: str
) -> UpkeepJob:
    """Return a job on skills, which changes nothing on a dry run and counts them then."""

    def job(context: UpkeepContext) -> Outcome:
        """Run the job; on a dry run, only count the skills."""
        if context.options.dry_run:
            return Outcome({"skills": _count_skills(context)})
        return run(context)

    return UpkeepJob(name, about, job, parse_schedule(at))


# --- the list ------------------------------------------------------------------------------------

JOBS: tuple[UpkeepJob, ...] = (
    UpkeepJob(
        "sessions",
        "Take over what was said, and summarise long conversations.",
        _take_over_sessions,
        is_as_needed=True,
        keeps_own_entry=True,
    ),
    UpkeepJob(
        CONSOLIDATION,
        "Draw insights from memories that belong together.",
        _consolidate,
        Schedule(every=timedelta(minutes=60)),
        keeps_own_entry=True,
    ),
    UpkeepJob(
        COMPARISON,
        "Compare new facts with what was known.",
        _compare,
        is_as_needed=True,
        keeps_own_entry=True,
    ),
    UpkeepJob(
        "accesses",
        "Add up how often memories were shown.",
        fold_access_counts,
        daily("02:00"),
    ),
    UpkeepJob(
        "learnings",
        "Learn from notes on skills, and confirm what was of use.",
        confirm_learnings,
        daily("03:45"),
    ),
    UpkeepJob(
        PROMOTION,
        "Make memories of short-term entries that were read often.",
        _promote,
        daily("04:00"),
        keeps_own_entry=True,
    ),
    UpkeepJob(
        "rot",
        "Archive distilled memories that have not been used for long.",
        archive_stale,
        daily("04:00"),
    ),
    UpkeepJob(
        "duplicates",
        "Find distilled memories that say nearly the same.",
        merge_duplicates,
        OFF,
    ),
    UpkeepJob(
        "expiry",
        "Delete memories that no longer hold, after a grace.",
        remove_expired_memories,
        daily("04:10"),
    ),
    UpkeepJob(
        "shared",
        "Copy learnings that are to be shared where all users read.",
        share_learnings,
        daily("04:30"),
    ),
    UpkeepJob(
        "prune",
        "Archive the messages of conversations that are long over.",
        prune_sessions,
        daily("04:45"),
    ),
    UpkeepJob(
        "summary",
        "Write a page about the day.",
        write_missing_pages,
        OFF,
    ),
    UpkeepJob(
        "reflect",
        "Write down what went badly in the last week.",
        _reflect,
        OFF,
    ),
    UpkeepJob(
        "tables",
        "Join small files, index new rows and prune old versions.",
        _tidy_tables,
        is_as_needed=True,
        kind=UPKEEP,
    ),
)
"""Every job but the user's own and those on skills."""
ON_SKILLS = (
    _on_skills(
        "skill_conflicts",
        "Look for conflicts among the skills.",
        _find_skill_conflicts,
        "04:15",
    ),
    _on_skills("skill_repair", "Repair simple conflicts.", _repair_skills, "04:20"),
    _on_skills(
        "skill_decay",
        "Let the effectiveness of skills fade that are not used.",
        _decay_skills,
        "sun 05:00",
    ),
    _on_skills(
        "skill_reembedding",
        "Make vectors anew whose text or embedder has changed.",
        _reembed_skills,
        "sun 05:00",
    ),
    _on_skills(
        "skill_learning",
        "Propose experimental versions from the notes of uses.",
        _learn_from_skill_uses,
        "sun 05:30",
    ),
    _on_skills("skill_gaps", "Look for what no skill is for.", _find_skill_gaps, "1 03:00"),
    _on_skills(
        "skill_proposals",
        "Mark proposals as expired that were not reviewed in time.",
        _expire_skill_proposals,
        "every 1h",
    ),
)
"""The jobs of knowledge bases that have skills."""


def jobs_of(base: KnowledgeBase) -> tuple[UpkeepJob, ...]:
    """Return the jobs of a knowledge base, the user's own last.

    Raises:
        ConfigError: One of the user's own has the name of another job.
    """
    skilled = ON_SKILLS if base.store.ledger.skills.count() else ()
    own = _custom_jobs(base.resources.program_config, base.name)
    names = {job.name for job in (*JOBS, *ON_SKILLS)}
    if taken := sorted(names.intersection(job.name for job in own)):
        raise ConfigError(
            f"[[upkeep.custom]]: memctl has a job {taken[0]!r} itself",
            "give yours another name; memctl config path says where the file is",
        )
    return (*JOBS, *skilled, *own)


def find_job(base: KnowledgeBase, name: str) -> UpkeepJob:
    """Return the job of a name.

    Raises:
        UsageError: There is none.
    """
    jobs = {job.name: job for job in jobs_of(base)}
    if name not in jobs and any(job.name == name for job in ON_SKILLS):
        raise UsageError(
            f"there is no job {name!r} in {base.name}: it appears with the first skill",
            f"memctl skill add PATH -k {base.name}",
        )
    if name not in jobs:
        hint = nearest(name, jobs) or "memctl upkeep list lists them"
        raise UsageError(f"there is no job {name[:80]!r}", hint)
    return jobs[name]


def default_schedule(job: UpkeepJob, base: KnowledgeBase) -> Schedule:
    """Return when a job runs where ``memctl upkeep set`` has not said otherwise."""
    if job.name == CONSOLIDATION:
        minutes = base.settings.consolidate_interval
        return Schedule(every=timedelta(minutes=minutes)) if minutes > 0 else OFF
    if job.name == PROMOTION:
        hour = base.resources.program_config.tiers.promote_hour
        return Schedule(at=time(hour)) if hour >= 0 else OFF
    return job.schedule


# --- commands of the user's own ------------------------------------------------------------------
#
# They come from the user's config file alone: never from the settings of a knowledge base, which
# may have been imported.


def _custom_jobs(config: Config, kb: str) -> tuple[UpkeepJob, ...]:
    """Return the jobs of the user's own that are for a knowledge base."""
    return tuple(
        UpkeepJob(
            name=job.name,
            about=f"Run {job.command}",
            run=partial(_run_command, job),
            schedule=job.schedule,
            kind=f"custom {job.name}",
        )
        for job in config.custom_jobs
        if not job.kbs or kb in job.kbs
    )


def _run_command(job: CustomJob, context: UpkeepContext) -> Outcome:
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
        said = done.stderr.decode("utf-8", "replace").strip()[-_MAX_SAID:]
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
