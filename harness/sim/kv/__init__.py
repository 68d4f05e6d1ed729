"""The engines' caches as their schedulers use them, step by step, on token ids."""
