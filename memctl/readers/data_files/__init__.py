"""Tables and nested values: CSV, JSON, JSON lines and YAML."""
