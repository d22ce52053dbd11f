"""`wattmix token`: who may write and read from elsewhere."""

from __future__ import annotations

from typing import Annotated

import typer

from app.cli.options import ConfigFile, Db, Scope, need_hub

tokens = typer.Typer(help="Tokens of nodes and readers. Needed where hub and agent are on different machines.")


@tokens.command("create")
def token_create(
    name: Annotated[str, typer.Argument(help="What it is for, e.g. the rack or the node.")],
    node: Annotated[str | None, typer.Option("--node", help="The only node it may write for.")] = None,
    scope: Annotated[Scope, typer.Option("--scope", help="node may only write, read may only read")] = Scope.node,
    db: Db = None,
    config: ConfigFile = None,
) -> None:
    """Make a token and print it once. Put it into a file and name that with --token-file."""
    need_hub("token")
    from app.commands import token

    token.create(name, scope.value, node, db, config)


@tokens.command("list")
def token_list(db: Db = None, config: ConfigFile = None) -> None:
    """List tokens, without their secrets."""
    need_hub("token")
    from app.commands import token

    token.show(db, config)


@tokens.command("revoke")
def token_revoke(
    token_id: Annotated[str, typer.Argument(help="The token's id, as in `wattmix token list`.")],
    db: Db = None,
    config: ConfigFile = None,
) -> None:
    """End a token from now on."""
    need_hub("token")
    from app.commands import token

    token.revoke(token_id, db, config)
