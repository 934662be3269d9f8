"""A question becomes hits, context and an answer."""
