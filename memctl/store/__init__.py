"""Tables, filters, indexes, ledger, snapshots and repair.

The only room that knows LanceDB and SQLite.  Importing this package costs nothing: the modules
that need the database are imported by the code that opens one.
"""
