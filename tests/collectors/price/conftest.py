"""The server, the clock and the samples that the tests of all providers have."""

from tests.collectors.http.conftest import clock, http, played, sample

__all__ = ["clock", "http", "played", "sample"]
