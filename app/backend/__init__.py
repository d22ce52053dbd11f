"""Where answers come from: the store in this process, or the hub that owns it. Both give the same (design law 7)."""
