"""The cache of the engine that a target's record describes, as far as it is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from harness.analysis.expected_endless import Endless, Rules
from harness.analysis.expected_slots import WatchedSlots
from harness.cache.base import CacheModel
from harness.cache.block_pool import BlockPool
from harness.cache.entries import Entries
from harness.cache.radix import RadixTree
from harness.cache.slots import BATCH_TOKENS
from harness.record.manifest import TargetRecord

ENTRIES = 10
"""mlx-lm's default for `--prompt-cache-size`."""


@dataclass(frozen=True, slots=True)
class EngineCache:
    """How an engine caches, and in how much room."""

    name: str
    """In words."""
    rules: Rules
    model: Callable[[], CacheModel[Any]] | None
    """Makes the cache as it was before the run, with its own room; None: `unknown` says why not."""
    unknown: str = ""
    is_off: bool = False
    """Nothing is kept."""
    has_hidden_places: bool = False
    """There are several caches, and no answer tells which of them it came from."""
    replicas: tuple[str, ...] = ()
    """Those that answered, each with such a cache of its own; empty: there is one cache, or no answer tells."""
    assumptions: tuple[str, ...] = ()
    """What was taken for granted, a sentence each."""


def engine_cache(target: TargetRecord, replicas: tuple[str, ...] = ()) -> EngineCache:
    """By the target's identity; where that lacks the granularity, by the start-up check.

    `replicas`: those that the answers name.
    """
    identity = target.identity
    granularity = identity.get("granularity_tokens")
    if granularity is None and target.check is not None:
        granularity = target.check.granularity_tokens
    in_one = 1 if replicas else _replicas(target)  # so many are taken for one cache
    several = in_one * _engines(identity) > 1
    assumptions = tuple(_assumptions(target, granularity, in_one))
    make = {"vllm": _vllm, "sglang": _sglang, "llama-cpp": _llama_cpp, "mlx-lm": _mlx_lm}.get(
        identity.get("engine", ""), _other
    )
    cache = make(identity, granularity or 1, in_one)
    name = f"{cache.name}, in each of {len(replicas)} replicas" if replicas else cache.name
    is_off = identity.get("prefix_caching") is False or bool(target.check and target.check.verdict == "caching-off")
    return replace(
        cache,
        name=name,
        is_off=is_off,
        has_hidden_places=several,
        replicas=replicas,
        assumptions=(*assumptions, *cache.assumptions),
    )


def kv_capacity(target: TargetRecord) -> int | None:
    """KV capacity of all replicas together, in tokens, as far as the target tells it."""
    capacity: int | None = target.identity.get("capacity_tokens")
    return capacity * _replicas(target) if capacity else None


def why_no_capacity(identity: Mapping[str, Any]) -> str:
    """In words that can follow "as"."""
    reason = identity.get("unknown", {}).get("capacity_tokens", "the engine does not tell it")
    return f"the KV capacity is not known: {reason}"


def _assumptions(target: TargetRecord, granularity: int | None, replicas: int) -> Iterator[str]:
    if granularity is None:
        yield "The block or page size is not known: hits are taken to be exact to the token."
    if target.lexicon.get("template", {}).get("head_known") is False:
        yield (
            "The chat template's tokens were counted, not seen: some that stand before the texts are taken to stand "
            "behind them, so hits can be longer than expected."
        )
    several = {"replicas": replicas, "data-parallel engines": _engines(target.identity)}
    for what, number in several.items():
        if number > 1:
            yield (
                f"{number} {what} are taken for one cache with the room of all, as no answer tells which of them it "
                "came from: what is lost between them is unexplained."
            )
    if target.identity.get("details", {}).get("enable_hierarchical_cache") == "True":
        yield "The host memory of SGLang's hierarchical cache is left out: what comes from there is unexplained."


def _replicas(target: TargetRecord) -> int:
    return max(1, len(target.target.get("metrics_urls") or ()))


def _engines(identity: Mapping[str, Any]) -> int:
    details = identity.get("details", {})
    return int(details.get("engines") or details.get("dp_size") or 1)


def _vllm(identity: Mapping[str, Any], granularity: int, replicas: int) -> EngineCache:
    name = f"vLLM's block pool, blocks of {granularity} tokens"
    rules = Rules(granularity, found_when_sent=True)
    blocks = (identity.get("capacity_tokens") or 0) // granularity
    # The engine's own number may have the block of each engine that holds nothing; a number by hand has not.
    if "kv_cache_size_tokens" in identity.get("details", {}) and "capacity_tokens" not in identity.get("by_hand", ()):
        blocks -= _engines(identity)
    if blocks < 1:
        return EngineCache(name, rules, None, _no_capacity(identity))
    blocks *= replicas
    return EngineCache(f"{name}, {blocks:,} of them", rules, lambda: BlockPool(blocks + 1, granularity))


def _sglang(identity: Mapping[str, Any], granularity: int, replicas: int) -> EngineCache:
    name = f"SGLang's radix tree, pages of {granularity} token{'s' if granularity > 1 else ''}"
    rules = Rules(granularity, tokens_after_hang_up=None)
    capacity = identity.get("capacity_tokens") or 0
    if capacity < granularity:
        return EngineCache(name, rules, None, _no_capacity(identity))
    chunk = int(identity.get("details", {}).get("chunked_prefill_size") or 0)
    chunk_tokens = chunk if chunk > 0 and chunk % granularity == 0 else None
    return EngineCache(
        f"{name}, room for {capacity * replicas:,} tokens",
        rules,
        lambda: RadixTree(capacity * replicas, granularity, chunk_tokens),
    )


def _llama_cpp(identity: Mapping[str, Any], granularity: int, replicas: int) -> EngineCache:
    rules = Rules(granularity, tokens_after_hang_up=BATCH_TOKENS)
    slots, slot_tokens = identity.get("slots"), identity.get("context_tokens")
    if not slots or not slot_tokens:
        reason = f"the {'context' if slots else 'number of slots'} of llama.cpp's server is not known"
        return EngineCache("llama.cpp's slots", rules, None, reason)
    slots *= replicas
    unified = slots > 1 and identity.get("capacity_tokens") == slot_tokens
    context_tokens = slot_tokens if unified else slot_tokens * slots
    assumptions = []
    if slots > 1 and identity.get("capacity_tokens") is None:
        assumptions.append("Whether the slots share one KV buffer is not known: each is taken to have its own.")
    if identity.get("details", {}).get("cache_ram") != "0":
        assumptions.append(
            "The size of host memory (--cache-ram) is not known: it is left out, and what comes from there is "
            "unexplained."
        )
    return EngineCache(
        f"llama.cpp's slots, {slots} of {slot_tokens:,} tokens{', in one KV buffer' if unified else ''}",
        rules,
        lambda: WatchedSlots(Endless(rules), slots, context_tokens, unified=unified),
        assumptions=tuple(assumptions),
    )


def _mlx_lm(identity: Mapping[str, Any], granularity: int, replicas: int) -> EngineCache:
    told = identity.get("details", {}).get("prompt_cache_size")
    size = int(told or ENTRIES) * replicas
    return EngineCache(
        f"mlx-lm's store of {size} entries",
        Rules(granularity, keeps_last_prompt_token=False, keeps_last_output_token=True),
        lambda: Entries(size),
        assumptions=() if told else (f"--prompt-cache-size is not known: it is taken to be the default, {ENTRIES}.",),
    )


def _other(identity: Mapping[str, Any], granularity: int, _: int) -> EngineCache:
    name = f"a cache that is exact to {granularity} token{'s' if granularity > 1 else ''}"
    return EngineCache(
        name, Rules(granularity), None, f"kvswarm has no model of the cache of {identity.get('engine', 'the engine')}"
    )


def _no_capacity(identity: Mapping[str, Any]) -> str:
    if identity.get("capacity_tokens"):
        return "the KV capacity is less than one block or page"
    return why_no_capacity(identity)
