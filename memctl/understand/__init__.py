"""Text becomes structure."""
