"""Two runs or more held against each other: whether they may be, by how much they differ, and how sure that is."""
