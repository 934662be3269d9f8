"""Words of a question that a memory which answers it need not have."""

from __future__ import annotations

from memctl.understand.terms import query_terms

UNTOLD = frozenset(
    query_terms(
        """say tell ask answer reply suggest propose recommend mention remind invite offer share
        inform announce discuss initiate start begin explain describe express claim think believe
        feel want wish like love enjoy prefer agree plan hope
        do make have get give take put go come become happen use keep hold let be bring show see
        look find know need help try talk speak meet call name title kind type part reason purpose
        idea opinion thought advice feedback view goal topic thing way time day person people
        someone everybody first last next new favorite favourite best main current"""
    )
)
"""Words that a memory which answers need not have: of saying, of doing anything at all."""
