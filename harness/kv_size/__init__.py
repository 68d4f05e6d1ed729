"""How large a model's KV cache is in each number format of each engine; pure but for the readers of model files."""
