"""Retrieval:

candidates from keyword and vector search, with the corpus statistics they are scored by. Never
knows how candidates are ranked or shown.
"""
