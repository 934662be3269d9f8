"""Whether the tables' files are whole, and what to do when they are not:

checksums, inspection, rescue and repair.
"""
