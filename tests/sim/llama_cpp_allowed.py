"""In what simulated answers may differ from those of llama.cpp's real server, and why."""

from __future__ import annotations

from tests.sim.exchange import Allowed

SAID = "the model's own words"
TIMED = "a time of its own"
BESIDE = (
    Allowed(r"body(\[\]|\.data\[\])?\.created", TIMED),
    Allowed(r"body(\[\])?\.id", "drawn anew for each answer"),
    Allowed(r"body(\[\])?\.system_fingerprint|body\.build_info", "it says that it is simulated"),
    Allowed(r"body(\[\])?\.choices\[\]\.(delta\.content|message\.content|text)", SAID),
    Allowed(r"body(\[\])?\.(content|tokens\[\])", SAID),
    Allowed(r"body(\[\])?\.timings\.(prompt|predicted)_(ms|per_token_ms|per_second)", TIMED),
    Allowed(r"body\[\]\.prompt_progress\.time_ms", TIMED),
    Allowed(r"headers\.content-length", "that of a body with other words and times"),
    Allowed(r"body\.media_marker", "drawn anew for each start"),
    Allowed(r"body\.(model_ftype|model_path|data\[\]\.meta\.(n_ctx_train|ftype))", "another model"),
    Allowed(r"body\.data\[\]\.meta\.(n_embd|n_params|size)", "it has no weights to count", what=("type",)),
    Allowed(r"body\.n_(written|read)", "its files hold token ids alone"),
    Allowed(r"body\.timings\.(save|restore)_ms", TIMED),
    Allowed(r"body\.ui", "it has no web page"),
    Allowed(r"body\[\]\.id_task", "the real one also counts what reads its pages"),
)
"""From those of a real server with the same vocabulary."""
RECORDED = (
    *BESIDE,
    Allowed(r"body\.prompt", "the prompt that was sent, which has other words"),
    Allowed(r"body\.tokens\[\](\.id|\.piece)?", "another vocabulary", what=("value", "length")),
    Allowed(r"body\.data\[\]\.meta\.n_vocab", "another vocabulary"),
    Allowed(r"body\.chat_template", "the same template, spelt otherwise"),
)
"""From the recorded ones."""
OF_ONE_BUILD = (
    Allowed(r"status|body\.error\.(code|type)", "the later build calls bad JSON a bad request"),
    Allowed(r"body\.data\[\]\.architecture", "the later build tells the modalities", what=("extra",)),
)
"""What only the earlier build, llama-server, does otherwise."""
