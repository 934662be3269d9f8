"""Ranking: scores are fused, signals added, duplicates folded, hits reranked and diversified.

It never knows how an answer is worded.
"""
