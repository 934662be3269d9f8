"""memctl: the memory that a person or an AI agent keeps on their own disk."""

__version__ = "0.1.0"
