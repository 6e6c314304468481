"""Decision trees as plain arrays: checked, kept as tensors, written as LightGBM's text.

LightGBM grows the trees and scores rows with them. Its own file is a text that its parser
trusts, so a folder holds the numbers instead: they are checked, and the text is written anew
from them. So nothing of what somebody else wrote reaches the parser.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from halfseen.arrays import Floats, Tensor
from halfseen.errors import InputError
from halfseen.parallel import threads

if TYPE_CHECKING:
    from halfseen.members.compiled_trees import FastTrees

MANY = 50_000
"""Rows from which on it pays to load what Numba has compiled."""
MOST_LEAVES = 2_048
"""Of a tree for the compiled sums, which keep one of 256 bytes of leaves as a byte."""
FLOATS = (np.float32, np.float64)
Ints = npt.NDArray[np.int32]
_TYPES = {
    "nodes": np.int32,
    "feature": np.int32,
    "threshold": np.float64,
    "left": np.int32,
    "right": np.int32,
    "value": np.float64,
}


_WORDS = {
    "feature": "split_feature",
    "threshold": "threshold",
    "left": "left_child",
    "right": "right_child",
    "value": "leaf_value",
}
"""What LightGBM's text calls them."""


@dataclass(frozen=True, eq=False)
class TreeArrays:
    """Trees one after another; a row's outputs are the sums of the leaves that it ends in."""

    nodes: Ints
    """Inner nodes of each tree; a tree of n inner nodes has n + 1 leaves."""
    feature: Ints
    threshold: Floats
    """A row goes left at a node where its feature is at most the threshold."""
    left: Ints
    right: Ints
    """The child of each node: a later node of the tree, or ``-1 - leaf``."""
    value: Floats
    """What each leaf adds."""
    outputs: int
    """How many outputs there are; tree t adds to output ``t % outputs``."""

    @classmethod
    def of(cls, boosters: Sequence[Any], scale: float = 1.0) -> TreeArrays:
        """Return the trees of boosters of one output each, or of one booster of several.

        `scale` multiplies what the leaves add.
        """
        several = len(boosters) > 1
        trees = [list(_parsed(booster.model_to_string())) for booster in boosters]
        ordered = [tree for turn in zip(*trees, strict=True) for tree in turn]
        outputs = len(boosters) if several else boosters[0].num_model_per_iteration()
        arrays: dict[str, Any] = {
            name: np.concatenate([tree[name] for tree in ordered]).astype(_TYPES[name])
            for name in _WORDS
        }
        arrays["value"] *= scale
        nodes = np.array([len(tree["feature"]) for tree in ordered], dtype=np.int32)
        return cls(nodes, **arrays, outputs=outputs)

    def sums(self, rows: npt.NDArray[Any]) -> Floats:
        """Return the outputs of each row: (rows, outputs); many rows by the extra ``fast``."""
        if len(rows) >= MANY and rows.dtype in FLOATS and self._fast is not None:
            return self._fast.sums(rows)
        # The text knows of no inputs behind the last one that a tree asks for.
        found = self._booster.predict(
            rows, raw_score=True, num_threads=threads(), predict_disable_shape_check=True
        )
        sums: Floats = np.asarray(found, dtype=np.float64).reshape(len(rows), self.outputs)
        return sums

    @cached_property
    def _fast(self) -> FastTrees | None:
        if self.nodes.max() >= MOST_LEAVES:
            return None
        try:
            from halfseen.members.compiled_trees import FastTrees
        except (ImportError, AttributeError):  # Numba stumbles over a user's own coverage.py
            return None
        return FastTrees.of(self)

    @cached_property
    def _booster(self) -> Any:
        import lightgbm

        return lightgbm.Booster(model_str=self.text())

    def tensors(self) -> dict[str, Tensor]:
        return {name: getattr(self, name) for name in _TYPES}

    @classmethod
    def restored(cls, tensors: Mapping[str, Tensor], outputs: int, features: int) -> TreeArrays:
        """Rebuild trees from tensors that somebody else may have written."""
        arrays = {name: tensors[name] for name in _TYPES if name in tensors}
        if set(arrays) != set(tensors) or len(arrays) != len(_TYPES):
            raise InputError(f"trees have the tensors {list(_TYPES)}, not {sorted(tensors)}.")
        for name, array in arrays.items():
            if array.ndim != 1 or array.dtype != _TYPES[name]:
                raise InputError(f"tensor {name!r} of the trees is no vector of {_TYPES[name]}.")
        trees = cls(**arrays, outputs=outputs)
        trees._check(features)
        return trees

    def _check(self, features: int) -> None:
        inner, trees = int(self.nodes.sum()), len(self.nodes)
        lengths = [len(self.feature), len(self.threshold), len(self.left), len(self.right)]
        if (self.nodes < 0).any() or set(lengths) - {inner} or len(self.value) != inner + trees:
            raise InputError("the arrays of its trees differ in length.")
        if not trees or self.outputs < 1 or trees % self.outputs:
            raise InputError(f"{trees} trees cannot give {self.outputs} outputs each.")
        if not np.isfinite(self.threshold).all() or not np.isfinite(self.value).all():
            raise InputError("its trees hold numbers that are not finite.")
        if ((self.feature < 0) | (self.feature >= features)).any():
            raise InputError(f"its trees ask for inputs beyond the {features} there are.")
        for tree, inner_nodes, _ in self.each():
            children = np.concatenate([self.left[inner_nodes], self.right[inner_nodes]])
            size = inner_nodes.stop - inner_nodes.start
            parents = np.tile(np.arange(size), 2)
            # Each node and leaf but the root has one parent, which comes before it.
            wanted = np.r_[np.arange(-size - 1, 0), np.arange(1, size)] if size else children
            inner_child = children >= 0
            if (np.sort(children) != wanted).any() or (children <= parents)[inner_child].any():
                raise InputError(f"tree {tree} of its trees is not a tree.")

    def each(self) -> Iterator[tuple[int, slice, Floats]]:
        """Yield the number of each tree, where its inner nodes stand, and what its leaves add."""
        first = 0
        for tree, size in enumerate(self.nodes.tolist()):
            yield tree, slice(first, first + size), self.value[first + tree :][: size + 1]
            first += size

    def text(self) -> str:
        """Return the trees as LightGBM's model text."""
        features = int(self.feature.max(initial=0)) + 1
        inputs = " ".join(f"x{number}" for number in range(features))
        infos = " ".join(["[-1e308:1e308]"] * features)
        lines = [
            f"tree\nversion=v4\nnum_class={self.outputs}\nnum_tree_per_iteration={self.outputs}",
            f"label_index=0\nmax_feature_idx={features - 1}\nobjective=custom",
            f"feature_names={inputs}\nfeature_infos={infos}\n",
        ]
        for tree, inner, leaves in self.each():
            lines += [f"Tree={tree}", f"num_leaves={len(leaves)}", "num_cat=0"]
            if len(leaves) > 1:
                names = ("feature", "threshold", "left", "right")
                lines += [f"{_WORDS[n]}={_words(getattr(self, n)[inner])}" for n in names]
                lines += ["decision_type=" + _words(np.full(len(leaves) - 1, 2))]
            lines += ["leaf_value=" + _words(leaves), "is_linear=0", "shrinkage=1", "", ""]
        return "\n".join([*lines, "end of trees", ""])


def _parsed(text: str) -> Iterator[dict[str, npt.NDArray[Any]]]:
    """Yield the arrays of each tree in LightGBM's text."""
    for block in text.split("\nTree=")[1:]:
        given = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
        yield {
            name: np.array(given.get(word, "").split(), dtype=np.float64)
            for name, word in _WORDS.items()
        }


def _words(values: npt.NDArray[Any]) -> str:
    return " ".join(map(repr, values.tolist()))
