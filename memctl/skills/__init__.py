"""Skills of agents: versioned texts that are found by what they do and judged by how they do.

Knows what a skill is, requires and conflicts with; never runs one, and never knows how a question
is answered.
"""
