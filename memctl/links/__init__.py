"""Links between documents: what links where, what is linked to in vain, and what is related.

All of it is worked out from the documents as they are; nothing is stored.
"""
