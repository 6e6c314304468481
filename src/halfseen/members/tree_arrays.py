"""Decision trees as plain arrays: checked, kept as tensors, written as LightGBM's text and ONNX.

LightGBM grows the trees and scores rows with them. Its own file is a text that its parser
trusts, so a folder holds the numbers instead: they are checked, and the text is written anew
from them. So nothing of what somebody else wrote reaches the parser.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from halfseen.arrays import Floats, Tensor
from halfseen.errors import InputError
from halfseen.parallel import threads

if TYPE_CHECKING:
    from halfseen.members.compiled_trees import FastTrees
    from halfseen.onnx_graph import GraphBuilder

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


@dataclass(frozen=True, eq=False)
class TreeArrays:
    """Trees one after another; a row's outputs are the sums of the leaves that it ends in.

    Parameters
    ----------
    nodes
        Inner nodes of each tree; a tree of n inner nodes has n + 1 leaves.
    feature, threshold
        A row goes left at a node where its feature is at most the threshold.
    left, right
        The child of each node: a later node of the tree, or ``-1 - leaf``.
    value
        What each leaf adds.
    outputs
        How many outputs there are; tree t adds to output ``t % outputs``.
    """

    nodes: Ints
    feature: Ints
    threshold: Floats
    left: Ints
    right: Ints
    value: Floats
    outputs: int

    @classmethod
    def of(cls, boosters: Sequence[Any], scale: float = 1.0) -> TreeArrays:
        """Return the trees of boosters of one output each, or of one booster of several.

        `scale` multiplies what the leaves add.
        """
        several = len(boosters) > 1
        trees = [list(_parsed(booster.model_to_string())) for booster in boosters]
        ordered = [tree for turn in zip(*trees, strict=True) for tree in turn]
        outputs = len(boosters) if several else boosters[0].num_model_per_iteration()

        def joined(name: str) -> npt.NDArray[Any]:
            return np.concatenate([tree[name] for tree in ordered]).astype(_TYPES[name])

        return cls(
            np.array([len(tree["feature"]) for tree in ordered], dtype=np.int32),
            joined("feature"),
            joined("threshold"),
            joined("left"),
            joined("right"),
            joined("value") * scale,
            outputs,
        )

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

    # --- folders ----------------------------------------------------------------------------

    def tensors(self) -> dict[str, Tensor]:
        """Return all arrays by name."""
        return {name: getattr(self, name) for name in _TYPES}

    @classmethod
    def restored(cls, tensors: Mapping[str, Tensor], outputs: int, features: int) -> TreeArrays:
        """Rebuild trees from tensors that somebody else may have written."""
        found = {name: tensors[name] for name in _TYPES if name in tensors}
        if set(found) != set(tensors) or len(found) != len(_TYPES):
            raise InputError(f"trees have the tensors {list(_TYPES)}, not {sorted(tensors)}.")
        for name, array in found.items():
            if array.ndim != 1 or array.dtype != _TYPES[name]:
                raise InputError(f"tensor {name!r} of the trees is no vector of {_TYPES[name]}.")
        trees = cls(**found, outputs=outputs)
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
        for tree, (first, size) in enumerate(zip(self._starts, self.nodes, strict=True)):
            children = np.concatenate([a[first : first + size] for a in (self.left, self.right)])
            parents = np.tile(np.arange(size), 2)
            # Each node and leaf but the root has one parent, which comes before it.
            wanted = np.r_[np.arange(-size - 1, 0), np.arange(1, size)] if size else children
            inner_child = children >= 0
            if (np.sort(children) != wanted).any() or (children <= parents)[inner_child].any():
                raise InputError(f"tree {tree} of its trees is not a tree.")

    @property
    def _starts(self) -> Ints:
        starts: Ints = (np.cumsum(self.nodes) - self.nodes).astype(np.int32)
        return starts

    # --- other forms ----------------------------------------------------------------------------

    def text(self) -> str:
        """Return the trees as LightGBM's model text."""
        features = int(self.feature.max(initial=0)) + 1
        lines = [
            "tree",
            "version=v4",
            f"num_class={self.outputs}",
            f"num_tree_per_iteration={self.outputs}",
            "label_index=0",
            f"max_feature_idx={features - 1}",
            "objective=custom",
            "feature_names=" + " ".join(f"x{number}" for number in range(features)),
            "feature_infos=" + " ".join(["[-1e308:1e308]"] * features),
            "",
        ]
        for tree, (first, size) in enumerate(zip(self._starts, self.nodes, strict=True)):
            leaves = self.value[first + tree : first + tree + size + 1]
            lines += [f"Tree={tree}", f"num_leaves={size + 1}", "num_cat=0"]
            if size:
                inner = slice(first, first + size)
                lines += [
                    "split_feature=" + _words(self.feature[inner]),
                    "threshold=" + _words(self.threshold[inner]),
                    "decision_type=" + _words(np.full(size, 2)),
                    "left_child=" + _words(self.left[inner]),
                    "right_child=" + _words(self.right[inner]),
                ]
            lines += ["leaf_value=" + _words(leaves), "is_linear=0", "shrinkage=1", "", ""]
        return "\n".join([*lines, "end of trees", ""])

    def add_to_graph(self, builder: GraphBuilder, rows: str) -> str:
        """Add the trees to an ONNX graph; return the name of the outputs.

        A threshold becomes the largest number of single precision that is not above it: rows are
        in single precision, so each goes the way it goes in LightGBM.
        """
        nodes: dict[str, list[Any]] = {
            name: []
            for name in ("treeids", "nodeids", "featureids", "values", "modes", "true", "false")
        }
        leaves: dict[str, list[Any]] = {n: [] for n in ("treeids", "nodeids", "ids", "weights")}
        single = self.threshold.astype(np.float32)
        single = np.where(
            single > self.threshold, np.nextafter(single, np.float32(-np.inf)), single
        )
        for tree, (first, size) in enumerate(zip(self._starts, self.nodes, strict=True)):
            # Leaves come after the inner nodes: leaf k is node size + k.
            inner = slice(first, first + size)
            left, right = (
                np.where(c < 0, size - 1 - c, c) for c in (self.left[inner], self.right[inner])
            )
            blank = [0] * (size + 1)
            nodes["treeids"] += [tree] * (2 * size + 1)
            nodes["nodeids"] += list(range(2 * size + 1))
            nodes["featureids"] += [*self.feature[inner].tolist(), *blank]
            nodes["values"] += [*single[inner].tolist(), *map(float, blank)]
            nodes["modes"] += ["BRANCH_LEQ"] * size + ["LEAF"] * (size + 1)
            nodes["true"] += [*left.tolist(), *blank]
            nodes["false"] += [*right.tolist(), *blank]
            leaves["treeids"] += [tree] * (size + 1)
            leaves["nodeids"] += list(range(size, 2 * size + 1))
            leaves["ids"] += [tree % self.outputs] * (size + 1)
            leaves["weights"] += self.value[first + tree : first + tree + size + 1].tolist()
        return builder.node(
            "TreeEnsembleRegressor",
            rows,
            domain="ai.onnx.ml",
            n_targets=self.outputs,
            **{f"nodes_{name}": nodes[name] for name in ("treeids", "nodeids", "featureids")},
            nodes_values=nodes["values"],
            nodes_modes=nodes["modes"],
            nodes_truenodeids=nodes["true"],
            nodes_falsenodeids=nodes["false"],
            **{f"target_{name}": values for name, values in leaves.items()},
        )


def _parsed(text: str) -> Iterator[dict[str, npt.NDArray[Any]]]:
    """Yield the arrays of each tree in LightGBM's text."""
    names = {
        "feature": "split_feature",
        "threshold": "threshold",
        "left": "left_child",
        "right": "right_child",
        "value": "leaf_value",
    }
    for block in text.split("\nTree=")[1:]:
        given = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
        yield {
            name: np.array(given.get(word, "").split(), dtype=np.float64)
            for name, word in names.items()
        }


def _words(values: npt.NDArray[Any]) -> str:
    return " ".join(map(repr, values.tolist()))


assert {field.name for field in fields(TreeArrays)} == {*_TYPES, "outputs"}
