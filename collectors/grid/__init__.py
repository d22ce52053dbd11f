"""Carbon intensity of grids: what providers say about a zone and a time, as points that carry their method."""
