"""Importers of load-test result files: each turns a file into `BenchmarkRun`s or says in words why not."""
