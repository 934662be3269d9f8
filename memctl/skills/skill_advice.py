"""What could be better about a collection of skills: suggestions, gaps, and coverage of teams."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import get_args

from msgspec import Struct

from memctl.language.term_analysis import terms
from memctl.literals import SkillCategory
from memctl.skills.skill_registry import Skills
from memctl.store.ledger.log_repositories import QueryEntry

UNUSED_DAYS = 90
MIN_USES, MIN_SUCCESS = 10, 0.5
SHORTEST_DESCRIPTION = 40
_MIN_QUESTIONS = 2
_COVERING_RELEVANCE = 0.5
"""Relevance from which a skill counts as one for a topic."""
_ALL_AGENTS = "all agents"


class SkillSuggestion(Struct, frozen=True):
    """Something that a person might do about a skill."""

    skill_id: str
    slug: str
    kind: str
    """``deprecate``, ``revise``, ``activate`` or ``extend``."""
    text: str
    command: str


class SkillGap(Struct, frozen=True):
    """Something that no skill is for."""

    team: str
    kind: str
    """``topic`` of questions without an answer, or ``category``."""
    name: str
    questions: tuple[str, ...] = ()
    weight: int = 0
    """How many questions there were."""


class TeamCoverage(Struct, frozen=True):
    """What the agents of a team can do."""

    team: str
    agents: tuple[str, ...]
    skills: int
    covered: Mapping[str, int]
    """Categories with how many active skills the team has of each."""
    lacking: tuple[str, ...]
    """Categories without one."""
    coverage: float
    proposed: tuple[str, ...]
    """Topics of open proposals in categories that are lacking."""


def suggestions(skills: Skills) -> list[SkillSuggestion]:
    """Return what might be done about skills, each with the command that does it."""
    now = skills.clock()
    found = []
    clear = {each.skill_id: each for each in skills.evolution() if each.is_clear}
    for view in skills.list(status="active"):
        slug = view.slug
        last = view.last_used_at or view.updated_at
        versions = skills.versions(view.skill_id)
        successes = sum(each.successes for each in versions)
        if now - last >= timedelta(days=UNUSED_DAYS):
            days = (now - last).days
            found.append(
                _suggestion(
                    view.skill_id, slug, "deprecate", f"unused for {days} days", "deprecate"
                )
            )
        if view.uses >= MIN_USES and successes / view.uses < MIN_SUCCESS:
            reason = f"{successes} of {view.uses} uses went well: revise it"
            found.append(_suggestion(view.skill_id, slug, "revise", reason, "version add"))
        better = clear.get(view.skill_id)
        active = {each.number for each in versions if each.is_active}
        if better is not None and better.better is not None and active != {better.better}:
            reason = (
                f"version {better.better} does better: {better.older_success:.0%} with"
                f" {better.older}, {better.newer_success:.0%} with {better.newer}"
            )
            command = f"memctl skill version activate {slug} {better.better}"
            found.append(SkillSuggestion(view.skill_id, slug, "activate", reason, command))
        if len(view.description) < SHORTEST_DESCRIPTION:
            reason = f"its description has {len(view.description)} characters: extend it"
            found.append(_suggestion(view.skill_id, slug, "extend", reason, "version add"))
    return found


def _suggestion(skill_id: str, slug: str, kind: str, text: str, words: str) -> SkillSuggestion:
    file = " FILE.md" if words == "version add" else ""
    return SkillSuggestion(skill_id, slug, kind, text, f"memctl skill {words} {slug}{file}")


def coverage(
    skills: Skills,
    teams: Mapping[str, Collection[str]],
    open_topics: Iterable[tuple[str, SkillCategory]],
) -> list[TeamCoverage]:
    """Return what each team has skills for; without teams, all agents together.

    Args:
        skills: The skills.
        teams: The agents of each team.
        open_topics: Topic and category of proposals that are open.
    """
    views = skills.list(status="active")
    topics = list(open_topics)
    found = []
    for team, agents in _teams(teams).items():
        own = [each for each in views if agents is None or set(agents) & set(each.agents)]
        counts = Counter(each.category for each in own)
        lacking = tuple(each for each in get_args(SkillCategory) if not counts[each])
        known = agents if agents is not None else {a for each in views for a in each.agents}
        found.append(
            TeamCoverage(
                team=team,
                agents=tuple(sorted(known)),
                skills=len(own),
                covered=dict(sorted(counts.items())),
                lacking=lacking,
                coverage=round(len(counts) / len(get_args(SkillCategory)), 4),
                proposed=tuple(topic for topic, category in topics if category in lacking),
            )
        )
    return found


def _teams(teams: Mapping[str, Collection[str]]) -> Mapping[str, Collection[str] | None]:
    """Return the agents of each team; where there is none, one of everybody."""
    return dict(teams) or {_ALL_AGENTS: None}


def gaps(
    skills: Skills, teams: Mapping[str, Collection[str]], entries: Sequence[QueryEntry]
) -> list[SkillGap]:
    """Return topics that were asked about in vain, and categories without an active skill.

    Args:
        skills: The skills.
        teams: The agents of each team.
        entries: Logged questions that the acting user may see.
    """
    topics = _topics(skills, entries)
    found = [
        SkillGap(team, "topic", name, questions, len(questions))
        for team in _teams(teams)
        for name, questions in topics
    ]
    for each in coverage(skills, teams, ()):
        found += [SkillGap(each.team, "category", name) for name in each.lacking]
    return found


def _topics(skills: Skills, entries: Sequence[QueryEntry]) -> list[tuple[str, tuple[str, ...]]]:
    """Return what questions without an answer were about, where no skill is for it."""
    by_topic: dict[str, dict[str, None]] = {}
    for entry in entries:
        if entry.question and (not entry.found or entry.feedback == "bad"):
            for term in dict.fromkeys(terms(entry.question)):
                by_topic.setdefault(term, {})[entry.question] = None
    counted = sorted(by_topic.items(), key=lambda each: (-len(each[1]), each[0]))
    seen: set[str] = set()
    found = []
    for term, questions in counted:
        new = [question for question in questions if question not in seen]
        if len(new) < _MIN_QUESTIONS:
            continue
        hits = skills.search(" ".join(new)[:500], limit=1)
        if hits and hits[0].relevance >= _COVERING_RELEVANCE:
            continue
        seen.update(new)
        found.append((_written_word(term, new[0]), tuple(new)))
    return found


def _written_word(term: str, question: str) -> str:
    """Return the word of a question that a search term stands for."""
    words = (word.strip(".,;:!?\"'()") for word in question.split())
    return next((word for word in words if term in terms(word)), term)
