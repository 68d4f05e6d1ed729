"""`kvswarm isolate` at a target: two tenants ask for one prefix, with and without a key that keeps them apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.checks.evict import refuse_replicas
from harness.checks.isolate_evidence import Asked, Role
from harness.checks.isolate_finding import Boundary, finding
from harness.checks.laboratory import Finding, Laboratory
from harness.checks.prompts import CHANCE_WORDS
from harness.errors import InputError, TargetError

ROUNDS = 3
"""Each with a prefix that nobody sent before."""
QUESTION_TOKENS = 32
USUAL_TOKENS, LEAST_TOKENS = 1024, 128
"""Of the prefix: unless the block asks for more, or the context allows less only."""
BLOCKS = 4
SPARE_TOKENS = 8
WARM_UP_REQUESTS = 3

WITH_KEY: tuple[tuple[Role, str | None], ...] = (
    ("first", "a"),
    ("same", "a"),
    ("other", "b"),
    ("none", None),
    ("none-again", None),
    ("after-none", "c"),
)
"""Who asks in a round, one after the other, and with which tenant's key."""
_WITHOUT: tuple[Role, ...] = ("first", "same", "other")
_SLOTS: tuple[tuple[Role | None, int], ...] = (("first", 0), ("same", 0), (None, 1), ("other", 1))
"""With the slot of each. What the first one's slot holds goes to host memory when another slot gets a request: so the
other tenant asks for something else (None) before."""


def isolate(laboratory: Laboratory, prefix_tokens: int | None) -> Finding:
    """Ask for prefixes as several tenants, each time with another question, and say who saw what another one had sent.

    `prefix_tokens`: None: what suits the target. Raises InputError for a length that the target does not take,
    TargetError if a request fails.
    """
    refuse_replicas(laboratory.target)
    tenants = Tenants(laboratory, choose_prefix(laboratory, prefix_tokens))
    tenants.warm_up()
    engine = laboratory.engine
    boundaries: list[Boundary] = []
    if engine.takes_cache_salt:
        fields = engine.salt_fields
        for field in fields:
            engine.salt_fields = (field,)
            boundaries.append(tenants.boundary(field, [(role, _salt(tenant), None) for role, tenant in WITH_KEY]))
        engine.salt_fields = fields
    else:
        boundaries.append(tenants.boundary(None, [(role, None, None) for role in _WITHOUT]))
        if engine.pins_slots and (laboratory.identity.slots or 0) > 1:
            boundaries.append(tenants.boundary("slot", [(role, None, slot) for role, slot in _SLOTS]))
    if restarted := laboratory.restarted():
        return restarted
    identity = laboratory.identity
    return finding(boundaries, tenants.prefix_tokens, identity.engine, identity.granularity_tokens, engine.advice)


class Tenants:
    """Ask for prefixes at one laboratory."""

    def __init__(self, laboratory: Laboratory, prefix_tokens: int) -> None:
        """`prefix_tokens`: template's head included."""
        self.prefix_tokens = prefix_tokens
        self._laboratory = laboratory
        self._head_tokens = laboratory.head_tokens
        self._text_tokens = prefix_tokens - (laboratory.head_tokens if laboratory.lexicon.template.head_known else 0)
        self._round = 0
        self._counted = False

    def warm_up(self) -> None:
        """The engine's counter is read from then on if an answer tells no cached tokens."""
        with self._laboratory.warming():
            asked = [self._ask("first", f"warm-up {number}", None, None) for number in range(WARM_UP_REQUESTS)]
        self._counted = any(one.cached_tokens is None for one in asked)

    def boundary(self, name: str | None, who: Sequence[tuple[Role | None, str | None, int | None]]) -> Boundary:
        """Play `ROUNDS` rounds of (role, salt, slot). `name`: the request's field that is to keep tenants apart.

        Role None: a request for another prefix, which is no evidence.
        """
        asked = []
        for _ in range(ROUNDS):
            self._round += 1
            self._laboratory.group(self._round)
            for role, salt, slot in who:
                if role is None:
                    self._ask("first", f"another prefix {self._round}", salt, slot)
                else:
                    asked.append(self._ask(role, f"prefix {self._round}", salt, slot))
        return Boundary.of(name, asked, self.prefix_tokens, self._head_tokens + CHANCE_WORDS)

    def _ask(self, role: Role, prefix: str, salt: str | None, slot: int | None) -> Asked:
        prompt = self._laboratory.prompt((prefix, self._text_tokens), (f"{prefix} {role}", QUESTION_TOKENS))
        answer = self._laboratory.chat(role, prompt, cache_salt=salt, slot=slot, counted=self._counted)
        if not answer.is_ok:
            raise TargetError(
                f"A request to {self._laboratory.target.url} failed ({answer.reply.status}): {answer.reply.error}. "
                "The check ended there"
            )
        return Asked(role, answer.cached_tokens, answer.ttft_ms)


def choose_prefix(laboratory: Laboratory, wanted: int | None) -> int:
    """Its length in tokens, the template's head included. Raises InputError if there is no room, or for too few."""
    granularity = laboratory.identity.granularity_tokens or 1
    least = max(LEAST_TOKENS, 2 * laboratory.around_tokens, 2 * granularity)
    context = laboratory.identity.context_tokens
    most = None if context is None else context - laboratory.around_tokens - QUESTION_TOKENS - SPARE_TOKENS
    if most is not None and most < least:
        raise InputError(
            f"A context of {context} tokens has no room for a prefix that shows a hit: allow more at the server"
        )
    if wanted is None:
        usual = max(USUAL_TOKENS, BLOCKS * granularity, least)
        return usual if most is None else min(usual, most)
    if wanted < least or (most is not None and wanted > most):
        limit = "" if most is None else f" and at most {most}, for its context"
        raise InputError(f"--prefix-tokens is {wanted}: this target needs at least {least}{limit}")
    return wanted


def options(prefix_tokens: int | None) -> Mapping[str, Any]:
    """As run.json keeps them."""
    return {"prefix_tokens": prefix_tokens}


def _salt(tenant: str | None) -> str | None:
    return None if tenant is None else f"tenant-{tenant}"
