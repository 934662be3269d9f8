"""Knowledge bases, users, settings, models and the processes that serve them."""
