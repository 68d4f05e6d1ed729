"""Service level objectives: what they say, when a load meets one, and the search for the highest that does. Pure."""
