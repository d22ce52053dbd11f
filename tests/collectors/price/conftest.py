"""The server, the clock and the samples that the tests of grid providers have."""

from tests.collectors.grid.conftest import clock, http, played, sample

__all__ = ["clock", "http", "played", "sample"]
