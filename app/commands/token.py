"""`wattmix token create|list|revoke`."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.commands.opening import opened
from app.config import load_config
from app.store.tokens import Scope


def create(name: str, scope: str, node: str | None, db: Path | None, config_file: Path | None) -> None:
    with opened(db, load_config(config_file), config_file) as backend:
        token = backend.create_token(name, cast(Scope, scope), node)
    typer.echo(token)
    Console(stderr=True, soft_wrap=True).print("It is shown once. Put it into a file that only the agent can read.")


def show(db: Path | None, config_file: Path | None) -> None:
    with opened(db, load_config(config_file), config_file) as backend:
        rows = backend.list_tokens()
    table = Table("id", "name", "scope", "node", "created", "revoked", header_style="bold")
    for row in rows:
        cells = (row["token_id"], row["name"], row["scope"], row["node"] or "any", row["created_at"], row["revoked_at"])
        table.add_row(*(Text(cell or "") for cell in cells))
    Console(soft_wrap=True).print(table)


def revoke(token_id: str, db: Path | None, config_file: Path | None) -> None:
    with opened(db, load_config(config_file), config_file) as backend:
        backend.revoke_token(token_id)
    typer.echo(f"revoked {token_id}")
