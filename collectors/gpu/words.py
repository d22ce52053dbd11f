"""NVML's errors in words that say what to do. NVMLError can be neither hashed nor, in old versions, pickled."""

from __future__ import annotations

UNINITIALIZED, NOT_SUPPORTED, NO_PERMISSION, DRIVER_NOT_LOADED = 1, 3, 4, 9
LIBRARY_NOT_FOUND, FUNCTION_NOT_FOUND, GPU_IS_LOST, RESET_REQUIRED = 12, 13, 15, 16
LIBRARY_MISMATCH, VERSION_MISMATCH, UNKNOWN = 18, 25, 999

# Asking again will not help until the driver or the board changes.
REFUSALS = (2, NOT_SUPPORTED, FUNCTION_NOT_FOUND, VERSION_MISMATCH)
LOSSES = (GPU_IS_LOST, RESET_REQUIRED)

_FIELD_WORDS = {
    2: "the driver does not know it; a newer driver may",
    NOT_SUPPORTED: "not supported by this GPU or driver",
    NO_PERMISSION: "not permitted; run the agent as root or give its container access to the GPU",
    FUNCTION_NOT_FOUND: "the driver is too old to tell; update it",
    UNINITIALIZED: "NVML was shut down; the agent starts it again",
    VERSION_MISMATCH: "the driver is too old to tell; update it",
    GPU_IS_LOST: "the GPU has fallen off the bus; reset it or reboot",
    RESET_REQUIRED: "the GPU needs a reset; run nvidia-smi --gpu-reset or reboot",
    UNKNOWN: "the driver reports an unknown error; see dmesg",
}

_START_WORDS = {
    NO_PERMISSION: "no_permission: NVML may not be used; run the agent as root or give it /dev/nvidia*",
    DRIVER_NOT_LOADED: "no_driver: the NVIDIA kernel module is not loaded; run modprobe nvidia or install the driver",
    LIBRARY_NOT_FOUND: (
        "no_nvml: libnvidia-ml.so.1 was not found; install the NVIDIA driver, in a container set "
        "NVIDIA_DRIVER_CAPABILITIES=utility, or name the file with --nvml-library"
    ),
    FUNCTION_NOT_FOUND: (
        "no_nvml: the library found is not that of an NVIDIA driver (a CUDA stub?); name the right file with "
        "--nvml-library"
    ),
    LIBRARY_MISMATCH: (
        "driver_mismatch: the NVIDIA library and the loaded kernel module are of different versions; reboot or reload "
        "the module"
    ),
    UNKNOWN: (
        "nvml_error: NVML cannot be started (unknown error); a container may have lost /dev/nvidia* after "
        "systemctl daemon-reload: restart it"
    ),
}


def code_of(problem: BaseException) -> int | None:
    """NVML's return code of an exception, or None when it has none."""
    code = getattr(problem, "value", None)
    return code if isinstance(code, int) else None


def why_missing(problem: BaseException) -> str:
    """Why a field is missing and what to do, for a person."""
    code = code_of(problem)
    if code is not None:
        return code_words(code)
    if isinstance(problem, UnicodeDecodeError):
        return "the driver's text is not UTF-8"
    return f"reading it failed: {type(problem).__name__}: {problem}"[:300]


def code_words(code: int) -> str:
    """Words for NVML's return code of a field."""
    return _FIELD_WORDS.get(code, f"the driver answers with error {code}; see dmesg")


def why_no_start(problem: BaseException) -> str:
    """The node's status when NVML cannot be started: a keyword, a cause, a remedy."""
    code = code_of(problem)
    if code is not None:
        return _START_WORDS.get(code, f"nvml_error: NVML cannot be started (error {code}: {problem}); see dmesg")
    return f"nvml_error: NVML cannot be started ({type(problem).__name__}: {problem})"[:400]
