"""What a few requests show of a target's prefix cache: the start-up check of a run, and checks that need no run.

Start-up: `prompts`, `prediction`, `verdict` and `wording` are pure; `start_up` sends, `by_hand` is `kvswarm target
check`. `lint` holds what `harness.lint` claims against a target. The other checks, such as `prove`, work in a
`laboratory`, which sends prompts one after the other (`sender`), reads the engine's own count (`counter`), and keeps a
run directory (`recording`); their verdicts go into a `labbook`.
"""
