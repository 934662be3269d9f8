"""What became of one file: when it was seen, read and remembered, as what, or why not.

It reads what the others wrote down and changes nothing.
"""
