"""The hub: one process that owns the store and serves the dashboard and the API."""
