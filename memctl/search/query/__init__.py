"""Query analysis:

a question's text becomes terms, syntax, dates and times to look for. Never reads memories or
ranks them.
"""
