"""The life of stored rows:

how one row depends on another, and what becomes of it when that one is superseded, ended or
erased. Knows nothing of files, models or questions.
"""
