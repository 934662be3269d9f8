"""PDF files: their pages, properties and the layout of their text."""
