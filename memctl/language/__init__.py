"""What depends on the language of a text:

word lists, terms, sentences and dates. Knows nothing of files, memories and searches.
"""
