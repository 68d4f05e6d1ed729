"""Simulated engines with the manners of the real ones."""
