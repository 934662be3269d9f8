"""Single memories and documents: looked at with evidence and history, added, edited, forgotten."""
