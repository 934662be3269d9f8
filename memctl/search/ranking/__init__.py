"""Ranking:

scores fused, signals added, duplicates folded, hits diversified and reranked. Never knows how an
answer is worded.
"""
