"""SQL over recorded runs: their tables as DuckDB views, and the answer in the format that is wanted."""
