"""Traces of what servers were asked: read from the formats that people publish, written, and what they could reuse."""
