"""What a knowledge base holds: documents, memories, links, names, and how they come and go."""
