"""What agents work with: sessions, values, pools, skills, tools and hooks."""
