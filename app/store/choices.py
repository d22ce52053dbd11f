"""What an account can be asked for: the fleets, models and labels that were ever seen, and the cards of fleets."""

from __future__ import annotations

from datetime import datetime

from app.store.database import Store
from app.store.reader import Reader

# one row per fleet that a node was ever in
_FLEETS = "SELECT DISTINCT fleet AS name FROM node_fleet WHERE fleet IS NOT NULL ORDER BY lower(fleet), fleet"
# one row per model that an engine ever served
_MODELS = "SELECT DISTINCT model AS name FROM engine WHERE model IS NOT NULL ORDER BY lower(model), model"
# one row per name of a label that an engine or a node has
_LABELS = """
    SELECT DISTINCT unnest(json_keys(labels)) AS name
    FROM (SELECT labels FROM engine UNION ALL SELECT labels FROM node_state) ORDER BY name
"""
# one row per fleet and card that belongs to it at a moment
_CARDS = """
    WITH member AS (
        SELECT node_id, arg_max_null(fleet, (valid_from, known_at)) AS fleet
        FROM node_fleet WHERE valid_from <= $1 GROUP BY node_id
    )
    SELECT DISTINCT fleet, gpu.name AS card
    FROM gpu JOIN member USING (node_id) WHERE fleet IS NOT NULL ORDER BY fleet, card
"""


# one row per fleet and card: how many of its GPUs were there in the hours from $2 up to $1, by their nodes' fleet at $1
_GPUS = """
    WITH member AS (
        SELECT node_id, arg_max_null(fleet, (valid_from, known_at)) AS fleet
        FROM node_fleet WHERE valid_from <= $1 GROUP BY node_id
    )
    SELECT fleet, gpu.name AS card, count(*) AS gpus
    FROM gpu JOIN member USING (node_id)
    SEMI JOIN (SELECT gpu_id FROM gpu_hour WHERE hour_us >= epoch_us($2) AND hour_us < epoch_us($1)) AS seen
      ON seen.gpu_id = gpu.gpu_id
    WHERE fleet IS NOT NULL GROUP BY ALL ORDER BY fleet, gpus DESC, card
"""


def fleet_names(store: Store) -> list[str]:
    return [str(name) for name in store.query(_FLEETS)["name"]]


def model_names(store: Store) -> list[str]:
    return [str(name) for name in store.query(_MODELS)["name"]]


def label_names(store: Store) -> list[str]:
    return [str(name) for name in store.query(_LABELS)["name"]]


def fleet_gpus(store: Reader, since: datetime, moment: datetime) -> list[tuple[str, str, int]]:
    """(fleet, card, number of GPUs seen since then), of a fleet's cards the most numerous first."""
    rows = store.query(_GPUS, [moment, since]).iter_rows()
    return [(str(fleet), str(card), int(gpus)) for fleet, card, gpus in rows]


def fleet_cards(store: Store, moment: datetime) -> list[tuple[str, str]]:
    """Fleets with the cards of the nodes that belong to them then."""
    return [(str(fleet), str(card)) for fleet, card in store.query(_CARDS, [moment]).iter_rows()]
