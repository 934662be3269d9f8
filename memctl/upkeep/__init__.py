"""What keeps a knowledge base in order by itself: jobs, when each is due, and what it came to."""
