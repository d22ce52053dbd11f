"""The shipped tables of facts (data/*.csv) and how a name finds its row."""
