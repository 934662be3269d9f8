"""Plain text, logs, reStructuredText, source code and conversations written down as text."""
