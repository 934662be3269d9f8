"""The skills of one knowledge base: imported, found, given to agents, versioned and judged.

What has an effect on what agents do takes a person: an agent that is named may import drafts,
propose, and say how a use went.  Knows nothing of conflicts, proposals and gaps.
"""

from __future__ import annotations

import difflib
import hashlib
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from memctl.errors import AccessRefused, NotFoundError, UsageError
from memctl.identity import checked_name
from memctl.ids import skill_id
from memctl.literals import ChangeType, SkillCategory, SkillStatus
from memctl.redaction import redact_secrets
from memctl.skills.skill_files import (
    AttachedFile,
    FoundSkill,
    SkillDraft,
    digest,
    find_skills,
    parse_skill,
    slug_of,
    write_folder,
)
from memctl.skills.skill_search import SkillMatcher, infer_category
from memctl.skills.skill_views import (
    Dependencies,
    Evolution,
    FileView,
    SkillDetails,
    SkillEdge,
    SkillHit,
    SkillImport,
    SkillView,
    VersionView,
    by_skill,
    compare_versions,
    dependencies,
    effectiveness,
    skill_edges,
    skill_views,
    text_of,
    version_views,
)
from memctl.store.ledger.skill_repositories import (
    Skill,
    SkillAgent,
    SkillFile,
    SkillUse,
    SkillVersion,
)

if TYPE_CHECKING:
    from memctl.models.protocols import Embedder
    from memctl.store.ledger.ledger import Ledger

WHOLE = 100
"""Per cent that the shares of active versions add up to."""
LONGEST_NOTE = 4_000
LONGEST_TASK = 500
_NEW_EFFECTIVENESS = 0.5
_PERSON_HINT = "a person does that: memctl skill, with no agent named"


class Skills:
    """The skills of one knowledge base, for the acting user or agent.

    Args:
        ledger: Where they are kept.
        clock: Returns the current time.
        embedder: Gives what makes vectors of names and descriptions.
        agent: The agent that acts; None for a person.
        user: The user that is named.
        session: The conversation.
        redact: Whether secrets are taken out of texts before they are stored.
        require_writable: Raises where the knowledge base must not be changed.
    """

    def __init__(
        self,
        ledger: Ledger,
        clock: Callable[[], datetime],
        embedder: Callable[[], Embedder],
        *,
        agent: str | None = None,
        user: str | None = None,
        session: str | None = None,
        redact: bool = False,
        require_writable: Callable[[], None] | None = None,
    ) -> None:
        self.ledger = ledger
        self.clock = clock
        self.agent = checked_name(agent, "an agent")
        self.user = user
        self._session = session
        self._stored = ledger.skills
        self.matcher = SkillMatcher(ledger, embedder)
        self._redact = redact
        self.require_writable = require_writable or ledger.require_writable

    @property
    def actor(self) -> str:
        """Who acts, as it is noted."""
        return self.agent or self.user or "person"

    def require_person(self, what: str) -> None:
        """Refuse to an agent what has an effect on agents.

        Raises:
            AccessRefused: An agent acts.
        """
        if self.agent is not None:
            raise AccessRefused(f"agent {self.agent!r} may not {what}", _PERSON_HINT)

    def _find_to_change(self, word: str, what: str) -> Skill:
        """Return a skill that a person wants to change."""
        self.require_person(what)
        self.require_writable()
        return self.find(word)

    def clean(self, text: str) -> str:
        """Return a text without secrets, where they are not to be stored."""
        return redact_secrets(text) if self._redact else text

    def note(self, action: str, *objects: str) -> None:
        """Note a change in the audit trail, by ids and without words."""
        self.ledger.audit.add(self.clock(), f"skill {action}", objects)

    # --- import ----------------------------------------------------------------------------------

    def add(
        self,
        path: Path,
        *,
        category: SkillCategory | None = None,
        change_type: ChangeType = "minor",
        notes: str = "",
        dry_run: bool = False,
    ) -> Sequence[SkillImport]:
        """Import a file or a folder; what is there already is recognised.

        A file that has changed is the next version of its skill.  A person's import is active at
        once; an agent's skill is a draft, and its version waits to be activated.

        Args:
            path: A SKILL.md, a folder with one, a folder of such folders, or Markdown files.
            category: Of all of them; by default as the file says, else by its words.
            change_type: How new versions differ.
            notes: What is noted of new versions.
            dry_run: Write nothing.
        """
        self.require_writable()
        outcomes: list[SkillImport] = []
        paths: dict[str, str] = {}
        with self.ledger.transaction():
            for found in find_skills(path, self.clean):
                draft = found.draft
                if draft is not None and draft.name in paths:
                    other = paths[draft.name]
                    problem = f"{other} is called {draft.name!r} too"
                    found = replace(found, draft=None, problem=problem, hint="rename one of them")
                    draft = None
                if draft is None:
                    outcomes.append(_failure(found))
                    continue
                paths[draft.name] = found.source
                if category:
                    draft = replace(draft, category=category)
                done = self._add(draft, change_type, notes, dry_run=dry_run)
                outcomes.append(replace(done, left_out=found.left_out))
        return outcomes

    def _add(
        self, draft: SkillDraft, change_type: ChangeType, notes: str, *, dry_run: bool
    ) -> SkillImport:
        known = self._find_by_file_name(draft.name)
        is_person = self.agent is None
        if not known:
            skill = self.new_skill(draft, "active" if is_person else "draft")
            if not dry_run:
                self.write_new(skill, draft, notes)
            return _import_result(draft, "added", skill, 1, is_active=skill.status == "active")
        skill = known[0]
        if same := self._same_version(skill, draft):
            return _import_result(draft, "unchanged", skill, same.number, is_active=same.share > 0)
        number = self._next_number(skill)
        if not dry_run:
            self.write_version(skill, draft, change_type, notes)
            if is_person:
                self._activate(skill, number, draft)
        return _import_result(draft, "version", skill, number, is_active=is_person)

    def _find_by_file_name(self, name: str) -> Sequence[Skill]:
        """Return the skill whose file has a name, or has got it by a repair."""
        return sorted(self._stored.find_by_name(name), key=lambda each: each.declared_name != name)

    def new_skill(self, draft: SkillDraft, status: SkillStatus) -> Skill:
        """Return the row of a skill that is not there yet."""
        now = self.clock()
        generation = 0
        while self._stored.find(skill_id(draft.name, generation)):
            generation += 1
        return _describe(
            Skill(
                skill_id=skill_id(draft.name, generation),
                declared_name=draft.name,
                name=draft.name,
                slug=slug_of(draft.name),
                description="",
                category=infer_category(draft.name, draft.description)[0],
                status=draft.status or status,
                created_by=self.actor,
                created_at=now,
                updated_at=now,
                active_version=1,
                effectiveness=_NEW_EFFECTIVENESS,
            ),
            draft,
            now,
        )

    def write_new(self, skill: Skill, draft: SkillDraft, notes: str) -> None:
        """Write a skill and its first version, which is active."""
        with self.ledger.transaction():
            self._stored.save(skill)
            self.write_version(skill, draft, "major", notes or "the first version")
            self._stored.versions.set_shares(skill.skill_id, {1: WHOLE})
            self.note("add", skill.skill_id)

    def write_version(
        self, skill: Skill, draft: SkillDraft, change_type: ChangeType, notes: str
    ) -> SkillVersion:
        """Write the next version of a skill, which is not active."""
        now, number = self.clock(), self._next_number(skill)
        version = SkillVersion(
            skill_id=skill.skill_id,
            number=number,
            change_type=change_type,
            content=draft.content,
            notes=self.clean(notes.strip())[:LONGEST_NOTE],
            share=0,
            successes=0,
            failures=0,
            created_at=now,
            created_by=self.actor,
        )
        files = (
            SkillFile(skill.skill_id, number, each.path, each.content, each.encoding, now)
            for each in draft.files
        )
        with self.ledger.transaction():
            self._stored.versions.save(version)
            self._stored.files.save(*files)
        return version

    def _next_number(self, skill: Skill) -> int:
        versions = self._stored.versions.of(skill.skill_id)
        return max((each.number for each in versions), default=0) + 1

    def _same_version(self, skill: Skill, draft: SkillDraft) -> SkillVersion | None:
        """The latest version with the same text and files, an active one before others."""
        wanted = {(each.path, each.content) for each in draft.files}
        same = (
            each
            for each in self._stored.versions.of(skill.skill_id)
            if draft.content in (each.content, text_of(skill, each))
            and self._file_texts(each) == wanted
        )
        return max(same, key=lambda each: (each.share > 0, each.number), default=None)

    def _file_texts(self, version: SkillVersion) -> set[tuple[str, str]]:
        files = self._stored.files.of(version.skill_id, version.number)
        return {(each.path, each.content) for each in files}

    # --- looking ---------------------------------------------------------------------------------

    def find(self, word: str) -> Skill:
        """Return the skill with an id, the beginning of one, a slug or a name.

        Raises:
            NotFoundError: There is none.
            UsageError: Several are called that.
        """
        found = self._stored.find_by_reference(word)
        exact = [each for each in found if each.skill_id == word]
        if len(found) > 1 and not exact:
            ids = ", ".join(f"{each.skill_id} ({each.name})" for each in found[:5])
            raise UsageError(
                f"{len(found)} skills are called {word!r}", f"name one by its id: {ids}"
            )
        if not found:
            known = [each.slug for each in self._stored.all()]
            near = difflib.get_close_matches(slug_of(word), known, n=1)
            hint = f"did you mean {near[0]}?" if near else "memctl skill list shows them"
            raise NotFoundError(f"there is no skill {word[:80]!r}", hint)
        return exact[0] if exact else found[0]

    def list(
        self,
        *,
        category: SkillCategory | None = None,
        status: SkillStatus | None = None,
        agent: str | None = None,
    ) -> Sequence[SkillView]:
        """Return skills by slug; archived ones only if that status is asked for.

        Args:
            category: Only of this one.
            status: Only in this one.
            agent: Only those that this agent has, and that are enabled for it.
        """
        found = self._stored.select(
            "category = coalesce(?1, category)"
            " AND (status = ?2 OR (?2 IS NULL AND status <> 'archived'))",
            *(category, status),
        )
        views = self.views(found)
        return [each for each in views if agent is None or agent in each.agents]

    def views(self, skills: Sequence[Skill]) -> Sequence[SkillView]:
        """Return skills as listings show them."""
        return skill_views(self._stored, skills, self.clock())

    def show(self, word: str) -> SkillDetails:
        """Return all that is known of a skill.

        Raises:
            NotFoundError: There is none.
        """
        skill = self.find(word)
        needed = self.dependencies(skill)
        off = (each.agent for each in self._stored.agents.of(skill.skill_id) if not each.enabled)
        return SkillDetails(
            skill=self.views([skill])[0],
            execution=skill.execution,
            metadata=skill.metadata,
            source=skill.source,
            created_at=skill.created_at,
            versions=tuple(self.versions(skill.skill_id)),
            files=self.file_views(skill.skill_id, skill.active_version),
            disabled_for=tuple(off),
            requires=tuple(each.slug for each in needed.order),
            cycles=needed.cycles,
            missing=needed.missing,
        )

    def file_views(self, skill: str, number: int) -> tuple[FileView, ...]:
        """Return the files of a version with their sizes and checksums."""
        return tuple(
            FileView(path=each.path, size=len(data), sha256=digest(data))
            for each in self.files(skill, number)
            for data in [each.data]
        )

    def files(self, skill: str, number: int) -> Sequence[AttachedFile]:
        """Return the files of a version."""
        stored = self._stored.files.of(skill, number)
        return [AttachedFile(each.path, each.content, each.encoding) for each in stored]

    def search(
        self,
        text: str,
        *,
        limit: int = 10,
        category: SkillCategory | None = None,
        every_status: bool = False,
    ) -> Sequence[SkillHit]:
        """Return the skills that fit a description, by meaning and words, ranked with health.

        Those that are switched off for the agent that asks are left out.

        Args:
            text: What is to be done.
            limit: At most this many.
            category: Only of this one.
            every_status: Also those that are not active.

        Raises:
            UsageError: The description is empty.
        """
        if not text.strip():
            raise UsageError("the description is empty", "say what is to be done")
        own = self.assignments()
        skills = [
            skill
            for skill in self._stored.select("category = coalesce(?, category)", category)
            if (every_status or skill.status == "active") and own.get(skill.skill_id, True)
        ]
        if not skills:
            return []
        return self.matcher.rank(text, skills, self.views(skills), limit, own)

    def assignments(self) -> Mapping[str, bool]:
        """Return the skills that the agent that asks has, and whether each is enabled for it."""
        if self.agent is None:
            return {}
        rows = self._stored.agents.select("agent = ?", self.agent)
        return {each.skill_id: each.enabled for each in rows}

    def dependencies(self, skill: Skill) -> Dependencies:
        """Return what a skill requires in the order in which it has to be known."""
        return dependencies(skill, self._stored.all())

    def names(self) -> Sequence[str]:
        """Return the names of the skills that are not archived."""
        return [each.name for each in self._stored.all() if each.status != "archived"]

    def edges(self) -> Sequence[SkillEdge]:
        """Return how skills are connected with each other and with agents, by their names."""
        return skill_edges(self._stored)

    # --- agents ----------------------------------------------------------------------------------

    def assign(self, word: str, agent: str, *, enabled: bool = True) -> SkillAgent:
        """Give a skill to an agent, or switch it off for one.

        Raises:
            AccessRefused: An agent acts.
            NotFoundError: There is no such skill.
        """
        skill = self._find_to_change(word, "assign skills")
        name = checked_name(agent, "an agent") or ""
        known = self._stored.agents.find(skill.skill_id, name)
        since = known.since if known else self.clock()
        made = SkillAgent(skill.skill_id, name, since, enabled)
        with self.ledger.transaction():
            self._stored.agents.save(made)
            self.note("assign" if enabled else "switch off", skill.skill_id, f"agent {name}")
        return made

    def unassign(self, word: str, agent: str) -> None:
        """Take a skill from an agent.

        Raises:
            AccessRefused: An agent acts.
            NotFoundError: There is no such skill, or the agent does not have it.
        """
        skill = self._find_to_change(word, "take skills away")
        if self._stored.agents.find(skill.skill_id, agent) is None:
            raise NotFoundError(
                f"agent {agent!r} does not have {skill.slug}", "memctl skill show says who has it"
            )
        with self.ledger.transaction():
            self._stored.agents.remove(skill.skill_id, agent)
            self.note("unassign", skill.skill_id, f"agent {agent}")

    # --- versions --------------------------------------------------------------------------------

    def versions(self, word: str) -> Sequence[VersionView]:
        """Return the versions of a skill, the oldest first."""
        return version_views(self._stored, self.find(word).skill_id)

    def version(self, skill: Skill, number: int) -> SkillVersion:
        """Return a version of a skill.

        Raises:
            NotFoundError: There is none of that number.
        """
        found = self._stored.versions.find(skill.skill_id, number)
        if found is None:
            listed = f"memctl skill version list {skill.slug} shows those that it has"
            hint = listed if self._stored.versions.of(skill.skill_id) else "its text is gone"
            raise NotFoundError(f"{skill.slug} has no version {number}", hint)
        return found

    def version_for(self, skill: Skill, task: str | None) -> SkillVersion:
        """Return the version that a task gets: always the same one, by the shares of the active.

        Without a task it is the one with the greatest share.

        Raises:
            NotFoundError: The text of every active version has been forgotten.
        """
        active = [each for each in self._stored.versions.of(skill.skill_id) if each.share > 0]
        if not active:
            return self.version(skill, skill.active_version)
        if task is None or len(active) == 1:
            return max(active, key=lambda each: (each.share, each.number))
        seed = hashlib.sha256(f"{skill.skill_id}\0{task}".encode("utf-8", "replace")).digest()
        place = int.from_bytes(seed[:8], "big") / 2**64 * sum(each.share for each in active)
        for each in active:
            place -= each.share
            if place < 0:
                return each
        return active[-1]

    def add_version(
        self, word: str, content: str, change_type: ChangeType, notes: str = "", source: str = ""
    ) -> SkillVersion:
        """Add a version of a skill's text, which is not active; its files are those of before.

        Raises:
            UsageError: It is the text of a version that is there.
            UnreadableSource: Its front matter cannot be read.
        """
        self.require_writable()
        skill = self.find(word)
        content = self.clean(content)
        draft = parse_skill(content, skill.declared_name, source)
        draft = replace(draft, files=tuple(self.files(skill.skill_id, skill.active_version)))
        if same := self._same_version(skill, draft):
            raise UsageError(
                f"that is the text of version {same.number} of {skill.slug}",
                f"memctl skill version activate {skill.slug} {same.number}",
            )
        return self.write_version(skill, draft, change_type, notes)

    def activate(self, word: str, number: int) -> VersionView:
        """Make a version the only active one; the former ones are kept.

        Raises:
            AccessRefused: An agent acts.
            NotFoundError: There is no such skill or version.
        """
        skill = self._find_to_change(word, "activate a version")
        version = self.version(skill, number)
        self._activate(skill, number, parse_skill(version.content, skill.declared_name))
        return next(each for each in self.versions(skill.skill_id) if each.number == number)

    def _activate(self, skill: Skill, number: int, draft: SkillDraft) -> None:
        with self.ledger.transaction():
            self._stored.versions.set_shares(skill.skill_id, {number: WHOLE})
            self.note("activate", skill.skill_id, f"version {number}")
            changed = _describe(skill, draft, self.clock())
            if draft.status is not None and draft.status != skill.status:
                changed = replace(changed, status=draft.status)
            self._stored.save(replace(changed, active_version=number))

    def split(self, word: str, shares: Mapping[int, int]) -> Sequence[VersionView]:
        """Have several versions active, each for its share of the tasks.

        Args:
            word: The skill.
            shares: Per cent by number; they add up to 100, and none is 0.

        Raises:
            AccessRefused: An agent acts.
            UsageError: The shares cannot be kept to.
            NotFoundError: There is no such skill or version.
        """
        skill = self._find_to_change(word, "share tasks out among versions")
        for number in shares:
            self.version(skill, number)
        if len(shares) < 2 or min(shares.values()) < 1:
            only = max(shares, key=lambda each: shares[each])
            raise UsageError(
                "a split has at least two versions, each with 1 per cent or more",
                f"for one alone: memctl skill version activate {skill.slug} {only}",
            )
        if sum(shares.values()) != WHOLE:
            raise UsageError(
                f"the shares add up to {sum(shares.values())}, not {WHOLE}", "write 1=90 2=10"
            )
        greatest = max(shares, key=lambda each: (shares[each], -each))
        with self.ledger.transaction():
            self._stored.versions.set_shares(skill.skill_id, shares)
            self._stored.save(replace(skill, active_version=greatest, updated_at=self.clock()))
            self.note("split", skill.skill_id, *(f"version {number}" for number in shares))
        return self.versions(skill.skill_id)

    # --- uses ------------------------------------------------------------------------------------

    def record_use(
        self,
        word: str,
        *,
        success: bool,
        task: str = "",
        note: str = "",
        duration: float | None = None,
        version: int | None = None,
        dry_run: bool = False,
    ) -> SkillUse:
        """Record how a use of a skill went; it counts for the version that was used.

        Args:
            word: The skill.
            success: Whether it went well.
            task: What it was used for; by it the version is known.
            note: What is to be learned from it.
            duration: How long it took, in seconds.
            version: The version that was used, where the task does not tell.
            dry_run: Write nothing; return what would be noted.

        Raises:
            NotFoundError: There is no such skill or version.
            UsageError: The duration cannot be one.
        """
        self.require_writable()
        skill = self.find(word)
        if duration is not None and not (math.isfinite(duration) and duration >= 0):
            raise UsageError(f"{duration:g} is no duration", "give seconds, 0 or more")
        used = self.version(skill, version) if version else self.version_for(skill, task or None)
        now = self.clock()
        use = SkillUse(
            id=None,
            skill_id=skill.skill_id,
            version=used.number,
            agent=self.agent or "",
            task=self.clean(task.strip())[:LONGEST_TASK],
            success=success,
            duration=duration,
            note=self.clean(note.strip())[:LONGEST_NOTE],
            at=now,
            session_id=self._session,
            user_id=self.user,
        )
        if dry_run:
            return use
        with self.ledger.transaction():
            self._stored.uses.save(use)
            self._stored.versions.count_outcome(skill.skill_id, used.number, success=success)
            self._set_effectiveness([skill], {skill.skill_id: now})
        return use

    def uses(self, word: str, limit: int = -1) -> Sequence[SkillUse]:
        """Return the uses of a skill, the latest first; with a user named, not those of others."""
        found = self._stored.uses.of(self.find(word).skill_id)
        own = [each for each in found if self.user is None or each.user_id in (None, self.user)]
        return own if limit < 0 else own[:limit]

    def decay(self) -> int:
        """Let the effectiveness of what is not used fade; return for how many it changed."""
        self.require_writable()
        return self._set_effectiveness(self._stored.all(), self._stored.uses.last_at())

    def _set_effectiveness(self, skills: Sequence[Skill], last: Mapping[str, datetime]) -> int:
        now, changed = self.clock(), []
        versions = by_skill(self._stored.versions.all())
        for skill in skills:
            own = versions.get(skill.skill_id, [])
            value = effectiveness(
                sum(each.successes for each in own),
                sum(each.failures for each in own),
                last.get(skill.skill_id, skill.created_at),
                now,
            )
            if abs(value - skill.effectiveness) > 1e-9:
                changed.append((value, skill.skill_id))
        self._stored.execute_each("UPDATE skills SET effectiveness = ? WHERE skill_id = ?", changed)
        return len(changed)

    def reembed(self) -> int:
        """Make the vectors anew whose text or embedder has changed; return how many skills."""
        self.require_writable()
        skills = self._stored.all()
        before = {each.skill_id: each.vector_of for each in skills}
        if skills:
            self.matcher.vectors(skills)
        after = self._stored.all()
        return sum(before[each.skill_id] != each.vector_of for each in after)

    def evolution(self) -> Sequence[Evolution]:
        """Compare each version that was used with the one that was used before it."""
        versions = by_skill(self._stored.versions.all())
        return [
            compare_versions(skill, older, newer)
            for skill in self._stored.all()
            for older, newer in pairwise(
                each for each in versions.get(skill.skill_id, []) if each.successes + each.failures
            )
        ]

    # --- status ----------------------------------------------------------------------------------

    def set_status(self, word: str, status: SkillStatus, successor: str | None = None) -> Skill:
        """Activate, deprecate or archive a skill.

        Args:
            word: The skill.
            status: What it becomes.
            successor: The skill that replaces it.

        Raises:
            AccessRefused: An agent acts.
            NotFoundError: There is no such skill.
            UsageError: It would replace itself.
        """
        skill = self._find_to_change(word, f"make a skill {status}")
        changed = replace(skill, status=status, updated_at=self.clock())
        if successor is not None:
            after = self.find(successor)
            if after.skill_id == skill.skill_id:
                raise UsageError(f"{skill.slug} cannot replace itself", "name another skill")
            changed = replace(changed, successor=after.slug)
        with self.ledger.transaction():
            self._stored.save(changed)
            self.note(f"set {status}", skill.skill_id)
        return changed

    def delete(self, word: str) -> Skill:
        """Delete a skill with its versions, files, uses and conflicts.

        Raises:
            AccessRefused: An agent acts.
            NotFoundError: There is no such skill.
        """
        skill = self._find_to_change(word, "delete a skill")
        with self.ledger.transaction():
            self._stored.remove_whole(skill.skill_id)
            self.note("delete", skill.skill_id)
        return skill

    # --- export ----------------------------------------------------------------------------------

    def export(
        self, folder: Path, *, every_status: bool = False
    ) -> tuple[Sequence[Path], Sequence[str]]:
        """Write the active version of each skill as a folder with its files.

        Args:
            folder: Where they go; what stands there under other names stays.
            every_status: Also those that are not active.

        Returns:
            The folders, and what was left out and why.
        """
        written: list[Path] = []
        left_out: list[str] = []
        names: Counter[str] = Counter()
        for skill in self._stored.all():
            if skill.status != "active" and not every_status:
                continue
            versions = self._stored.versions.of(skill.skill_id)
            number = skill.active_version
            text = next((text_of(skill, each) for each in versions if each.number == number), None)
            if text is None:
                left_out.append(f"{skill.slug}: its text has been forgotten")
                continue
            slug = slug_of(skill.slug)
            names[slug] += 1
            target = folder / (slug if names[slug] == 1 else f"{slug}-{skill.skill_id[3:11]}")
            if target.is_symlink():
                left_out.append(f"{skill.slug}: a link stands in its way")
                continue
            problems = write_folder(target, text, self.files(skill.skill_id, number))
            left_out += [f"{skill.slug}: {each}" for each in problems]
            written.append(target)
        return written, left_out


def _describe(skill: Skill, draft: SkillDraft, now: datetime) -> Skill:
    """Return a skill with what a text says of it."""
    return replace(
        skill,
        description=draft.description,
        category=draft.category or skill.category,
        tags=draft.tags,
        requires=draft.requires,
        successor=draft.successor or skill.successor,
        execution=draft.execution,
        metadata=draft.metadata,
        source=draft.source or skill.source,
        updated_at=now,
    )


def _failure(skill: FoundSkill) -> SkillImport:
    return SkillImport(skill.source, "failed", reason=skill.problem, hint=skill.hint)


def _import_result(
    draft: SkillDraft, outcome: str, skill: Skill, version: int, *, is_active: bool
) -> SkillImport:
    return SkillImport(
        source=draft.source,
        outcome=outcome,
        skill_id=skill.skill_id,
        name=skill.name,
        slug=skill.slug,
        category=skill.category,
        version=version,
        is_active=is_active,
    )
