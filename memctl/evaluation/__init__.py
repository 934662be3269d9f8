"""How well questions with known evidence are answered: asked, scored, compared, and written."""
