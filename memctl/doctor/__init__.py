"""Is what is on disk whole, and if not, how it is put right: checks, repair and rebuilding.

It looks at every layer and belongs to none: nothing below the command line imports it.
"""
