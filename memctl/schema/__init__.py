"""What the tables are made of: names, columns, references, indexes and schema versions.

Knows neither files nor the engine.  A new column is a field with a default in a table's record; a
new table is an entry in ``declarations`` and its name in ``table_names``.  Both take an entry in
``migrations``.
"""
