"""A graph of ONNX operators, built node by node."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

OPSET = 18
"""The version of the standard operators. It is in every runtime since 2023."""
IR_VERSION = 8
"""The version of the file format, the oldest that goes with `OPSET`."""


def needed(module: str) -> Any:
    """Import a module of the extra ``onnx``, or raise an error that says how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        name = module.partition(".")[0]
        raise ImportError(f'this needs {name}: pip install ".[onnx]"') from error


class Graph:
    """Nodes and constants. ``graph("Add", a, b)`` adds a node, and returns the name of its output.

    An input is the name of a tensor, or numbers. Whole numbers become int64, others float64.
    """

    def __init__(self, outer: Graph | None = None) -> None:
        self._helper = needed("onnx.helper")
        self.nodes: list[Any] = []
        self.constants: dict[tuple[Any, ...], Any] = {} if outer is None else outer.constants
        self._used: list[int] = [0] if outer is None else outer._used
        self.widest = 1
        """Most numbers of one row in any tensor, as far as `wide` was told."""

    def __call__(self, operator: str, *inputs: Any, **attributes: Any) -> str:
        """Add a node, and return the name of its output."""
        names = [given if isinstance(given, str) else self.constant(given) for given in inputs]
        out = self._new(operator.lower())
        self.nodes.append(self._helper.make_node(operator, names, [out], **attributes))
        return out

    def _new(self, stem: str) -> str:
        self._used[0] += 1
        return f"{stem}_{self._used[0]}"

    def constant(self, values: Any) -> str:
        """Return the name of a constant. Equal constants share one."""
        array = np.asarray(values)
        if array.dtype.kind in "iub":
            array = array.astype(np.int64)
        elif array.dtype.kind == "f":
            array = array.astype(np.float64)
        if array.dtype.kind in "US":
            array = array.astype(object)
        known = tuple(array.ravel()) if array.dtype == object else array.tobytes()
        key = (array.dtype.str, array.shape, known)
        if key not in self.constants:
            name = self._new("constant")
            self.constants[key] = needed("onnx.numpy_helper").from_array(array, name)
        return str(self.constants[key].name)

    def wide(self, numbers: int) -> None:
        """Note that some tensor has so many numbers for each row."""
        self.widest = max(self.widest, int(numbers))

    def cast(self, value: str, dtype: Any) -> str:
        """Add a cast to a NumPy type."""
        return self("Cast", value, to=_element(dtype))

    def name(self, value: str, title: str) -> None:
        """Add an output with a title."""
        self.nodes.append(self._helper.make_node("Identity", [value], [title]))

    def down(self, values: str, bits: Any) -> str:
        """Add nodes that divide whole numbers by 2^bits, rounded down."""
        return self("Floor", self("Mul", values, np.ldexp(1.0, -np.asarray(bits))))

    def scan(self, body: Callable[..., str], *stacked: np.ndarray) -> str:
        """Call ``body`` for the entries of some arrays, and stack the vectors that it returns.

        ``body(inner, *entries)`` adds nodes to the graph ``inner``. So the size of the graph does
        not grow with the number of entries. The result is (n_entries, n_rows), in float64.
        """
        inner = Graph(self)
        arrays = [np.asarray(array) for array in stacked]
        entries = [self._new("entry") for _ in arrays]
        value = self._helper.make_tensor_value_info
        given = [
            value(name, _element("int64" if a.dtype.kind in "iu" else "float64"), a.shape[1:])
            for name, a in zip(entries, arrays, strict=True)
        ]
        result = body(inner, *entries)
        made = [value(result, _element("float64"), [None])]
        graph = self._helper.make_graph(inner.nodes, self._new("body"), given, made)
        return self("Scan", *arrays, body=graph, num_scan_inputs=len(arrays))

    def model(self, name: str, inputs: Any, outputs: Any) -> Any:
        """Return the checked model. Inputs and outputs are (name, type, shape)."""
        value = self._helper.make_tensor_value_info
        graph = self._helper.make_graph(
            self.nodes,
            name,
            [value(title, _element(dtype), shape) for title, dtype, shape in inputs],
            [value(title, _element(dtype), shape) for title, dtype, shape in outputs],
            list(self.constants.values()),
        )
        opsets = [self._helper.make_opsetid("", OPSET)]
        made = self._helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)
        needed("onnx.checker").check_model(made, full_check=True)
        return made


def _element(dtype: Any) -> int:
    """Return the number of a type in ONNX."""
    if dtype == "string":
        return int(needed("onnx").TensorProto.STRING)
    return int(needed("onnx.helper").np_dtype_to_tensor_dtype(np.dtype(dtype)))
