"""The commands, one module for each noun.

A module declares options, calls the layers below and prints what they return.
"""
