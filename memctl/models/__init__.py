"""Models behind small protocols, built in or behind an endpoint.

The only room that knows model files.
"""
