"""The DuckDB file: schema, writes and reads. SQL lives here and nowhere else."""
