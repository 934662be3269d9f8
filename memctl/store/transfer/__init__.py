"""Rows leave for other programs, and a whole knowledge base leaves and comes back as it was."""
