"""Markdown, web pages and XML."""
