"""Answering: hits become an answer with citations, or a context within a token budget.

It never looks for more candidates.
"""
