"""What commands print.

Output formats, answers, progress and text that is safe on a terminal. It knows nothing of how
commands are declared.
"""
