"""Tables, ledger and locks; the only room that knows LanceDB, DuckDB and SQLite."""
