"""Asks a provider on the network: within bounds, from a cache, never again too soon after a failure."""
