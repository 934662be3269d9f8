"""Memories become insights; nothing is deleted here."""
