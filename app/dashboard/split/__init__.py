"""Parts of the *Split* page, one section a module."""
