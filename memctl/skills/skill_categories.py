"""Which of the categories a skill belongs to, by the words of its name and description.

Knows word lists alone; a category that a file names is never doubted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cache

from memctl.language.term_analysis import terms
from memctl.literals import SkillCategory

_NAME_WEIGHT = 3
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
    " wiki reference guide",
    "analysis": "analyse analyze analysis statistics metric chart insight trend evaluate compare"
    " report spreadsheet",
    "communication": "email mail message reply letter chat announce newsletter meeting notify"
    " slack translate tone",
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
    for text, weight in ((name, _NAME_WEIGHT), (description, 1)):
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
