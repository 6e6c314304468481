"""A small builder of ONNX graphs: nodes are calls, constants are arrays, names are unique."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from halfseen.errors import InputError

OPSET = 17
ML_OPSET = 3
IR_VERSION = 8
"""Versions that ONNX Runtime has read since 1.12 (2022): an export should run on old servers."""


class GraphBuilder:
    """Collects inputs, constants and nodes; every value in the graph is known by its name.

    Inputs may not take names that are `reserved`, because the outputs have them.
    """

    def __init__(self, reserved: Sequence[str] = ()) -> None:
        self._reserved = frozenset(reserved)
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []
        self._constants: list[TensorProto] = []
        self._nodes: list[onnx.NodeProto] = []
        self._values = itertools.count()

    def input(self, name: str, kind: int, *shape: int) -> str:
        """Declare a column of the table, one value per row; or images, each of the given shape."""
        taken = any(value.name == name for value in self._inputs)
        if not name or taken or name in self._reserved or name.startswith(_PREFIX):
            raise InputError(
                f"The column name {name!r} cannot name an input of an ONNX graph: it is empty, "
                f"repeated, begins with {_PREFIX!r}, or is the name of an output "
                f"({', '.join(sorted(self._reserved))}). Rename the column and fit again."
            )
        self._inputs.append(helper.make_tensor_value_info(name, kind, ["rows", *shape]))
        return name

    def constant(self, array: npt.NDArray[Any]) -> str:
        """Store an array in the graph."""
        name = f"{_PREFIX}constant_{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def strings(self, values: Sequence[str]) -> str:
        """Store a vector of strings in the graph."""
        name = f"{_PREFIX}constant_{len(self._constants)}"
        encoded = np.array([value.encode() for value in values], dtype=object)
        self._constants.append(
            helper.make_tensor(name, TensorProto.STRING, [len(encoded)], encoded)
        )
        return name

    def node(self, operator: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """Apply an operator and return the name of its result."""
        name = f"{_PREFIX}value_{next(self._values)}"
        self._nodes.append(helper.make_node(operator, inputs, [name], domain=domain, **attributes))
        return name

    def only_if(self, condition: str, value: str, make: Callable[[], str], kind: int) -> str:
        """Return what `make` adds, which is computed only where a condition holds, else a value."""
        outer, self._nodes = self._nodes, []
        try:
            branches = []
            for made in (make(), value):
                result = self.node("Identity", made)
                info = helper.make_tensor_value_info(result, kind, None)
                branches.append(helper.make_graph(self._nodes, "halfseen", [], [info]))
                self._nodes = []
        finally:
            self._nodes = outer
        return self.node("If", condition, then_branch=branches[0], else_branch=branches[1])

    def weighted_sum(self, values: Sequence[str], weights: Sequence[float]) -> str:
        """Add values of one shape, each times its weight."""
        shares = [self.constant(np.array(weight, dtype=np.float32)) for weight in weights]
        parts = [self.node("Mul", *pair) for pair in zip(values, shares, strict=True)]
        return self.node("Sum", *parts)

    def output(self, value: str, name: str, kind: int, *shape: int) -> None:
        """Declare a value as a result of the graph, one entry or one row of `shape` per row."""
        self._nodes.append(helper.make_node("Identity", [value], [name]))
        self._outputs.append(helper.make_tensor_value_info(name, kind, ["rows", *shape]))

    def model(self, metadata: dict[str, str]) -> onnx.ModelProto:
        """Return the finished model, checked, with the given metadata."""
        graph = helper.make_graph(
            self._nodes, "halfseen", self._inputs, self._outputs, self._constants
        )
        model = helper.make_model(
            graph,
            producer_name="halfseen",
            ir_version=IR_VERSION,
            opset_imports=[
                helper.make_opsetid("", OPSET),
                helper.make_opsetid("ai.onnx.ml", ML_OPSET),
            ],
        )
        helper.set_model_props(model, metadata)
        onnx.checker.check_model(model)
        return model


_PREFIX = "halfseen/"
