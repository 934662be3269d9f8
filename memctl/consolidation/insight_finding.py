"""Insights without a model: all finders over all statements, the best of what they find."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING

from memctl.consolidation.bridges import find_bridges
from memctl.consolidation.changes import find_changes
from memctl.consolidation.findings import Finding
from memctl.consolidation.followups import find_open
from memctl.consolidation.recurrences import find_recurrences
from memctl.consolidation.statements import StemWeights, read_statements
from memctl.consolidation.totals import find_totals

if TYPE_CHECKING:
    from memctl.consolidation.insight_drafts import Draft
    from memctl.store.store import Snapshot

_FINDERS = (find_changes, find_totals, find_open, find_recurrences, find_bridges)
_ALWAYS, _DOCUMENTS_EACH, _MOST = 3, 4, 12
"""So many insights are always made, one more for so many documents, and this many at most."""
_MOST_OF_A_SOURCE = 3


def find_insights(snapshot: Snapshot, now: datetime) -> list[Draft]:
    """Return what follows from the statements of a knowledge base, what matters most first."""
    found = read_statements(snapshot, now)
    weights = StemWeights(found)
    findings = [finding for find in _FINDERS for finding in find(found, weights)]
    room = min(_ALWAYS + len({each.document for each in found}) // _DOCUMENTS_EACH, _MOST)
    return [finding.draft() for finding in _best(findings, room)]


def _best(findings: list[Finding], room: int) -> list[Finding]:
    """Return the strongest, of which no statement says two and no source too many."""
    told: set[tuple[str, str]] = set()
    of_source: Counter[str] = Counter()
    of_kind: Counter[str] = Counter()
    best: list[Finding] = []
    for finding in sorted(findings, key=lambda each: (-each.strength, each.headline)):
        said = {(each.document, each.text) for each in finding.evidence}
        documents = {each.document for each in finding.evidence}
        if len(said & told) > len(said) / 2 or of_kind[finding.kind] > room / 2:
            continue
        if any(of_source[each] >= _MOST_OF_A_SOURCE for each in documents):
            continue
        told |= said
        of_source.update(documents)
        of_kind[finding.kind] += 1
        best.append(finding)
        if len(best) == room:
            break
    return best
