"""The daemon: inbox folders in, memories out."""
