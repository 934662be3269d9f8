"""The commands, one module for each noun, in a package for each theme.

A module declares options, calls the layers below and prints what they return.
"""
