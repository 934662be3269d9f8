"""Models behind small protocols: built in, or any OpenAI-compatible endpoint. Only this room knows model files."""
