"""Keeping knowledge bases in order, and seeing how they are."""
