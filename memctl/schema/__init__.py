"""What the tables are made of:

names, columns, Arrow types, references and migrations. Knows neither files nor engine.
"""
