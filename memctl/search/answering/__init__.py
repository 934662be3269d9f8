"""Answering:

hits become evidence sentences, an answer with citations, or a context within a token budget.
Never looks for more candidates.
"""
