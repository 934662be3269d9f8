"""Evaluation: question sets with known evidence are written, asked, scored and compared."""
