"""Asking, and judging what came of it."""
