"""Dated facts that money and grams rest on: from when each holds, since when it is known, and from where."""
