"""Serving engines: what their metrics pages say, as rows of a batch."""
