"""Two knowledge bases become one, or are compared: nothing of either is lost."""
