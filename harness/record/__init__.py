"""What a run leaves behind: its directory, run.json and the Parquet tables; writing and reading them."""
