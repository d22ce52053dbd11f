"""`python -m app` is `wattmix`."""

from app.cli import main

main()
