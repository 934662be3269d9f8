"""Query analysis: a question's text becomes terms, required syntax, dates and periods.

It never reads which memories match, and never ranks them.
"""
