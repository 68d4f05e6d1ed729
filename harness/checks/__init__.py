"""What a few requests show of a target's prefix cache before any load: the start-up check, by itself or of a run.

`prompts`, `prediction`, `verdict` and `wording` are pure; `start_up` sends, `counter` reads the engine's own count, and
`by_hand` is `kvswarm target check`. `lint` holds what `harness.lint` claims against a target.
"""
