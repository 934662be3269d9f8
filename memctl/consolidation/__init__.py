"""What several memories say together: groups become insights with sources and connections."""
