"""The one tree of errors a person may see.

WattmixError                 their side can mend it: exit code 2, HTTP 4xx, never a traceback
├── ConfigError              a file of settings: names file, key, value given, values accepted
│   └── DemandError          the same for a demand file or the body of a split request
├── ImportFileError          a path or file that cannot be imported
├── UnknownName              a model, fleet, GPU, zone or page that does not exist here
├── MissingPart              a part of the product that is not installed: says what to install
├── StoreError               the DuckDB file
│   ├── StoreBusy            another process owns it: names the pid
│   └── StoreSchemaError     written by a newer Wattmix, or not a Wattmix store
├── BatchRefused             a batch of samples with a value that cannot be stored
├── DeliveryError            a report that could not be written: names the file and what the system said
├── Overloaded               the hub has more to write than it can: come back later
├── BodyTooLarge, WrongContentType, BadParameter    a request that is not of the API's form
├── NotAllowed               no token, or an unknown one
│   └── Forbidden            a token, or a place, that may not do this
├── HubError                 the hub did not start, or did not answer as it should
└── SolverError              HiGHS gave no answer
"""

from __future__ import annotations


class WattmixError(Exception):
    """Base of everything a person is told. `str(error)` says what, where and what to do."""

    exit_code = 2
    http_status = 400


class ConfigError(WattmixError):
    pass


class DemandError(ConfigError):
    http_status = 422


class ImportFileError(WattmixError):
    http_status = 422


class UnknownName(WattmixError):
    http_status = 404


class MissingPart(WattmixError):
    http_status = 501


class StoreError(WattmixError):
    http_status = 503


class StoreBusy(StoreError):
    """pid: the process that holds the file, where the system tells it."""

    def __init__(self, message: str, pid: int | None = None) -> None:
        super().__init__(message)
        self.pid = pid


class StoreSchemaError(StoreError):
    pass


class BatchRefused(WattmixError):
    http_status = 422


class DeliveryError(WattmixError):
    http_status = 503


class Overloaded(WattmixError):
    """retry_after_s: when to come back."""

    http_status = 503
    retry_after_s = 5


class BodyTooLarge(WattmixError):
    http_status = 413


class WrongContentType(WattmixError):
    http_status = 415


class BadParameter(WattmixError):
    pass


class NotAllowed(WattmixError):
    http_status = 401


class Forbidden(NotAllowed):
    http_status = 403


class HubError(WattmixError):
    http_status = 502


class SolverError(WattmixError):
    http_status = 503
