"""What to run where: the split of demand over fleets. Pure: runs, prices and factors are passed in."""
