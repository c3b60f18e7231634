"""Sets of parameters that numbers in a program depend on, and pairs that interact."""

import numpy as np
import scipy.sparse as sp

ZERO, CONSTANT = 0, 1
"""Set numbers of what is known to be zero, and of what has no parameter in it."""

MAX_BITS = 2**30
"""Of all sets together: beyond these 256 MB, keys included, a program is too large."""


MAX_EDGES = 20_000_000
"""Of a graph that is returned: with more of them it is not sparse."""

FEW = 8
"""Members of a set that are found one by one faster than all together."""


class TooLargeError(Exception):
    """The program would take too much time or memory to follow."""


class Sets:
    """Distinct sets of parameters, numbered as they are met.

    An array of set numbers stands for an array of values: entry by entry, it says which
    parameters the value depends on. Tall data have few distinct sets, so that the cost
    of an operation is a few passes over an array of integers.

    A set is an integer: bit $i + 1$ stands for parameter $i$, and bit 0 for "not known
    to be zero". So the set of a sum is the bitwise or.

    dim: number of parameters.
    """

    def __init__(self, dim: int):
        self.dim = dim
        self._masks: list[int] = []
        self._numbers: dict[bytes, int] = {}
        for mask in (0, 1):  # ZERO and CONSTANT
            self._number(mask)
        self._partners: dict[int, int] = {}
        self._with_itself = {ZERO, CONSTANT}

    def singletons(self) -> np.ndarray:
        """The vector of parameters: each depends on itself."""
        return np.array([self._number(2 << i | 1) for i in range(self.dim)], np.intp)

    def union(self, *arrays: np.ndarray) -> np.ndarray:
        """Sets of sums, entry by entry, under broadcasting."""
        total = arrays[0]
        for other in arrays[1:]:
            total = self._union(total, other)
        return total

    def product(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Sets of products: the factors interact; a known zero stays zero."""
        if not (first.all() and second.all()):
            is_zero = (first == ZERO) | (second == ZERO)
            first, second = (np.where(is_zero, ZERO, a) for a in (first, second))
        self.interact(first, second)
        return self.union(first, second)

    def nonlinear(self, *arrays: np.ndarray) -> np.ndarray:
        """Sets of a general function, entry by entry: all parameters in it interact."""
        total = np.asarray(np.maximum(self.union(*arrays), CONSTANT))
        self.interact(total, total)
        return total

    def interact(self, first: np.ndarray, second: np.ndarray) -> None:
        """Note that second derivatives may link the two sets, entry by entry."""
        if first is second:
            numbers = set(distinct(np.ravel(first))[0].tolist()) - self._with_itself
            self._with_itself |= numbers
            for number in numbers:
                self._link(number, number)
            return
        is_linked = np.asarray(np.minimum(first, second) > CONSTANT)
        if is_linked.any():
            pairs = self._pairs(first, second, is_linked)[0]
            for one, other in pairs:
                self._link(one, other)

    def union_all(self, *arrays: np.ndarray) -> np.ndarray:
        """One set number for all entries together, of shape ()."""
        mask = 0
        for array in arrays:
            for number in distinct(np.ravel(array))[0].tolist():
                mask |= self._masks[number]
        return np.array(self._number(mask), np.intp)

    def union_along(self, array: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
        """Sets of sums along axes, which vanish."""
        kept = [axis for axis in range(array.ndim) if axis not in axes]
        shape = tuple(array.shape[axis] for axis in kept)
        if not axes:
            return array
        if array.size == 0:
            return np.full(shape, ZERO, np.intp)
        if not kept:
            return self.union_all(array)
        rows = array.transpose(*axes, *kept).reshape(-1, *shape)
        while len(rows) > 1:
            half = len(rows) // 2
            merged = self.union(rows[:half], rows[half : 2 * half])
            rows = np.concatenate([merged, rows[2 * half :]])
        return rows[0]

    def union_by_group(
        self, rows: np.ndarray, groups: np.ndarray, number: int
    ) -> np.ndarray:
        """Sets of sums over the rows of each group; shape (number, ...)."""
        order = np.argsort(groups, kind="stable")
        rows, groups = rows[order], groups[order]
        while len(groups) and (groups[1:] == groups[:-1]).any():
            begins = np.flatnonzero(np.append(True, groups[1:] != groups[:-1]))
            sizes = np.diff(np.append(begins, len(groups)))
            rank = np.arange(len(groups)) - np.repeat(begins, sizes)
            even = np.flatnonzero(rank % 2 == 0)
            is_paired = np.append(groups, -1)[even + 1] == groups[even]
            merged = rows[even]
            left = even[is_paired]
            merged[is_paired] = self.union(rows[left], rows[left + 1])
            rows, groups = merged, groups[even]
        total = np.full((number, *rows.shape[1:]), ZERO, np.intp)
        total[groups] = rows
        return total

    def members(self, array: np.ndarray) -> np.ndarray:
        """Which parameters each entry depends on, of shape (..., dim)."""
        numbers, places = distinct(np.ravel(array))
        rows = np.zeros((len(numbers), self.dim), bool)
        for row, number in zip(rows, numbers.tolist(), strict=True):
            row[_members(self._masks[number] >> 1)] = True
        return rows[places].reshape(*array.shape, self.dim)

    def bent(self) -> np.ndarray:
        """Which parameters the program may not be linear in, all others held."""
        return np.array([row >> i & 1 for i, row in enumerate(self._rows())], bool)

    def graph(self) -> sp.csr_matrix:
        """Pairs that interact, as a symmetric boolean matrix with its diagonal."""
        rows = [row | 1 << i for i, row in enumerate(self._rows())]
        degrees = [row.bit_count() for row in rows]
        if sum(degrees) > MAX_EDGES:
            raise TooLargeError("nearly all of its many parameters interact")
        indices = np.concatenate([_members(row) for row in rows])
        entries = np.ones(len(indices), bool), indices, np.cumsum([0, *degrees])
        return sp.csr_matrix(entries, shape=(self.dim, self.dim))

    def _rows(self) -> list[int]:
        """Which parameters each one interacts with, one bit each."""
        rows = [0] * self.dim
        for number, partners in self._partners.items():
            for i in _members(self._masks[number] >> 1):
                rows[i] |= partners >> 1
        return rows

    def _number(self, mask: int) -> int:
        # Not the integer itself: Python's hash of 2**i repeats after 61 bits.
        key = mask.to_bytes(self.dim // 8 + 1, "little")
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._masks)
            self._masks.append(mask)
            if number * self.dim > MAX_BITS:
                raise TooLargeError("it combines the parameters in too many ways")
        return number

    def _link(self, first: int, second: int) -> None:
        masks, partners = self._masks, self._partners
        partners[first] = partners.get(first, 0) | masks[second]
        partners[second] = partners.get(second, 0) | masks[first]

    def _union(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Sets of sums; only those of two different sets have to be looked up."""
        total = np.asarray(np.maximum(first, second))
        is_new = np.asarray((np.minimum(first, second) > CONSTANT) & (first != second))
        if not is_new.any():
            return total
        pairs, places = self._pairs(first, second, is_new)
        masks = self._masks
        results = [self._number(masks[one] | masks[other]) for one, other in pairs]
        total[is_new] = np.array(results, np.intp)[places]
        return total

    def _pairs(
        self, first: np.ndarray, second: np.ndarray, where: np.ndarray
    ) -> tuple[list[tuple[int, int]], np.ndarray]:
        """Distinct pairs of set numbers at some entries, and which one is at each."""
        base = len(self._masks)
        codes = np.asarray(first * base + second)[where]
        values, places = distinct(codes)
        return [divmod(code, base) for code in values.tolist()], places


def distinct(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct entries of a vector of counts, and where each entry is among them."""
    if codes.size == 1:
        return codes, np.zeros(1, int)
    top = int(codes.max(initial=0)) + 1
    if top > 4 * codes.size:
        return np.unique(codes, return_inverse=True)
    is_met = np.zeros(top, bool)
    is_met[codes] = True
    return np.flatnonzero(is_met), (np.cumsum(is_met) - 1)[codes]


def _members(mask: int) -> np.ndarray:
    """Places of the bits that are set, in order."""
    if mask.bit_count() <= FEW:
        places = []
        while mask:
            places.append((mask & -mask).bit_length() - 1)
            mask &= mask - 1
        return np.array(places, int)
    data = mask.to_bytes(mask.bit_length() // 8 + 1, "little")
    return np.flatnonzero(
        np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")
    )
