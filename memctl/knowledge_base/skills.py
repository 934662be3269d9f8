"""Skills of a knowledge base, wired: registry, conflicts, proposals and advice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from memctl.accounts import Accounts
from memctl.identity import owner_of
from memctl.knowledge_base.resources import Part
from memctl.records import Hit

if TYPE_CHECKING:
    from memctl.skills.skill_advice import SkillGap, SkillSuggestion, TeamCoverage
    from memctl.skills.skill_conflicts import SkillConflicts
    from memctl.skills.skill_context import SkillContext
    from memctl.skills.skill_proposals import SkillProposals
    from memctl.skills.skill_registry import Skills
    from memctl.store.ledger.log_repositories import QueryEntry

_OPEN_PROPOSALS = ("submitted", "under_review", "approved")


class SkillGraph(Part):
    """The skills of one knowledge base, and all that can be asked of them."""

    def acting_as(
        self,
        agent: str | None = None,
        *,
        session: str | None = None,
        now: datetime | None = None,
    ) -> Skills:
        """Return the skills as an agent or a person sees them.

        Args:
            agent: The agent that acts; by default the one that the environment names, if any.
            session: The conversation; by default that of the environment.
            now: The present instant; by default as the clock has it.
        """
        from memctl.skills.skill_registry import Skills

        kb, config = self._kb, self._kb.program_config
        return Skills(
            kb.store.ledger,
            kb.clock if now is None else lambda: now,
            lambda: kb.services.embedder,
            agent=agent or config.agent,
            user=config.user,
            session=session or config.session,
            redact=kb.settings.redact,
            require_writable=kb.require_writable,
        )

    def conflicts(self, agent: str | None = None, now: datetime | None = None) -> SkillConflicts:
        """Return what finds and settles conflicts among the skills."""
        from memctl.skills.skill_conflicts import SkillConflicts

        return SkillConflicts(self.acting_as(agent, now=now))

    def proposals(self, agent: str | None = None, now: datetime | None = None) -> SkillProposals:
        """Return what proposes skills and reviews proposals."""
        from memctl.skills.skill_proposals import SkillProposals

        return SkillProposals(self.acting_as(agent, now=now), self._nearest)

    def context(
        self,
        word: str,
        *,
        task: str | None = None,
        budget: int | None = None,
        agent: str | None = None,
    ) -> SkillContext:
        """Return a skill for a run: its text, and what bears on it, within a budget of tokens.

        Args:
            word: The skill: its id, slug or name.
            task: What it is to be used for.
            budget: Most tokens.
            agent: The agent that asks.

        Raises:
            NotFoundError: There is no such skill.
        """
        from memctl.models.protocols import estimate_tokens
        from memctl.skills.skill_context import DEFAULT_BUDGET, skill_context

        skills = self.acting_as(agent)
        return skill_context(
            skills,
            word,
            task=task,
            budget=DEFAULT_BUDGET if budget is None else budget,
            count=estimate_tokens,
            conflicts=self.conflicts(agent).list(skill=skills.find(word).skill_id),
            memories=self._memories,
        )

    def suggestions(self, now: datetime | None = None) -> Sequence[SkillSuggestion]:
        """Return what might be done about the skills."""
        from memctl.skills.skill_advice import suggestions

        return suggestions(self.acting_as(now=now))

    def gaps(self, now: datetime | None = None) -> list[SkillGap]:
        """Return what no skill is for, for each team."""
        from memctl.skills.skill_advice import gaps

        return gaps(self.acting_as(now=now), self._teams(), self._questions())

    def coverage(self, now: datetime | None = None) -> list[TeamCoverage]:
        """Return the categories that the agents of each team have skills for."""
        from memctl.skills.skill_advice import coverage

        proposals = self.proposals(now=now).list()
        topics = [(e.topic, e.category) for e in proposals if e.status in _OPEN_PROPOSALS]
        return coverage(self.acting_as(now=now), self._teams(), topics)

    # --- inside ----------------------------------------------------------------------------------

    def _nearest(self, topic: str, limit: int) -> Sequence[Hit]:
        """Passages on a topic that are no user's own: a skill is open to all who read here."""
        kb = self._kb
        names, private = kb.program_config.namespaces, kb.settings.private_namespaces
        found = kb.queries.query(topic, limit=limit, answer=False, log=False).hits
        return [
            hit
            for hit in found
            if owner_of(names, hit.namespace) is None and hit.namespace not in private
        ]

    def _memories(self, text: str, limit: int) -> Sequence[Hit]:
        return self._kb.queries.query(text, limit=limit, answer=False, log=False).hits

    def _teams(self) -> Mapping[str, tuple[str, ...]]:
        teams = Accounts(self._kb.program_config).teams()
        return {each.name: each.agents for each in teams}

    def _questions(self) -> list[QueryEntry]:
        """Return the logged questions that the acting user may see."""
        entries = self._kb.store.ledger.queries.all()
        return [entry for entry in entries if self._kb.query_log.is_open(entry)]
