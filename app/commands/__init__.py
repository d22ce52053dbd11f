"""What each command does, imported only when it runs: a GPU node has none of the hub's packages."""
