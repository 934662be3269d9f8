"""Text becomes structure: language, names, dates, keywords, statements, a gist."""
