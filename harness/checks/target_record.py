"""What was learnt of a target, as run.json has it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from harness.engines.base import Identity
from harness.engines.openai import OpenAIEngine
from harness.record.manifest import MetricNames, TargetRecord
from harness.workload.lexicon import Lexicon


def target_record(engine: OpenAIEngine, identity: Identity, lexicon: Lexicon) -> TargetRecord:
    """Nothing of the target's headers or keys."""
    return TargetRecord(
        name=engine.target.name,
        target=engine.target.model_dump(mode="json", exclude={"headers"}),
        identity=asdict(identity),
        metrics=[MetricNames(**asdict(metric)) for metric in engine.metrics],
        advice={str(need): words for need, words in engine.advice.items()},
        lexicon=_summary(lexicon),
    )


def _summary(lexicon: Lexicon) -> dict[str, Any]:
    """How exact lengths were made, without the words and cuts themselves."""
    return {
        "words": len(lexicon.words),
        "template": lexicon.template.to_json(),
        "documents_real": lexicon.documents_real,
        "exact": lexicon.exact,
    }
