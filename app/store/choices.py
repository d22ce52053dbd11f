"""What an account can be asked for: the fleets, models and labels that were ever seen, and the cards of fleets."""

from __future__ import annotations

from datetime import datetime

from app.store.database import Store

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


def fleet_names(store: Store) -> list[str]:
    return [str(name) for name in store.query(_FLEETS)["name"]]


def model_names(store: Store) -> list[str]:
    return [str(name) for name in store.query(_MODELS)["name"]]


def label_names(store: Store) -> list[str]:
    return [str(name) for name in store.query(_LABELS)["name"]]


def fleet_cards(store: Store, moment: datetime) -> list[tuple[str, str]]:
    """Fleets with the cards of the nodes that belong to them then."""
    return [(str(fleet), str(card)) for fleet, card in store.query(_CARDS, [moment]).iter_rows()]
