"""What measures: GPUs, engines, grids, prices and benchmark result files. Never imports `app`."""
