"""A real engine at hand: llama.cpp's own server from a wheel, with a tiny model made on the spot."""
