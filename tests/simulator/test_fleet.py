"""The simulated fleets are those of the demo's settings."""

from __future__ import annotations

import pytest

from app.config import load_config
from app.reference.tables import data_folder
from app.simulator.fleet import SimulatedNode
from tests.simulator.wires import WORLD


@pytest.mark.parametrize("node", WORLD.nodes, ids=lambda node: node.name)
def test_each_node_belongs_to_its_fleet_of_the_demo(node: SimulatedNode) -> None:
    fleet = load_config(data_folder() / "demo.toml").fleet_of_node(node.name)
    assert fleet is not None
    assert {replica.pool.fleet for replica in node.replicas} == {fleet.name}
    assert fleet.matches_gpu(node.card.name)
