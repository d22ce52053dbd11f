"""Question: do the study's headline claims hold in its own raw runs?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from app.accounting.study import CORRECTED_TDP_W, STUDY_TDP_W, Study, claims, energy_ratio, table_3
from collectors.benchmark.run import BenchmarkRun


def study_findings(runs: Sequence[BenchmarkRun]) -> dict[str, Any] | None:
    """Claims, the energy table with both power limits, and the three energy ratios; None without the study's runs."""
    try:
        found = claims(runs)
    except KeyError:
        return None
    return {
        "claims": [asdict(claim) for claim in found],
        "energy_study_assumptions": [asdict(row) for row in table_3(Study(runs, STUDY_TDP_W), STUDY_TDP_W)],
        "energy_corrected": [asdict(row) for row in table_3(Study(runs, CORRECTED_TDP_W), CORRECTED_TDP_W)],
        "tokens_per_joule_ratio": {
            "published": energy_ratio(STUDY_TDP_W, runs, 16, 4),
            "corrected_tdp": energy_ratio(CORRECTED_TDP_W, runs, 16, 4),
            "corrected_tdp_equal_load": energy_ratio(CORRECTED_TDP_W, runs, 16, 16),
        },
    }
