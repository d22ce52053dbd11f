"""`make bench`: measured speeds, each beside the peer where it is installed.

    python -m tests.bench.run [ingest|nodes|agent|engines|pages|split ...]

Peers: VictoriaMetrics (Debian: victoria-metrics), nvitop-exporter (PyPI), CBC (in PuLP, of the test tools).
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from rich.console import Console

from tests.bench import agent, engines, ingest, page_data, split, thousand_nodes
from tests.bench.report import Line, show

PARTS: dict[str, tuple[Callable[[], list[Line]], ...]] = {
    "ingest": (ingest.node_sized, ingest.backfill),
    "nodes": (thousand_nodes.hold,),
    "agent": (agent.cost,),
    "engines": (engines.scrape,),
    "pages": (page_data.pages,),
    "split": (split.demands, split.fronts, split.plans, split.matrices),
}


def main(names: list[str]) -> None:
    lines: list[Line] = []
    for name in names or list(PARTS):
        for part in PARTS[name]:
            Console(stderr=True).print(f"{name}: {part.__doc__ or part.__name__}".strip())
            lines += part()
    show(lines)


if __name__ == "__main__":
    main(sys.argv[1:])
