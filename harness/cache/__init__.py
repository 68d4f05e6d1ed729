"""Models of the engines' caches: how much of a prompt each would reuse, from prefix paths alone."""
