"""Documents become memories."""
