"""LRU stack distances of all references at once."""

from __future__ import annotations

import numpy as np

from harness.cache.block_references import BlockReferences, Whole

NEVER = 0
"""Depth of a block that no earlier request had."""


def stack_depths(references: BlockReferences) -> Whole:
    """Place of each referred block in the LRU stack when its request arrives, from 1 for the block touched last.

    Shape (references,); `NEVER` for a block that is not there yet. A block at depth d is in every LRU cache of d blocks
    and more, and in no smaller one (Mattson, Gecsei, Slutz, Traiger: Evaluation techniques for storage hierarchies,
    IBM Systems Journal 9(2), 1970).

    A request looks up all its blocks, then touches them from the last to the first. Whatever touches a block thus
    touches its parent later: along a prompt depths grow, and the blocks within a capacity are always its leading ones.
    So each reference counts for itself, and no run of hits needs to be followed.

    With touches numbered in their order and p(t) the touch of the same block before touch t (-1: none), the distinct
    blocks touched between p(t) and t are those j between them with p(j) < p(t), for each block its first. All
    j <= p(t) have p(j) < p(t) as well. So they number  #{j < t: p(j) < p(t)} - p(t) - 1, of which the blocks that the
    request itself touched before this one were touched after the look-up. All of these lie deeper, hence count as new.
    """
    per_request = references.per_request
    ends = np.repeat(np.cumsum(per_request), per_request)
    sizes = np.repeat(per_request, per_request)
    places = np.arange(len(references.hashes))
    # Reversing the references within each request gives the order of the touches, and is its own inverse.
    reversal = 2 * ends - sizes - 1 - places
    previous = _previous(references.hashes[reversal])
    own_before = places - (ends - sizes)
    depths = _smaller_before(previous) - previous - own_before
    depths[previous < 0] = NEVER
    of_references: Whole = depths[reversal]
    return of_references


def _previous(names: np.ndarray[tuple[int], np.dtype[np.uint64]]) -> Whole:
    """For each place, the last place before it with the same name; -1 if there is none."""
    by_name = np.argsort(names, kind="stable")
    same = names[by_name[1:]] == names[by_name[:-1]]
    previous = np.full(len(names), -1)
    previous[by_name[1:][same]] = by_name[:-1][same]
    return previous


def _smaller_before(values: Whole) -> Whole:
    """For each place, how many places before it have a smaller value; of no meaning where values are equal.

    Merge sort from the top: `order` holds the places sorted by value within each aligned stretch of 2 * half places.
    A place in the right half counts those of the left half that precede it in `order`; then both halves go on by
    themselves. O(n log n), each level a few passes over arrays.
    """
    n = len(values)
    counts = np.zeros(n, dtype=np.int64)
    order = np.argsort(values, kind="stable")
    index = np.arange(n)
    half = 1 << max(0, (n - 1).bit_length() - 1)
    while half:
        is_right = (order & half) != 0
        # Left places up to here in this stretch: all earlier stretches are full, and had `half` of them each.
        lefts = np.cumsum(~is_right) - order // (2 * half) * half
        counts[order[is_right]] += lefts[is_right]
        target = np.where(is_right, index + half - lefts, (order & -(2 * half)) + lefts - 1)
        parted = np.empty_like(order)
        parted[target] = order
        order = parted
        half >>= 1
    return counts
