"""Search: from a question to hits, and from hits to an answer or a context.

``query`` analyzes the question, ``retrieval`` finds candidates, ``ranking`` orders them, and
``answering`` draws answers from them; ``searcher`` runs the steps.  Search reads snapshots and
never writes; it knows nothing of how documents came in or of who is asking.
"""
