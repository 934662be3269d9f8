"""Memory as a server: the Model Context Protocol over standard input and output.

Offers the operations of ``memctl.operations`` and adds none of its own.
"""
