"""How each engine chooses what a step computes."""
