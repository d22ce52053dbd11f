"""Reports: the account of a window as a CSV file, once or on a schedule."""
