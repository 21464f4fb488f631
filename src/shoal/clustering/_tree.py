"""Kernels of a kd-tree from which points are taken away: nearest, farthest, remove; exact in every tie.

Bounds are sums of the same rounded squares in the same order as the distances themselves, and rounding is monotone.
So a box's bound is never beyond the computed distance of a point in it, and the tree finds what a scan of all points
would.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.compilation import kernel, subroutine

LEAF = 16  # points; a constant, so that the compiler unrolls the loop over a leaf
NONE = 2**63 - 1  # in place of the lowest row of a node without points
_DEPTH = 64


class Tree(NamedTuple):
    """A complete binary tree: node t has the children 2t + 1 and 2t + 2, and the last `leaves` nodes are leaves."""

    points: NDArray[np.float64]  # (leaves, d, LEAF)
    rows: NDArray[np.int32]  # (leaves, LEAF), the row of every point, or -1 - row once it is marked
    place: NDArray[np.int32]  # (n,), leaf * LEAF + position of every row
    held: NDArray[np.int64]  # (leaves,), the points still there; they stand first
    box: NDArray[np.float64]  # (nodes, d, 2), the least and the greatest coordinates
    lowest: NDArray[np.int64]  # (nodes,), the lowest row below


class Search(NamedTuple):
    """Room for queries: what was found, in the order of (distance, row), and a stack."""

    distance: NDArray[np.float64]  # (room,), squared
    row: NDArray[np.int64]  # (room,)
    place: NDArray[np.int64]  # (room,)
    stack: NDArray[np.int64]
    bound: NDArray[np.float64]
    buffer: NDArray[np.float64]  # (LEAF,), the distances of a leaf
    work: NDArray[np.int64]  # (1,), leaves and nodes looked at so far


def make_search(room: int) -> Search:
    """Return room for queries of that many points."""
    return Search(
        np.empty(room),
        np.empty(room, dtype=np.int64),
        np.empty(room, dtype=np.int64),
        np.empty(2 * _DEPTH, dtype=np.int64),
        np.empty(2 * _DEPTH),
        np.empty(LEAF),
        np.zeros(1, dtype=np.int64),
    )


def make_tree(X: NDArray[np.float64], rows: NDArray[np.int32], place: NDArray[np.int32]) -> Tree:
    """Build the tree of these rows of X, shape (n, d); `rows` is put into the order of the leaves.

    place: (n,), room for the places of all rows.
    """
    leaves = max(1, -(-len(rows) // LEAF))
    d = X.shape[1]
    tree = Tree(
        np.zeros((leaves, d, LEAF)),
        np.empty((leaves, LEAF), dtype=np.int32),
        place,
        np.zeros(leaves, dtype=np.int64),
        np.empty((2 * leaves - 1, d, 2)),
        np.empty(2 * leaves - 1, dtype=np.int64),
    )
    _fill(X, rows, tree)
    return tree


@subroutine()
def _is_before(X: NDArray[Any], j: int, a: int, b: int) -> bool:
    """Whether row a stands before row b along column j, equal values in row order."""
    return X[a, j] < X[b, j] or (X[a, j] == X[b, j] and a < b)


@subroutine()
def _part(X: NDArray[Any], j: int, rows: NDArray[Any], at: int) -> None:
    """Reorder the rows so that the first `at` of them stand before the others along column j (quickselect)."""
    low, high = 0, len(rows) - 1
    random = 12345
    while low < high:
        random = (random * 1103515245 + 12345) & 0x7FFFFFFF  # no order of the data makes this slow
        a, b, c = rows[low], rows[low + random % (high - low + 1)], rows[high]
        if _is_before(X, j, b, a):
            a, b = b, a
        if _is_before(X, j, c, b):
            b = a if _is_before(X, j, c, a) else c
        i, k = low, high
        while i <= k:
            while _is_before(X, j, rows[i], b):
                i += 1
            while _is_before(X, j, b, rows[k]):
                k -= 1
            if i <= k:
                rows[i], rows[k] = rows[k], rows[i]
                i += 1
                k -= 1
        if at <= k:
            high = k
        elif at >= i:
            low = i
        else:
            return


@kernel()
def _fill(X: NDArray[Any], rows: NDArray[Any], tree: Tree) -> None:
    """Split the rows at equal counts along the widest column, down to leaves; then close the boxes upwards."""
    leaves, d = tree.held.shape[0], X.shape[1]
    below = np.ones(2 * leaves - 1, dtype=np.int64)
    for node in range(leaves - 2, -1, -1):
        below[node] = below[2 * node + 1] + below[2 * node + 2]
    start = np.zeros(2 * leaves - 1, dtype=np.int64)
    stop = np.zeros(2 * leaves - 1, dtype=np.int64)
    stop[0] = len(rows)
    for node in range(2 * leaves - 1):
        mine = rows[start[node] : stop[node]]
        if node >= leaves - 1:
            leaf = node - leaves + 1
            tree.held[leaf] = len(mine)
            for p in range(len(mine)):
                tree.rows[leaf, p] = mine[p]
                tree.place[mine[p]] = leaf * LEAF + p
                for j in range(d):
                    tree.points[leaf, j, p] = X[mine[p], j]
            continue
        widest, along = -1.0, 0
        for j in range(d):
            low, high = np.inf, -np.inf
            for p in range(len(mine)):
                value = X[mine[p], j]
                low, high = min(low, value), max(high, value)
            if high - low > widest:
                widest, along = high - low, j
        left = len(mine) * below[2 * node + 1] // below[node]
        _part(X, along, mine, left)
        start[2 * node + 1], stop[2 * node + 1] = start[node], start[node] + left
        start[2 * node + 2], stop[2 * node + 2] = start[node] + left, stop[node]
    for leaf in range(leaves):
        _close_leaf(tree, leaf)
    for node in range(leaves - 2, -1, -1):
        _close_node(tree, node)


@subroutine()
def _close_leaf(tree: Tree, leaf: int) -> bool:
    """Make a leaf's box and lowest row those of its points, and return whether they changed."""
    node = leaf + tree.held.shape[0] - 1
    box, count = tree.box[node], tree.held[leaf]
    lowest = NONE
    for p in range(count):
        lowest = min(lowest, tree.rows[leaf, p])
    changed = lowest != tree.lowest[node]
    tree.lowest[node] = lowest
    for j in range(box.shape[0]):
        low, high = np.inf, -np.inf
        for p in range(count):
            low, high = min(low, tree.points[leaf, j, p]), max(high, tree.points[leaf, j, p])
        changed |= low != box[j, 0] or high != box[j, 1]
        box[j, 0], box[j, 1] = low, high
    return changed


@subroutine()
def _close_node(tree: Tree, node: int) -> bool:
    """Make a node's box and lowest row those of its children, and return whether they changed."""
    box, left, right = tree.box[node], tree.box[2 * node + 1], tree.box[2 * node + 2]
    lowest = min(tree.lowest[2 * node + 1], tree.lowest[2 * node + 2])
    changed = lowest != tree.lowest[node]
    tree.lowest[node] = lowest
    for j in range(box.shape[0]):
        low, high = min(left[j, 0], right[j, 0]), max(left[j, 1], right[j, 1])
        changed |= low != box[j, 0] or high != box[j, 1]
        box[j, 0], box[j, 1] = low, high
    return changed


@subroutine()
def mark(tree: Tree, row: int) -> None:
    """Hide a row from the search for the nearest, until it is removed."""
    leaf, p = divmod(tree.place[row], LEAF)
    tree.rows[leaf, p] = -1 - row


@subroutine()
def remove(tree: Tree, rows: NDArray[Any], leaves: NDArray[Any]) -> None:
    """Take away marked rows, all of them; leaves: scratch of the same length."""
    for i in range(len(rows)):
        leaf, p = divmod(tree.place[rows[i]], LEAF)
        last = tree.held[leaf] - 1
        tree.held[leaf], leaves[i] = last, leaf
        moved = tree.rows[leaf, last]
        tree.rows[leaf, p], tree.place[max(moved, -1 - moved)] = moved, leaf * LEAF + p
        for j in range(tree.points.shape[1]):
            tree.points[leaf, j, p] = tree.points[leaf, j, last]
    leaves.sort()
    for i in range(len(leaves)):
        if i > 0 and leaves[i] == leaves[i - 1]:
            continue
        node = leaves[i] + tree.held.shape[0] - 1
        changed = _close_leaf(tree, leaves[i])
        while changed and node > 0:
            node = (node - 1) // 2
            changed = _close_node(tree, node)


@subroutine()
def _measure_leaf(tree: Tree, leaf: int, point: NDArray[Any], out: NDArray[Any]) -> None:
    points = tree.points[leaf]
    for p in range(LEAF):
        out[p] = 0.0
    for j in range(points.shape[0]):
        column, centre = points[j], point[j]
        for p in range(LEAF):
            difference = column[p] - centre
            out[p] += difference * difference


@subroutine()
def _nearest_in_box(tree: Tree, node: int, point: NDArray[Any]) -> float:
    """Return a bound below the squared distances of the points of this node, infinite if there are none."""
    box, bound = tree.box[node], 0.0
    for j in range(point.shape[0]):
        difference = max(box[j, 0] - point[j], point[j] - box[j, 1], 0.0)
        bound += difference * difference
    return bound


@subroutine()
def _farthest_in_box(tree: Tree, node: int, point: NDArray[Any]) -> float:
    """Return a bound above the squared distances of the points of this node, below 0 if there are none."""
    if tree.lowest[node] == NONE:
        return -1.0
    box, bound = tree.box[node], 0.0
    for j in range(point.shape[0]):
        difference = max(box[j, 1] - point[j], point[j] - box[j, 0])
        bound += difference * difference
    return bound


@subroutine()
def find_nearest(tree: Tree, point: NDArray[Any], found: Search, room: int) -> int:
    """Find the points nearest to this one, up to `room` of those not marked; return how many there are."""
    inner = tree.held.shape[0] - 1
    number, top = 0, 1
    worst, worst_row = np.inf, NONE
    found.stack[0], found.bound[0] = 0, 0.0
    while top > 0:
        top -= 1
        node, bound = found.stack[top], found.bound[top]
        while bound < worst or (bound == worst and tree.lowest[node] < worst_row):
            found.work[0] += 1
            if node >= inner:
                leaf = node - inner
                _measure_leaf(tree, leaf, point, found.buffer)
                for p in range(tree.held[leaf]):
                    distance = found.buffer[p]
                    if distance > worst:
                        continue
                    row = int(tree.rows[leaf, p])
                    if row < 0 or (distance == worst and row > worst_row):
                        continue
                    at = min(number, room - 1)
                    while at > 0 and (
                        found.distance[at - 1] > distance
                        or (found.distance[at - 1] == distance and found.row[at - 1] > row)
                    ):
                        found.distance[at], found.row[at] = found.distance[at - 1], found.row[at - 1]
                        found.place[at] = found.place[at - 1]
                        at -= 1
                    found.distance[at], found.row[at], found.place[at] = distance, row, leaf * LEAF + p
                    number = min(number + 1, room)
                    if number == room:
                        worst, worst_row = found.distance[room - 1], found.row[room - 1]
                break
            left, right = 2 * node + 1, 2 * node + 2
            a, b = _nearest_in_box(tree, left, point), _nearest_in_box(tree, right, point)
            if a <= b:
                found.stack[top], found.bound[top] = right, b
                node, bound = left, a
            else:
                found.stack[top], found.bound[top] = left, a
                node, bound = right, b
            top += 1
    return number


@subroutine()
def find_farthest(tree: Tree, point: NDArray[Any], found: Search) -> int:
    """Return the row of the point farthest from this one."""
    inner = tree.held.shape[0] - 1
    best, best_row, top = -1.0, NONE, 1
    found.stack[0], found.bound[0] = 0, np.inf
    while top > 0:
        top -= 1
        node, bound = found.stack[top], found.bound[top]
        while bound > best or (bound == best and tree.lowest[node] < best_row):
            found.work[0] += 1
            if node >= inner:
                leaf = node - inner
                _measure_leaf(tree, leaf, point, found.buffer)
                for p in range(tree.held[leaf]):
                    distance, row = found.buffer[p], int(tree.rows[leaf, p])
                    if distance > best or (distance == best and row < best_row):
                        best, best_row = distance, row
                break
            left, right = 2 * node + 1, 2 * node + 2
            a, b = _farthest_in_box(tree, left, point), _farthest_in_box(tree, right, point)
            if a >= b:
                found.stack[top], found.bound[top] = right, b
                node, bound = left, a
            else:
                found.stack[top], found.bound[top] = left, a
                node, bound = right, b
            top += 1
    return best_row
