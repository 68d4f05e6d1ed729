"""How each engine talks: its endpoints, bodies, streams, errors and metrics page."""
