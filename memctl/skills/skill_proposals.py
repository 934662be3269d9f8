"""Skills that were asked for: researched, proposed, reviewed, made; and what uses teach.

Nothing that is proposed has an effect until a person has approved it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from memctl.errors import UsageError
from memctl.ids import proposal_id
from memctl.language.inline_tags import without_wikilinks
from memctl.language.sentence_splitting import split_sentences
from memctl.language.term_analysis import terms
from memctl.language.word_lists import load_language
from memctl.literals import ProposalStatus, SkillCategory
from memctl.records import Hit
from memctl.skills.skill_files import (
    checked_skill_name,
    checked_skill_text,
    one_line,
    parse_requirement,
    parse_skill,
    slug_of,
    stored_requirements,
)
from memctl.skills.skill_registry import Skills
from memctl.skills.skill_search import infer_category
from memctl.skills.skill_views import SkillHit, only_match, skills_by_slug
from memctl.store.ledger.repository import to_text
from memctl.store.ledger.skill_repositories import Skill, SkillProposal, SkillRepair

EXPIRES_AFTER = timedelta(days=14)
NEAREST = 5
MIN_NOTES = 3
"""With this many notes of uses, a version is worth proposing."""
_MAX_NOTES = 20
_FREQUENT_WORDS = 6
_LONGEST_TOPIC = 500
_SIMILAR_RELEVANCE = 0.6
"""Relevance from which a skill that is there makes another one less needed."""
_NEAR = 0.4
"""Relevance from which a draft names a skill that is there."""
_MAX_STATEMENTS = 12
_LONGEST_NAME = 120
_LONGEST_STATEMENT = 300
_OPEN: tuple[ProposalStatus, ...] = ("draft", "submitted", "under_review", "approved")
_UNREVIEWED: tuple[ProposalStatus, ...] = ("draft", "submitted")
_WORD = re.compile(r"[^\W\d_]{4,}")
_ASKING = re.compile(
    r"(?:please\s+)?how\s+(?:to|(?:do|does|can|could|should|would|must)\s+(?:i|we|you|one|they))\s+",
    re.IGNORECASE,
)
"""How a topic begins that is put as a question."""
_STEP = re.compile(
    r"(?:always|never|must|should|make sure|ensure|avoid|do not|don't|first|then|before|after)\b",
    re.IGNORECASE,
)
"""What says that something is to be done, or in which order."""
_LINE_MARK = re.compile(r"^(?:[-*+>]|\d{1,3}[.)]|\[[ xX]\])\s+")
LEARNED = "## Learned from use"
Nearest = Callable[[str, int], Sequence[Hit]]
"""Returns the passages that are nearest to a topic, and open to everybody who may read here."""


class CreatedSkill(Struct, frozen=True):
    """A skill that was made of a proposal."""

    proposal_id: str
    skill_id: str
    slug: str
    version: int
    requires: tuple[str, ...]
    missing: tuple[str, ...]
    """What it requires that is not there yet."""


class SkillApproval(Struct, frozen=True):
    """What came of approving a proposal."""

    proposal: SkillProposal
    proposed: tuple[SkillProposal, ...]
    """Proposals that were made for required skills that are missing."""


class LearnedVersion(Struct, frozen=True):
    """A version that the notes of uses propose."""

    skill_id: str
    slug: str
    version: int | None
    """None on a dry run."""
    notes: tuple[str, ...]


class SkillProposals:
    """The proposals of skills in one knowledge base.

    Args:
        skills: The skills, for the acting user or agent.
        nearest: Finds what is known of a topic.
    """

    def __init__(self, skills: Skills, nearest: Nearest) -> None:
        self._skills = skills
        self._stored = skills.ledger.skills
        self._nearest = nearest

    # --- proposing -------------------------------------------------------------------------------

    def propose(
        self,
        topic: str,
        *,
        name: str = "",
        description: str = "",
        category: SkillCategory | None = None,
        requires: Iterable[str] = (),
        parent: str | None = None,
        submitted: bool = False,
        dry_run: bool = False,
    ) -> SkillProposal:
        """Look into what is known of a topic, and propose a skill for it.

        Args:
            topic: What it is to be for.
            name: By default as the topic.
            description: By default from the topic and the words that go with it.
            category: By default the one whose words fit best.
            requires: Slugs of skills that it needs.
            parent: The proposal that needs this one.
            submitted: Whether it is for review at once, and no draft.
            dry_run: Write nothing; return what would be proposed.

        Raises:
            UsageError: The topic is empty or too long, or a name cannot be one.
        """
        self._skills.require_writable()
        subject = one_line(self._skills.clean(topic))
        if not subject or len(subject) > _LONGEST_TOPIC or not any(map(str.isalnum, subject)):
            raise UsageError(
                f"a topic has 1 to {_LONGEST_TOPIC} characters, and words",
                'memctl skill propose "Kubernetes deployment automation"',
            )
        now = self._skills.clock()
        hits = self._about(subject)
        alike = self._skills.search(subject, limit=NEAREST, every_status=True)
        known = _statements(hits, subject)
        clean = self._skills.clean
        task = _task(subject)
        named = checked_skill_name(clean(name) or task[:100])
        summary = one_line(clean(description)) or _description(task, known)
        inferred, fit = infer_category(named, f"{subject} {summary}")
        confidence = 0.2 + 0.1 * len(hits) + (0.3 if category else 0.3 * fit)
        if alike and alike[0].relevance >= _SIMILAR_RELEVANCE:
            confidence /= 2
        needed = stored_requirements(requires)
        made = SkillProposal(
            proposal_id=self._free_id(subject, now, parent or ""),
            topic=subject,
            name=named,
            description=summary,
            category=category or inferred,
            confidence=round(min(confidence, 0.95), 4),
            agent=self._skills.agent or "",
            status="submitted" if submitted else "draft",
            created_at=now,
            updated_at=now,
            expires_at=now + EXPIRES_AFTER,
            requires=needed,
            content=_draft(
                _FrontMatter(
                    named, summary, category or inferred, needed, _frequent_words(hits, subject)
                ),
                known,
                [hit for hit in alike if hit.relevance >= _NEAR],
            ),
            findings=(
                *map(_finding, hits),
                *(f"skill: {hit.slug} ({hit.relevance:.2f})" for hit in alike),
            ),
            parent_id=parent,
            user_id=self._skills.user,
        )
        if not dry_run:
            self._stored.proposals.save(made)
            self._skills.note("propose", made.proposal_id)
        return made

    def _about(self, topic: str) -> Sequence[Hit]:
        """What is near and shares a word with the topic: the nearest alone may be far."""
        wanted = set(terms(topic))
        hits = self._nearest(topic, NEAREST)
        return [hit for hit in hits if wanted & set(terms(f"{hit.title} {hit.text}"))]

    def _free_id(self, topic: str, now: datetime, parent: str) -> str:
        number = 0
        while self._stored.proposals.find(
            id_ := proposal_id(topic, f"{to_text(now)}/{number}", parent)
        ):
            number += 1
        return id_

    # --- review ----------------------------------------------------------------------------------

    def find(self, id_: str) -> SkillProposal:
        """Return the proposal with an id, or the beginning of one.

        Raises:
            NotFoundError: There is none that the acting user or agent may see.
            UsageError: Several begin so.
        """
        found = self._stored.proposals.select("substr(proposal_id, 1, length(?1)) = ?1", id_)
        visible = [each for each in found if self._is_visible(each)]
        return self._with_expiry(only_match(visible, id_, "proposal"))

    def list(self, status: ProposalStatus | None = None) -> Sequence[SkillProposal]:
        """Return proposals, the latest first, all or those in one status."""
        found = (self._with_expiry(e) for e in self._stored.proposals.all() if self._is_visible(e))
        return [each for each in found if status in (None, each.status)]

    def _is_visible(self, proposal: SkillProposal) -> bool:
        return self._skills.user is None or proposal.user_id in (None, self._skills.user)

    def _with_expiry(self, proposal: SkillProposal) -> SkillProposal:
        """Return a proposal as expired where it is overdue, though no job has said so yet."""
        is_over = proposal.expires_at <= self._skills.clock() and proposal.status in _UNREVIEWED
        return replace(proposal, status="expired") if is_over else proposal

    def submit(self, id_: str) -> SkillProposal:
        """Hand a draft in for review.

        Raises:
            UsageError: It is no draft.
        """
        return self._move(id_, ("draft",), "submitted")

    def review(self, id_: str) -> SkillProposal:
        """Take a proposal up for review.

        Raises:
            AccessRefused: An agent acts.
            UsageError: It has not been submitted.
        """
        self._skills.require_person("review proposals")
        return self._move(id_, ("submitted",), "under_review", reviewer=self._skills.actor)

    def reject(self, id_: str, reasons: str) -> SkillProposal:
        """Reject a proposal.

        Raises:
            AccessRefused: An agent acts.
            UsageError: No reason is given, or it has been decided on.
        """
        self._skills.require_person("reject proposals")
        if not reasons.strip():
            raise UsageError("why?", "say the reason: --because TEXT")
        return self._move(
            id_,
            ("draft", "submitted", "under_review"),
            "rejected",
            reviewer=self._skills.actor,
            reasons=self._skills.clean(reasons.strip()),
        )

    def approve(self, id_: str, reasons: str = "") -> SkillApproval:
        """Approve a proposal; required skills that are missing are proposed, too.

        Raises:
            AccessRefused: An agent acts.
            UsageError: It has not been submitted, or has been decided on.
        """
        self._skills.require_person("approve proposals")
        with self._skills.ledger.transaction():
            approved = self._move(
                id_,
                ("submitted", "under_review"),
                "approved",
                reviewer=self._skills.actor,
                reasons=self._skills.clean(reasons.strip()),
            )
            there = set(skills_by_slug(self._stored.all()))
            there |= {slug_of(each.name) for each in self.list() if each.status in _OPEN}
            proposed = []
            for requirement in approved.requires:
                slug, _ = parse_requirement(requirement)
                if slug not in there:
                    there.add(slug)
                    topic = slug.replace("-", " ")
                    proposed.append(
                        self.propose(topic, name=slug, parent=approved.proposal_id, submitted=True)
                    )
        return SkillApproval(approved, tuple(proposed))

    def _move(
        self,
        id_: str,
        allowed: Sequence[ProposalStatus],
        status: ProposalStatus,
        *,
        reviewer: str = "",
        reasons: str = "",
    ) -> SkillProposal:
        self._skills.require_writable()
        found = self.find(id_)
        _require_status(found, allowed, status)
        changed = replace(
            found,
            status=status,
            updated_at=self._skills.clock(),
            reviewer=reviewer or found.reviewer,
            reasons=reasons or found.reasons,
        )
        with self._skills.ledger.transaction():
            self._stored.proposals.save(changed)
            self._skills.note(f"proposal {status.replace('_', ' ')}", changed.proposal_id)
        return changed

    def expire(self) -> int:
        """Mark the proposals as expired that were not reviewed in time; return how many."""
        self._skills.require_writable()
        now = self._skills.clock()
        due = self._stored.proposals.select(
            "status IN ('draft', 'submitted') AND expires_at <= ?", to_text(now)
        )
        self._stored.proposals.save(*(replace(e, status="expired", updated_at=now) for e in due))
        return len(due)

    def create(self, id_: str, content: str = "") -> CreatedSkill:
        """Make the skill of an approved proposal, active, with its first version.

        Args:
            id_: The proposal.
            content: The text of the skill; by default the draft of the proposal.

        Raises:
            AccessRefused: An agent acts.
            UsageError: It has not been approved, or there is a skill of that name.
        """
        self._skills.require_person("make a skill of a proposal")
        proposal = self.find(id_)
        _require_status(proposal, ("approved",), "created")
        text = checked_skill_text(self._skills.clean(content or proposal.content).encode("utf-8"))
        draft = parse_skill(text, proposal.name, f"proposal {proposal.proposal_id}")
        draft = replace(
            draft,
            description=draft.description or proposal.description,
            category=draft.category or proposal.category,
            requires=draft.requires or proposal.requires,
        )
        if self._stored.find_by_name(draft.name):
            raise UsageError(
                f"there is a skill called {draft.name!r}", "give a text with another name"
            )
        with self._skills.ledger.transaction():
            self._move(id_, ("approved",), "created")
            skill = replace(self._skills.new_skill(draft, "active"), status="active")
            self._skills.write_new(skill, draft, f"from proposal {proposal.proposal_id}")
            made = replace(self.find(id_), skill_id=skill.skill_id)
            self._stored.proposals.save(made)
        missing = self._skills.dependencies(skill).missing
        return CreatedSkill(
            proposal.proposal_id, skill.skill_id, skill.slug, 1, skill.requires, missing
        )

    # --- learning --------------------------------------------------------------------------------

    def learn(
        self, word: str | None = None, *, dry_run: bool = False, job: int | None = None
    ) -> Sequence[LearnedVersion]:
        """Propose versions from what the notes of uses say; none of them is active.

        Notes of users other than the one that is named are left out.

        Args:
            word: A skill; by default every active one.
            dry_run: Write nothing.
            job: The job that it is part of, with which the versions are taken back.
        """
        self._skills.require_writable()
        skills = (
            self._stored.select("status = 'active'") if word is None else [self._skills.find(word)]
        )
        learned = (self._learn(skill, job, dry_run=dry_run) for skill in skills)
        return [each for each in learned if each is not None]

    def _learn(self, skill: Skill, job: int | None, *, dry_run: bool) -> LearnedVersion | None:
        versions = self._stored.versions.of(skill.skill_id)
        active = next((e for e in versions if e.number == skill.active_version), None)
        if active is None:
            return None
        since = max(
            (e.created_at for e in versions if e.change_type == "experimental"),
            default=active.created_at,
        )
        notes = dict.fromkeys(
            one_line(use.note)
            for use in reversed(self._stored.uses.of(skill.skill_id))
            if use.note.strip() and use.at > since and use.user_id in (None, self._skills.user)
        )
        latest = tuple(notes)[-_MAX_NOTES:]
        if len(latest) < MIN_NOTES:
            return None
        if dry_run:
            return LearnedVersion(skill.skill_id, skill.slug, None, latest)
        section = "\n".join((LEARNED, "", *(f"- {note}" for note in latest), ""))
        content = f"{active.content.rstrip()}\n\n{section}"
        notes_of = f"from the notes of {len(latest)} uses"
        with self._skills.ledger.transaction():
            version = self._skills.add_version(skill.skill_id, content, "experimental", notes_of)
            if job is not None:
                number, at = json.dumps(version.number), version.created_at
                repair = SkillRepair(job, skill.skill_id, "version", "null", number, "", at)
                self._stored.repairs.save(repair)
        return LearnedVersion(skill.skill_id, skill.slug, version.number, latest)


def _require_status(
    proposal: SkillProposal, allowed: Sequence[ProposalStatus], status: ProposalStatus
) -> None:
    """Refuse to move a proposal on that is not where it would have to be."""
    if proposal.status not in allowed:
        raise UsageError(
            f"proposal {proposal.proposal_id} is {proposal.status.replace('_', ' ')}",
            f"only one that is {' or '.join(allowed).replace('_', ' ')} becomes"
            f" {status.replace('_', ' ')}",
        )


def _frequent_words(hits: Iterable[Hit], topic: str) -> Sequence[str]:
    """Return the words that stand in most of some passages, and not in the topic."""
    dull = load_language("en").stop_words | set(map(str.lower, _WORD.findall(topic)))
    counts: Counter[str] = Counter()
    for hit in hits:
        counts.update(
            {w for w in map(str.lower, _WORD.findall(f"{hit.title} {hit.text}")) if w not in dull}
        )
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    return [word for word in ranked if counts[word] > 1 or len(counts) < 20][:_FREQUENT_WORDS]


class _Statement(Struct, frozen=True):
    """What a passage says on a topic."""

    text: str
    source: str
    shared: int
    """How many words of the topic it has."""

    @property
    def is_step(self) -> bool:
        """Whether it says that something is to be done, or in which order."""
        return _STEP.search(self.text) is not None


def _statements(hits: Iterable[Hit], topic: str) -> list[_Statement]:
    """Return what passages say on a topic, sentence by sentence, without headings and marks.

    What follows a step belongs to it.
    """
    wanted, found = set(terms(topic)), dict[str, _Statement]()
    for hit in hits:
        text, follows_step = without_wikilinks(hit.text), False
        for start, end in split_sentences(text):
            sentence = one_line(text[start:end])
            if sentence.startswith("#"):
                continue
            while (shorter := _LINE_MARK.sub("", sentence, count=1)) != sentence:
                sentence = shorter
            shared = len(wanted & set(terms(sentence)))
            statement = _Statement(sentence[:_LONGEST_STATEMENT], _hit_name(hit), shared)
            if shared or statement.is_step or follows_step:
                found.setdefault(sentence.casefold(), statement)
            follows_step = statement.is_step
    return list(found.values())[:_MAX_STATEMENTS]


def _task(topic: str) -> str:
    """Return what is to be done, of a topic that may be put as a question."""
    task = _ASKING.sub("", topic, count=1).rstrip(" ?!.") or topic
    return task[:1].upper() + task[1:]


def _description(task: str, known: Sequence[_Statement]) -> str:
    """Return what a skill is for, and the statement that has most to do with it."""
    best = max(known, key=lambda each: each.shared, default=None)
    return f"{task}." if best is None or not best.shared else f"{task}. {best.text}"


def _finding(hit: Hit) -> str:
    if hit.document_id is None:
        return f"memory: {one_line(hit.text)[:_LONGEST_NAME]}"
    return f"document: {_hit_name(hit)}"


def _hit_name(hit: Hit) -> str:
    return one_line(hit.title or hit.source or hit.memory_id)[:_LONGEST_NAME]


class _FrontMatter(Struct, frozen=True):
    """What stands before the text of a draft."""

    name: str
    description: str
    category: str
    requires: Sequence[str]
    tags: Sequence[str]

    def lines(self) -> Iterator[str]:
        """Yield it as YAML."""
        yield f"name: {_quote(self.name)}"
        yield f"description: {_quote(self.description)}"
        yield "metadata:"
        yield f"  category: {self.category}"
        for name, values in (("requires", self.requires), ("tags", self.tags)):
            if values:
                yield f"  {name}: {_quote(', '.join(values))}"


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _draft(front: _FrontMatter, known: Sequence[_Statement], alike: Sequence[SkillHit]) -> str:
    """Return the text of a skill for a person to finish: steps, what is known, and what is near."""
    lines = ["---", *front.lines(), "---", "", f"# {front.name}", "", front.description, ""]
    steps = [each for each in known if each.is_step]
    facts = [each for each in known if not each.is_step]
    if steps:
        numbered = (f"{n}. {each.text} ({each.source})" for n, each in enumerate(steps, start=1))
        lines += ["## Steps", "", *numbered, ""]
    if facts:
        lines += ["## What is known", "", *(f"- {each.text} ({each.source})" for each in facts), ""]
    if not known:
        lines += ["Nothing is known of this yet: say here what is to be done, step by step.", ""]
    if alike:
        near = (f"- {hit.slug}: {one_line(hit.description)}" for hit in alike)
        lines += ["## Skills that are near", "", *near, ""]
    return "\n".join(lines)
