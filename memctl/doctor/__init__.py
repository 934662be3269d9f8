"""Checks every layer of what is on disk, repairs it, and rebuilds derived data.

It looks at every layer and belongs to none: nothing below the command line imports it.
"""
