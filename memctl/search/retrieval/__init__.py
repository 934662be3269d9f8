"""Retrieval: candidates from keyword and vector search, each scored exactly.

It never knows how candidates are ranked or shown.
"""
