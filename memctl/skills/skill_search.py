"""Which skills fit a text, by meaning and by words; and which category fits a skill, by its words.

A category that a file names is never doubted.
"""

from __future__ import annotations

import base64
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from memctl.language.term_analysis import query_terms, terms
from memctl.literals import SkillCategory
from memctl.records import record_like
from memctl.skills.skill_files import digest
from memctl.skills.skill_views import SkillHit, SkillView
from memctl.store.ledger.skill_repositories import Skill

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memctl.models.protocols import Embedder
    from memctl.store.ledger.ledger import Ledger

_NAME_WEIGHT = 2.0
_MIN_RELEVANCE = 0.15
_HEALTH_SHARE = 0.3
"""How much of a skill's rank its health decides."""


class SkillMatcher:
    """Compares skills with texts, and with each other.

    Args:
        ledger: Where the vectors of skills are kept.
        embedder: Gives what makes vectors of names and descriptions.
    """

    def __init__(self, ledger: Ledger, embedder: Callable[[], Embedder]) -> None:
        self._ledger = ledger
        self._embedder = embedder

    def rank(
        self,
        text: str,
        skills: Sequence[Skill],
        views: Sequence[SkillView],
        limit: int,
        assignments: Mapping[str, bool],
    ) -> Sequence[SkillHit]:
        """Return the skills that fit a text, the best and healthiest first.

        Args:
            text: What is to be done.
            skills: Among which.
            views: The same ones as they are shown.
            limit: At most this many.
            assignments: The ids of those that the agent that asks has.
        """
        meaning = self._meaning(text, skills)
        words = _word_scores(text, skills)
        found = []
        for view, near, word_score in zip(views, meaning, words, strict=True):
            relevance = 0.5 * max(0.0, near) + 0.5 * word_score
            if relevance >= _MIN_RELEVANCE:
                score = relevance * (1 - _HEALTH_SHARE + _HEALTH_SHARE * view.health)
                found.append((score, relevance, view))
        found.sort(key=lambda each: (-each[0], each[2].slug, each[2].skill_id))
        return [
            record_like(
                SkillHit,
                view,
                rank=rank,
                score=round(score, 4),
                relevance=round(relevance, 4),
                is_assigned=view.skill_id in assignments,
            )
            for rank, (score, relevance, view) in enumerate(found[:limit], start=1)
        ]

    def _meaning(self, text: str, skills: Sequence[Skill]) -> Sequence[float]:
        from memctl.models.vector_math import dot_products

        vectors = self.vectors(skills)
        (vector,) = self._embedder().embed([text])
        return [float(each) for each in dot_products(vectors, vector)]

    def vectors(self, skills: Sequence[Skill]) -> NDArray[np.float32]:
        """Return the vectors of names and descriptions; what is not kept yet is made and kept."""
        import numpy as np

        embedder = self._embedder()
        texts = [f"{each.name}\n{each.description}" for each in skills]
        keys = [f"{embedder.id} {digest(text.encode('utf-8', 'replace'))[:24]}" for text in texts]
        stale = [n for n, skill in enumerate(skills) if skill.vector_of != keys[n]]
        made = embedder.embed([texts[n] for n in stale]) if stale else ()
        fresh = {n: vector.astype(np.float16) for n, vector in zip(stale, made, strict=True)}
        if fresh and self._ledger.is_writable:
            self._ledger.skills.set_vectors(
                (skills[n].skill_id, base64.b64encode(vector.tobytes()).decode("ascii"), keys[n])
                for n, vector in fresh.items()
            )
        rows = [
            fresh[n]
            if n in fresh
            else np.frombuffer(base64.b64decode(skill.vector), dtype=np.float16)
            for n, skill in enumerate(skills)
        ]
        return np.asarray(rows, dtype=np.float32)

    def description_similarities(
        self, skills: Sequence[Skill], pairs: Sequence[tuple[int, int]]
    ) -> Mapping[tuple[int, int], float]:
        """Return the cosine of the descriptions alone of some pairs of skills, by their places."""
        places = sorted({place for pair in pairs for place in pair})
        if not places:
            return {}
        vectors = self._embedder().embed([skills[place].description for place in places])
        rows = dict(zip(places, vectors, strict=True))
        return {(one, other): float(rows[one] @ rows[other]) for one, other in pairs}


def _word_scores(text: str, skills: Sequence[Skill]) -> Sequence[float]:
    """Return for each skill how much of a text its words cover; rare words count more."""
    wanted = query_terms(text)
    named = [set(terms(each.name)) for each in skills]
    descriptions = [
        set(terms(" ".join((each.description, *each.tags, each.category.replace("_", " ")))))
        for each in skills
    ]
    counts = Counter(
        term for one, other in zip(named, descriptions, strict=True) for term in one | other
    )
    weight = {term: math.log(1 + len(skills) / (0.5 + counts[term])) for term in wanted}
    total = sum(weight.values()) * _NAME_WEIGHT or 1.0
    return [
        sum(
            weight[term] * (_NAME_WEIGHT if term in name else 1.5 if term in words else 0.0)
            for term in wanted
        )
        / total
        for name, words in zip(named, descriptions, strict=True)
    ]


# --- categories -----------------------------------------------------------------------------------

_CATEGORY_NAME_WEIGHT = 3
"""A word of the name counts as much as this many of the description."""
FALLBACK: SkillCategory = "operations"
_WORDS: Mapping[SkillCategory, str] = {
    "code_generation": "generate code implement scaffold boilerplate snippet function class"
    " program write programming codegen template compiler",
    "code_review": "review reviewer pull request diff critique feedback approve style lint",
    "testing": "test tests unit coverage assertion fixture regression pytest mock e2e acceptance",
    "debugging": "debug bug trace traceback stack crash reproduce breakpoint diagnose fault",
    "deployment": "deploy deployment release rollout kubernetes helm ship production rollback"
    " cluster canary publish",
    "documentation": "document documentation docs readme docstring changelog manual tutorial"
    " wiki reference guide write article minutes handbook",
    "analysis": "analyse analyze analysis statistics metric chart insight trend evaluate compare"
    " report spreadsheet",
    "communication": "email mail message reply letter chat announce newsletter meeting notify"
    " slack translate tone write minutes invitation",
    "planning": "plan planning schedule roadmap estimate milestone agenda prioritise prioritize"
    " backlog timetable",
    "research": "research literature survey source cite citation paper investigate search study"
    " interview",
    "data_processing": "data csv parse convert clean transform etl table json extract dataset"
    " import columns",
    "security": "security secret vulnerability audit permission encrypt threat password"
    " authentication hardening exploit token",
    "monitoring": "monitor monitoring alert dashboard log logging observability uptime probe"
    " healthcheck prometheus",
    "optimization": "optimise optimize optimization performance speed faster latency memory cache"
    " profile profiling bottleneck",
    "integration": "integrate integration api webhook connector sync client endpoint sdk oauth"
    " bridge",
    "automation": "automate automation script workflow cron trigger bot batch recurring macro",
    "design": "design ui ux layout color colour typography wireframe mockup css figma brand",
    "architecture": "architecture architect module component diagram adr pattern service"
    " boundaries decouple domain",
    "project_management": "project ticket issue sprint stakeholder status kanban jira standup"
    " retrospective deadline",
    "devops": "devops ci pipeline docker container terraform ansible infrastructure build runner"
    " provisioning registry",
    "operations": "operate operations incident runbook backup restore maintenance oncall server"
    " capacity upgrade",
}


@cache
def _categories_by_term() -> Mapping[str, tuple[SkillCategory, ...]]:
    found: dict[str, list[SkillCategory]] = {}
    for category, words in _WORDS.items():
        for term in dict.fromkeys(terms(words)):
            found.setdefault(term, []).append(category)
    return {term: tuple(categories) for term, categories in found.items()}


def infer_category(name: str, description: str) -> tuple[SkillCategory, float]:
    """Return the category whose words fit best, and how well, from 0 to 1.

    A word of several categories counts less for each; where no word fits, it is operations with 0.
    """
    weights: Counter[str] = Counter()
    for text, weight in ((name, _CATEGORY_NAME_WEIGHT), (description, 1)):
        for term in dict.fromkeys(terms(text)):
            weights[term] += weight
    scores: Counter[SkillCategory] = Counter()
    known = _categories_by_term()
    for term, weight in weights.items():
        categories = known.get(term, ())
        for category in categories:
            scores[category] += weight * 6 // len(categories)
    if not scores:
        return FALLBACK, 0.0
    order = list(_WORDS)
    best = min(scores, key=lambda each: (-scores[each], order.index(each)))
    return best, scores[best] / sum(scores.values())
