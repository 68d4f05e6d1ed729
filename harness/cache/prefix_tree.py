"""A radix tree over prompts, with the stamps and locks by which its leaves are chosen to be dropped."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush

from harness.cache.base import Item
from harness.cache.prompt import equal_items

_SLACK = 1024
"""Entries that the heap may hold beyond twice the nodes before it is cleaned."""


class Node:
    """A run of tokens: `items`, without the first `skip` tokens of the first item, `tokens` in all.

    Of an item that was cut at its end the run has the beginning: an item of that length.
    """

    __slots__ = ("children", "items", "locks", "parent", "skip", "stamp", "tokens")

    def __init__(self, parent: Node | None, items: list[Item], skip: int, length: int) -> None:
        self.parent = parent
        """None for the root, and for what was dropped."""
        self.items = items
        self.skip = skip
        self.tokens = length
        self.children: dict[tuple[int, ...], Node] = {}
        """By what their first page holds."""
        self.stamp = 0
        self.locks = 0


class PrefixTree:
    """Sequences of whole pages. A logical clock stamps what is used; a leaf that is locked cannot be dropped."""

    def __init__(self, page_tokens: int) -> None:
        self.tokens = 0
        """In all nodes together."""
        self.locked_tokens = 0
        """In those that are locked."""
        self._page_tokens = page_tokens
        self._root = Node(None, [], 0, 0)
        self._nodes = 1
        self._clock = 0
        self._oldest: list[tuple[int, Node]] = []
        """A heap of (stamp, node): all unlocked leaves, and entries that have become wrong since."""

    def known_tokens(self, run: list[Item]) -> int:
        """Tokens of the longest known prefix of `run`, in whole pages; nothing is stamped or split."""
        node, shared, index, skip = self._root, 0, 0, 0
        while index < len(run):
            child = node.children.get(self._first_page(run, index, skip))
            if child is None:
                break
            common = _common(child, run, index)
            if common < child.tokens:
                return shared + common - common % self._page_tokens
            node = child
            shared += common
            index, skip = _behind(run, index + len(child.items) - 1, child.items[-1][1])
        return shared

    def match(self, run: list[Item]) -> tuple[Node, int]:
        """The node in which the longest known prefix of `run` ends, and its tokens; a node is split to end there."""
        node, shared, _, _ = self._walk(run)
        return node, shared

    def insert(self, run: list[Item], length: int | None = None) -> tuple[Node, int]:
        """Store `run` (whole pages); the node in which it ends, and how many of its tokens were not known before.

        `length`: its tokens, where they are known; else they are counted.
        """
        node, shared, index, skip = self._walk(run)
        if index == len(run):
            return node, 0
        items = run[index:]
        new = sum([count for _, count in items]) - skip if length is None else length - shared
        leaf = Node(node, items, skip, new)
        node.children[self._first_page(items, 0, skip)] = leaf
        self._nodes += 1
        self.tokens += leaf.tokens
        self._touch(leaf)
        return leaf, leaf.tokens

    def lock(self, node: Node) -> None:
        """Lock `node` and all nodes above it."""
        for locked in _upwards(node):
            if not locked.locks:
                self.locked_tokens += locked.tokens
            locked.locks += 1

    def unlock(self, node: Node) -> None:
        for locked in _upwards(node):
            locked.locks -= 1
            if not locked.locks:
                self.locked_tokens -= locked.tokens
            self._offer(locked)

    def drop_oldest(self) -> int:
        """Drop the unlocked leaf with the oldest stamp; its tokens, 0 if there is none."""
        while self._oldest:
            stamp, leaf = heappop(self._oldest)
            if not _can_be_dropped(leaf, stamp):
                continue
            parent = leaf.parent
            assert parent is not None
            del parent.children[self._first_page(leaf.items, 0, leaf.skip)]
            leaf.parent = None
            self._nodes -= 1
            self.tokens -= leaf.tokens
            self._offer(parent)
            return leaf.tokens
        return 0

    def _walk(self, run: list[Item]) -> tuple[Node, int, int, int]:
        """Follow `run` as far as the tree knows it, in whole pages, and stamp the nodes on the way.

        Returns the last node, the tokens up to its end, and the place in `run` behind them: an item's index, and how
        many of its tokens lie before.
        """
        node, shared, index, skip = self._root, 0, 0, 0
        while index < len(run):
            child = node.children.get(self._first_page(run, index, skip))
            if child is None:
                break
            common = _common(child, run, index)
            if common == child.tokens:
                node = child
                self._touch(node)
                index, skip = _behind(run, index + len(child.items) - 1, child.items[-1][1])
            else:
                common -= common % self._page_tokens
                plain = _one_by_one(child)
                node = self._split(child, common)
                index, skip = (index + common, 0) if plain else _place(run, index, skip + common)
            shared += common
            if node is not child:
                break
        return node, shared, index, skip

    def _split(self, tail: Node, length: int) -> Node:
        """Cut the first `length` tokens off `tail`, into a new node above it, and return that. Both are stamped."""
        parent = tail.parent
        assert parent is not None
        index, end = (length, 0) if _one_by_one(tail) else _place(tail.items, 0, tail.skip + length)
        items = tail.items[:index] + ([(tail.items[index][0], end)] if end else [])
        head = Node(parent, items, tail.skip, length)
        head.locks = tail.locks
        parent.children[self._first_page(items, 0, tail.skip)] = head
        tail.parent, tail.items, tail.skip, tail.tokens = head, tail.items[index:], end, tail.tokens - length
        head.children[self._first_page(tail.items, 0, end)] = tail
        self._nodes += 1
        self._touch(tail)
        self._touch(head)
        return head

    def _first_page(self, items: list[Item], index: int, skip: int) -> tuple[int, ...]:
        """What the page holds that begins at an item's index, `skip` tokens into it."""
        identity, length = items[index]
        room = self._page_tokens
        if length - skip >= room:
            return identity, skip
        pieces = [identity, skip, length - skip]
        room -= length - skip
        while room:
            index += 1
            identity, length = items[index]
            used = min(length, room)
            pieces += (identity, 0, used)
            room -= used
        return tuple(pieces)

    def _touch(self, node: Node) -> None:
        self._clock += 1
        node.stamp = self._clock
        self._offer(node)

    def _offer(self, node: Node) -> None:
        """Let a node be dropped if it is an unlocked leaf."""
        if not _can_be_dropped(node, node.stamp):
            return
        heappush(self._oldest, (node.stamp, node))
        if len(self._oldest) > 2 * self._nodes + _SLACK:
            right = {stamp: node for stamp, node in self._oldest if _can_be_dropped(node, stamp)}
            self._oldest = list(right.items())
            heapify(self._oldest)


def _can_be_dropped(node: Node, stamp: int) -> bool:
    return node.parent is not None and not node.children and not node.locks and node.stamp == stamp


def _upwards(node: Node) -> Iterator[Node]:
    """`node` and all above it but the root."""
    while node.parent is not None:
        yield node
        node = node.parent


def _one_by_one(node: Node) -> bool:
    """Whether each of its items is one token."""
    return not node.skip and len(node.items) == node.tokens


def _common(node: Node, run: list[Item], index: int) -> int:
    """Tokens that `node` shares with `run` from the item `index` on, in which it begins."""
    part = run[index : index + len(node.items)]
    if part == node.items:
        return node.tokens
    shared, equal = -node.skip, 0
    if _one_by_one(node):
        shared = equal = equal_items(node.items, part)
    for (id_a, tokens_a), (id_b, tokens_b) in zip(node.items[equal:], part[equal:], strict=False):
        if id_a != id_b:
            break
        shared += min(tokens_a, tokens_b)
        if tokens_a != tokens_b:
            break
    return shared


def _behind(run: list[Item], index: int, skip: int) -> tuple[int, int]:
    """The place `skip` tokens into an item, which may be its end."""
    return (index, skip) if skip < run[index][1] else (index + 1, 0)


def _place(run: list[Item], index: int, skip: int) -> tuple[int, int]:
    """The place `skip` tokens behind the beginning of the item `index`, within that item or a later one."""
    while index < len(run) and skip >= run[index][1]:
        skip -= run[index][1]
        index += 1
    return index, skip
