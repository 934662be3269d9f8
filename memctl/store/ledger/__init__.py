"""What is going on in a knowledge base, in SQLite, and which versions of the tables count.

Knows nothing of what the rows hold.
"""
