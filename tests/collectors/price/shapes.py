"""Answers as RunPod and Vast spell them, without the samples."""

from __future__ import annotations

from typing import Any


def gpu_types(*rows: dict[str, Any]) -> dict[str, Any]:
    return {"data": {"gpuTypes": [h100(**row) for row in rows]}}


def h100(**change: Any) -> dict[str, Any]:
    return {
        "id": "NVIDIA H100 PCIe", "memoryInGb": 80, "secureCloud": True, "communityCloud": True,
        "securePrice": 2.89, "communityPrice": 1.99,
        "lowestPrice": {"minimumBidPrice": 1.25, "stockStatus": "Low"},
    } | change  # fmt: skip


def bundles(*rows: dict[str, Any]) -> dict[str, Any]:
    return {"offers": [machine(id=number, **row) for number, row in enumerate(rows, 1)]}


def machine(**change: Any) -> dict[str, Any]:
    """Two RTX 4090 for 0.62 USD/h, with 100 GB each: 0.31 + 100 x 0.144 / 720 = 0.33 USD/GPU-h."""
    return {
        "gpu_name": "RTX 4090", "num_gpus": 2, "gpu_ram": 24564, "dph_base": 0.62, "storage_cost": 0.144,
        "min_bid": 0.31, "disk_space": 512.3, "geolocation": "Sweden, SE", "rentable": True, "rented": False,
        "verification": "verified",
    } | change  # fmt: skip
