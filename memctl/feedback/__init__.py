"""Judgements of answers and conversations, what follows from them, and variants of prompts."""
