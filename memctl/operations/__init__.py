"""What a caller can ask for, declared once: the registry that every surface for programs offers.

``registry.OPERATIONS`` is the list; ``tool_calls`` gives it to models and carries out their calls.
Nothing here knows a command line, a protocol or how a table is stored.
"""
