"""A predictor as an ONNX model of standard operators."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np

from laconic.export.onnx_answers import class_numbers, label_table, labels, probabilities
from laconic.export.onnx_atoms import GraphRows, segment_scores
from laconic.export.onnx_graph import OPSET, Graph, needed
from laconic.export.onnx_inputs import codes
from laconic.export.onnx_leaves import leaves
from laconic.files.whole import whole_file
from laconic.model.card import card
from laconic.model.feature_maps import feature_name
from laconic.model.program import Program, program_of

INPUTS = ("float64", "float32")
"""What a float model may take."""
# Most numbers of one tensor when a model runs from Python.
TOGETHER = 1 << 23


def to_onnx(
    predictor: Any, name: str = "model", inputs: str | None = None, with_probabilities: bool = False
) -> OnnxModel:
    """Return a predictor as an ONNX model; see `laconic.Predictor.to_onnx`."""
    if not isinstance(name, str) or not name:
        raise ValueError(f"name must be a text that is not empty, not {name!r}")
    integers = getattr(predictor, "integers", None)
    if integers is not None and inputs is not None:
        given = integers.inputs.given
        raise ValueError(
            f"this model has integers and takes what its device hands over ({given}); leave out "
            "inputs, or choose them in quantise"
        )
    inputs = "float64" if inputs is None else inputs
    if inputs not in INPUTS:
        raise ValueError(f"inputs must be one of {', '.join(map(repr, INPUTS))}, not {inputs!r}")
    return OnnxModel(predictor, name, np.dtype(inputs), with_probabilities)


class OnnxModel:
    """An ONNX model. `predict` and `scores` run it with onnxruntime.

    Rows are given as to the predictor: arrays, sparse matrices or data frames.

    Attributes
    ----------
    proto : onnx.ModelProto
        The model. Its input is ``X``, (n_rows, n_features). Its outputs are ``label``, ``scores``
        and, if asked for, ``probabilities``.
    opset : int
        The version of the standard operators.
    """

    opset = OPSET

    def __init__(
        self, predictor: Any, name: str, dtype: np.dtype[Any], with_probabilities: bool = False
    ) -> None:
        self.predictor = predictor
        self.name = name
        self._dtype = dtype
        self._integers = getattr(predictor, "integers", None)
        if self._integers is not None:
            given = self._integers.inputs
            self._dtype = np.dtype(np.float32) if given.given == "float" else given.dtype
        self._graph = Graph()
        self._session: Any = None
        self.proto = self._made(with_probabilities)

    def __repr__(self) -> str:
        return f"OnnxModel({self.name!r}, {self})"

    def __str__(self) -> str:
        return f"{self.file_bytes:,} bytes, {self._dtype.name} rows, opset {OPSET}"

    @property
    def file_bytes(self) -> int:
        """Bytes of the file."""
        return int(self.proto.ByteSize())

    # -- use -----------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file."""
        with whole_file(path) as file:
            file.write(self.proto.SerializeToString())

    def rows(self, X: Any) -> np.ndarray:
        """Return rows as the model takes them, (n_rows, n_features). What is not read is 0."""
        if self._integers is not None:
            return np.asarray(self.predictor.device_rows(X))
        return np.asarray(self.predictor.dense_rows(X, self._dtype))

    def predict(self, X: Any) -> np.ndarray:
        """Return the labels that onnxruntime computes."""
        classes: np.ndarray = np.asarray(self.predictor.classes)
        found = self.run("label", self.rows(X))
        table = label_table(classes)[1]
        order = np.argsort(table)
        return classes[order[np.searchsorted(table, found, sorter=order)]]

    def scores(self, X: Any) -> np.ndarray:
        """Return the scores that onnxruntime computes, (n_rows, n_scores)."""
        return self.run("scores", self.rows(X))

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities that onnxruntime computes, if the model has them."""
        if all(output.name != "probabilities" for output in self.proto.graph.output):
            raise AttributeError("this model has no probabilities; use to_onnx(probabilities=True)")
        return self.run("probabilities", self.rows(X))

    def run(self, output: str, rows: np.ndarray) -> np.ndarray:
        """Return an output for rows of the model's own numbers, some rows at a time."""
        if self._session is None:
            runtime = needed("onnxruntime")
            self._session = runtime.InferenceSession(
                self.proto.SerializeToString(), providers=["CPUExecutionProvider"]
            )
        rows = np.ascontiguousarray(rows, dtype=self._dtype)
        step = max(1, TOGETHER // self._graph.widest)
        starts = range(0, max(len(rows), 1), step)
        parts = [self._session.run([output], {"X": rows[s : s + step]})[0] for s in starts]
        return np.concatenate(parts)

    # -- the graph -----------------------------------------------------------------------------

    def _made(self, with_probabilities: bool) -> Any:
        graph, p = self._graph, self.predictor
        program = self._program()
        graph.wide(p.n_features)
        scores = self._scores(program)
        n, unit = program.n_outputs, 1.0 if self._integers is None else self._integers.unit
        numbers = class_numbers(graph, scores, n)
        kind, table = label_table(p.classes)
        score_type = "float64" if self._integers is None else "int64"
        found = [
            ("label", kind, labels(graph, numbers, table), ["rows"]),
            ("scores", score_type, graph.cast(scores, score_type), ["rows", n]),
        ]
        if with_probabilities:
            chances = probabilities(graph, p, scores, n, unit)
            found.append(("probabilities", "float64", chances, ["rows", len(p.classes)]))
        for title, _, made, _ in found:
            graph.name(made, title)
        model = graph.model(
            self.name,
            [("X", self._dtype, ["rows", p.n_features])],
            [(title, dtype, shape) for title, dtype, _, shape in found],
        )
        self._describe(model, n)
        return model

    def _program(self) -> Program:
        if self._integers is not None:
            program: Program = self._integers.program
            return program
        program = program_of(self.predictor, every_score=True)
        for segment in program.segments:
            if "limit" in segment.tables and not np.isfinite(segment.tables["limit"]).all():
                raise ValueError(
                    "the squared radius of a ball overflows; fit the model to rows in other units"
                )
        return program

    def _scores(self, program: Program) -> str:
        """Return the scores of all rows, (n_rows, n_outputs), in float64."""
        graph, integers = self._graph, self._integers
        if integers is None:
            x, inputs, bits = graph.cast("X", np.float64), None, 0
        else:
            inputs, bits = integers.inputs, integers.bits
            x = codes(graph, "X", inputs, self.predictor.n_features)
        bias, leaf = program.bias.astype(np.float64), None
        if program.routing is not None:
            leaf = leaves(graph, x, program.routing)
            start = graph("Gather", bias, graph("Squeeze", leaf, [1]), axis=0)
        else:
            shape = graph("Concat", graph("Shape", "X", start=0, end=1), [1], axis=0)
            start = graph("Expand", bias, shape)
        rows = GraphRows(graph, x, program, leaf, inputs, bits)
        added = [segment_scores(rows, segment) for segment in program.segments]
        if not added:
            return start
        total = added[0]
        for part in added[1:]:
            total = graph("Add", total, part)
        return graph("Add", total, start)

    # -- what the file says --------------------------------------------------------------------

    def _describe(self, model: Any, n_scores: int) -> None:
        from laconic import __version__

        p, integers = self.predictor, self._integers
        inputs = None if integers is None else integers.inputs
        decide = "The class with the largest score wins. Of equal scores the first wins."
        if n_scores == 1:
            decide = f"There is one score. Above 0 it means {p.classes[1]}, else {p.classes[0]}."
        about = [card(p), "", decide]
        about += [] if inputs is None else ["", p.summary()]
        model.producer_name, model.producer_version = "laconic", __version__
        model.doc_string = "\n".join(about)
        facts: dict[str, Any] = {
            "laconic_version": __version__,
            "card": card(p),
            "classes": [str(label) for label in p.classes],
            "features_read": p.map.features().tolist(),
        }
        if p.feature_names is not None:
            facts["feature_names"] = p.feature_names
        if p.units:
            facts["units"] = {feature_name(f, p.feature_names): u for f, u in p.units.items()}
        if p.categories:
            other = p.other if inputs is None else inputs.other
            facts["categories"] = {
                feature_name(f, p.feature_names): {word: code for code, word in words.items()}
                for f, words in p.categories.items()
            }
            facts["other_categories"] = "NaN" if np.isnan(other) else int(other)
        if integers is not None and inputs is not None:
            facts["score_unit"] = integers.unit
            if inputs.missing is not None and inputs.given != "float":
                facts["missing"] = inputs.missing
        texts = {k: v if isinstance(v, str) else json.dumps(v) for k, v in facts.items()}
        needed("onnx.helper").set_model_props(model, texts)
