"""What a check has to know of a target's tokens, also of one that counts nothing."""

from __future__ import annotations

from harness.checks.prompts import SCENARIO
from harness.engines.openai import NoUsage, OpenAIEngine
from harness.workload.learning import MOST_WORDS, learn
from harness.workload.lexicon import Lexicon
from harness.workload.template import Template
from harness.workload.words import CANDIDATES

NOTHING_COUNTED = (
    "The server does not say how long a prompt is, so lengths are a guess: each common English word is taken for one "
    "token, and the chat template for none."
)


def learnt(engine: OpenAIEngine) -> Lexicon:
    """Exact where the target counts tokens, else a guess, which its notes say. Raises TargetError as `learn` does."""
    try:
        return learn(engine.count_text, engine.count_chat, engine.chat_tokens, SCENARIO)
    except NoUsage:
        template = Template(
            opener_tokens=1, head={"user": 0}, between={}, tail={"user": 0}, head_known=False, reply_after_tail=False
        )
        words = tuple(CANDIDATES[:MOST_WORDS])
        return Lexicon(words, template, documents=(), corpus="", exact=False, notes=(NOTHING_COUNTED,))
