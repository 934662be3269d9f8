"""Conversations as objects: begun, carried on turn by turn, summarised, archived and ended.

What is said is durable in the ledger at once; the tables get it in few commits, at the latest
before anything is read from them.
"""
