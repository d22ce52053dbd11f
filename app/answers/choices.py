"""Question: of which fleets and models can an account be asked, and by which labels?"""

from __future__ import annotations

from app.store.choices import fleet_names, label_names, model_names
from app.store.database import Store


def account_names(store: Store) -> dict[str, list[str]]:
    """Every fleet that a node was ever in, every model that an engine ever served, and the names of their labels."""
    return {"fleets": fleet_names(store), "models": model_names(store), "labels": label_names(store)}
