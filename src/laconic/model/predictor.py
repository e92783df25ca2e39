"""The deployable result of a fit: flat arrays without a trainer."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from laconic.data.cells import is_frame, read_series
from laconic.data.dates import DATE, InUnit, is_date, is_unit
from laconic.data.elsewhere import in_words, is_dask, is_elsewhere, is_on_device
from laconic.data.frames import (
    OTHER,
    asked_categories,
    category_codes,
    encode_days,
    encode_frame,
    encode_times,
    frame_matrix,
    holds_times,
    numbers_of,
)
from laconic.losses import LINKS, Link, decide, find_link
from laconic.model.cost import Cost, model_cost
from laconic.model.feature_maps import FeatureMap, feature_name, map_width, model_scores
from laconic.model.predictor_file import read_predictor, write_predictor
from laconic.model.primitives import take
from laconic.notebook import MOST_ROWS, box, show
from laconic.numeric.namespaces import is_tensor, numbers_like, to_host
from laconic.numeric.sparse_rows import canonical
from laconic.registry import (
    QUANTISE,
    TENSOR_ANSWER,
    TENSOR_COLUMNS,
    TENSOR_LABELS,
    TO_C,
    TO_ONNX,
    find,
)


class Predictor:
    """A predictor computes scores: columns of the atoms times weights, plus the intercept.

    Eq. (1) picks the class from the scores.

    Parameters
    ----------
    map : FeatureMap
        Computes the columns of the atoms.
    weights : ndarray of shape (n_columns, n_outputs)
        Weights in the units of the input. There is one score per class, or a single score that is
        above zero for the second of two classes. The loss says which.
    intercept : ndarray of shape (n_outputs,)
    classes : ndarray of shape (n_classes,)
        Class labels.
    loss : str or Loss
        The loss with which the weights were fitted, by name or as an object of your own. It says
        how scores become probabilities.
    widths : sequence of int
        Number of columns of every atom: 1, or the size of its group.
    n_features : int
        Number of columns of an input row.
    feature_names : sequence of str, optional
    categories : mapping of int to mapping of int to str, optional
        What the codes of a categorical feature stand for. Only the categories that the atoms ask
        about are kept. A value with another code, or without a code, is *other*. It answers no to
        every question.
    other : float, default=-1
        The code of *other* in a data frame. It is NaN for files of version 1, in which such values
        counted as missing.
    units : mapping of int to str, optional
        Units of the features that are dates or durations, as the atoms see them:
        ``"days since 2024-01-31"``, ``"date"`` for days since 1970, or ``"days"``, ``"hours"``,
        ``"minutes"`` or ``"seconds"``. (In an array, dates are always days since 1970.)
    class_factors : sequence of float, optional
        The factors by which the fit multiplied the weights of the rows of each class. By default
        they are not known.
    """

    def __init__(
        self,
        map: FeatureMap,
        weights: np.ndarray,
        intercept: np.ndarray,
        classes: np.ndarray,
        loss: str | Link,
        widths: Sequence[int],
        n_features: int,
        feature_names: Sequence[str] | None = None,
        categories: Mapping[int, Mapping[int, Any]] | None = None,
        other: float = OTHER,
        units: Mapping[int, str] | None = None,
        class_factors: Sequence[float] | None = None,
    ) -> None:
        self.map = map
        self.weights = weights
        self.intercept = intercept
        self.classes = classes
        self._link = find_link(loss)
        self.loss = self._link.name
        self._meant: Callable[[np.ndarray], np.ndarray] | None
        self._meant = getattr(self._link, "probabilities", None)
        self.widths = [int(w) for w in widths]
        self.n_features = n_features
        self.feature_names = None if feature_names is None else [str(n) for n in feature_names]
        self.categories = {
            int(f): {int(code): str(label) for code, label in known.items()}
            for f, known in (categories or {}).items()
        }
        self.other = other
        self.units = {int(f): str(unit) for f, unit in (units or {}).items()}
        self.class_factors = None
        if class_factors is not None:
            self.class_factors = [float(factor) for factor in class_factors]
        if not np.isnan(other) and hasattr(map, "asked"):
            self.categories = asked_categories(self.categories, map.asked())
        self._check()

    def _check(self) -> None:
        """Raise an error if the parts do not fit together, as they would give wrong answers."""
        n_columns, n_outputs = sum(self.widths), self._link.n_outputs(len(self.classes))
        sound = (
            self.weights.shape == (n_columns, n_outputs)
            and self.intercept.shape == (n_outputs,)
            and map_width(self.map) == n_columns
            and (self.feature_names is None or len(self.feature_names) == self.n_features)
            and all(0 <= f < self.n_features for f in (*self.categories, *self.units))
            and all(is_unit(unit) for unit in self.units.values())
            and bool(np.isfinite(self.weights).all() and np.isfinite(self.intercept).all())
        )
        if self.class_factors is not None:
            sound = sound and len(self.class_factors) == len(self.classes)
            sound = sound and all(0.0 < factor <= 1.0 for factor in self.class_factors)
        if sound:  # only now, as a map may read all features of very wide rows
            read = self.map.features()
            sound = len(read) == 0 or (read[0] >= 0 and read[-1] < self.n_features)
        if not sound:
            raise ValueError("the parts of the predictor do not fit together")

    def __repr__(self) -> str:
        cost = self.cost()
        return (
            f"Predictor({cost.atoms} atoms ({self.map.kind}), {cost.features} of "
            f"{self.n_features} features, {len(self.classes)} classes, loss {self.loss!r})"
        )

    def scores(self, X: Any) -> np.ndarray:
        """Return the scores (n_rows, n_outputs) of an array, a sparse matrix or a data frame.

        Of a tensor, or an array on a GPU, this and other answers for rows are of the same kind and
        in the same place. Labels that are no numbers are an array of NumPy.

        If the predictor knows feature names, it finds the columns of a frame by name. Columns that
        it does not read may be left out. The categories, dates and durations of a frame are
        encoded. In an array, a categorical feature holds the codes of ``categories``, dates are
        days since 1970, and durations are numbers in the unit of ``units``. Only stumps, rules
        and filled columns accept missing values. A missing value meets no condition but "is
        missing".
        """
        return self._answer(self.encoded_scores, X)

    def encoded_scores(self, X: Any) -> Any:
        """Return the scores of an array or sparse matrix, for numbers already in ``units``.

        Of a tensor, this and the next three return tensors on its device.
        """
        self._check_width(X)
        return model_scores(self.map, X, self.weights, self.intercept)

    def encoded_labels(self, X: Any) -> Any:
        """Return the label of every row, as `predict` does, for numbers already in ``units``.

        Labels that are no numbers are always an array.
        """
        codes = decide(self.encoded_scores(X))
        return find(TENSOR_LABELS)(self.classes, codes) if is_tensor(X) else self.classes[codes]

    def encoded_columns(self, X: Any) -> Any:
        """Return the columns of the atoms, for numbers already in ``units``."""
        return find(TENSOR_COLUMNS)(self.map, X) if is_tensor(X) else self.map.columns(X)

    def encoded_probabilities(self, X: Any) -> Any:
        """Return class probabilities, as `predict_proba` does, for numbers already in ``units``."""
        return self._meaning()(self.encoded_scores(X))

    @property
    def link(self) -> Link:
        """The link, which says what scores mean."""
        return self._link

    @property
    def has_probabilities(self) -> bool:
        """Whether scores stand for probabilities."""
        return self._meant is not None

    def _meaning(self) -> Callable[[np.ndarray], np.ndarray]:
        """Return the function that turns scores into probabilities."""
        if self._meant is None:
            raise AttributeError(
                "this predictor has no predict_proba, because its scores are not probabilities; "
                "use predict or scores"
            )
        return self._meant

    def _check_width(self, X: Any) -> None:
        """Raise an error if the rows do not have the width of the predictor."""
        shape = tuple(X.shape)
        if len(shape) == 2 and shape[1] == self.n_features:
            return
        images = len(shape) > 1 and shape[1] != self.n_features
        images = images and math.prod(shape) % self.n_features == 0
        hint = f"; give images as rows of pixels, X.reshape(-1, {self.n_features})" * images
        raise ValueError(f"X must have {self.n_features} columns, not shape {shape}{hint}")

    @property
    def reads_tensors(self) -> bool:
        """Whether tensors are read where they are: the link is a known one, and there are no dates.

        Other tensors are read on the processor.
        """
        return not self.units and type(self._link) in LINKS.values()

    def _answer(self, method: Callable[[Any], Any], X: Any) -> Any:
        """Return what a method for numbers answers for rows as users give them."""
        if is_elsewhere(X):
            each = "apply the method to each partition, with X.map_blocks or X.map_partitions"
            read = 'give the rows, such as np.load(file, mmap_mode="r") of a .npy file'
            raise TypeError(f"X is {in_words(X)}; {each if is_dask(X) else read}")
        if is_tensor(X) or is_on_device(X):
            return find(TENSOR_ANSWER)(self, method, X)
        return method(self._matrix(X))

    def _matrix(self, X: Any) -> Any:
        """Return rows in the memory of the processor as numbers in ``units``."""
        if sparse.issparse(X):
            self._check_width(X)
            X = canonical(X if X.format in ("csr", "csc") else X.tocsr())
            return encode_days(X, self.units, self.feature_names)
        if is_frame(X):
            if self.feature_names is not None:
                known = self.categories, self.units, self.other
                return frame_matrix(X, self.feature_names, self.map.features().tolist(), *known)
            self._check_width(X)
            return self._numbers(encode_frame(X, self.categories, self.units))
        matrix = np.asarray(to_host(X))
        self._check_width(matrix)
        if holds_times(matrix):
            return encode_times(matrix, self.units, self.feature_names)
        return encode_days(self._numbers(matrix), self.units, self.feature_names)

    @staticmethod
    def _numbers(X: Any) -> np.ndarray:
        """Return a matrix of numbers. Its type stays the same if it is numeric."""
        matrix = np.asarray(X)
        if matrix.dtype.kind in "biuf":
            return matrix
        if matrix.dtype.kind == "c":
            raise ValueError("X holds complex numbers, and predictors read real ones")
        try:
            return matrix.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(
                "X must hold numbers; if some columns hold text, give a data frame"
            ) from error

    def codes(self, feature: int, values: Any) -> list[float]:
        """Return the codes of the values of a categorical feature."""
        return category_codes(values, self.categories[feature], self.other)

    def numbers(self, feature: int, values: Any) -> np.ndarray:
        """Return values of a feature without categories as numbers. Dates are days since 1970."""
        name = feature_name(feature, self.feature_names)
        unit = self.units.get(feature)
        return numbers_of(read_series(values, name), DATE if is_date(unit) else unit)

    def predict(self, X: Any) -> np.ndarray:
        """Return the label of every row: by the largest score, or by the sign of a single score."""
        return self._answer(self.encoded_labels, X)

    @property
    def predict_proba(self) -> Callable[[Any], np.ndarray]:
        """``predict_proba(X)``: class probabilities (n_rows, n_classes), by the link of the loss.

        If scores do not stand for probabilities, the predictor does not have this attribute. (A
        hole-punching classifier has it if each of its models has it.) Error clumping never has it.
        Regions do not have it if their models have no probabilities, or probabilities of different
        kinds.
        """
        self._meaning()
        return self._probabilities

    def _probabilities(self, X: Any) -> np.ndarray:
        return self._answer(self.encoded_probabilities, X)

    def corrected_proba(self, X: Any) -> np.ndarray:
        """Return class probabilities without the effect of the fit's ``class_weight``.

        A class whose rows weigh f times as much gets f times the odds. With ``"balanced"``,
        `predict_proba` therefore answers as if all classes were equally common. Here every
        probability is divided by the factor of its class, and the results are scaled to sum to one
        again. They are about as calibrated as those of a fit without ``class_weight``. If the fit
        had no ``class_weight``, they equal those of `predict_proba`.
        """
        return self.corrected(self.predict_proba(X))

    def corrected(self, probabilities: Any) -> Any:
        """Correct probabilities from `predict_proba`, as `corrected_proba` does."""
        if self.class_factors is None:
            raise AttributeError(
                "this predictor does not know the class weights of its fit; only predictors of "
                "ShareBoostClassifier and TotalQBoostClassifier know them, and files of earlier "
                "versions do not hold them"
            )
        odds = probabilities / numbers_like(self.class_factors, probabilities)
        return odds / odds.sum(axis=1, keepdims=True)

    def names(self, feature_names: Sequence[str] | None = None) -> list[str]:
        """Return one readable name per column, by default with the predictor's feature names."""
        return self.names_of(self.map, feature_names)

    def names_of(self, map: FeatureMap, feature_names: Sequence[str] | None = None) -> list[str]:
        """Return one readable name per column of a map, or of a part of the predictor's map."""
        features = self.feature_names if feature_names is None else feature_names
        words = {f: InUnit(unit) for f, unit in self.units.items()}
        return map.names(features, {**self.categories, **words})

    def describe(self, file: Any = None) -> None:
        """Print the card of the model: every atom or region, and its weights per class.

        In a notebook, the card is shown as HTML, unless ``file`` is given.
        """
        from laconic.model.card import MOST_LINES

        show(self._card(), lambda: box(self._html(MOST_LINES)), file)

    def _card(self) -> str:
        """Return the model in words and numbers."""
        from laconic.model.card import card

        return card(self)

    def _html(self, most: int = MOST_ROWS) -> list[str]:
        """Return the card as parts of HTML, with at most ``most`` lines of atoms."""
        from laconic.model.html_card import html_card

        return html_card(self, most)

    def _repr_html_(self) -> str:
        return box(self._html())

    def cost(self) -> Cost:
        """Return the cost of predicting one row, and the bytes of the model; see `Cost`."""
        return model_cost(self.map, len(self.widths), self.weights, self.intercept)

    def quantise(
        self, X: Any, bits: int = 8, inputs: str = "auto", y: Any = None, sample_weight: Any = None
    ) -> Any:
        """Return the same model with integers only, for chips without floating point.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_features)
            Training rows. The ranges of inputs and all scales are chosen on them.
        bits : {8, 16}, default=8
            Bits of a weight, and of an input that is scaled.
        inputs : {"auto", "float", "uint8", "int8", "int16"}, default="auto"
            What the device hands over: raw integers as they are, or floats. ``"auto"`` is the type
            of ``X`` if that is uint8, int8 or int16, and float otherwise. Floats are scaled to
            integers, and the scales are part of the model. Inputs beyond the range of the rows (or
            of 8-bit integers) count as the nearest end of the range. Among integers, the largest
            number of the type stands for a missing value, if the model or the rows have any. Balls
            and patches have one scale for all features. So give balls features of similar ranges,
            or use 16 bits.
        y : array-like of shape (n_rows,), optional
            Labels of the rows. With them, the change in error is reported, too.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows. A row of weight 2 counts like the row twice, and a row of weight 0
            is left out.

        Returns
        -------
        IntegerPredictor
            Its ``change`` says how many labels change on the rows. Its `describe` prints that no
            accumulator can overflow.
        """
        return find(QUANTISE)(self, X, bits, inputs, y, sample_weight)

    def to_c(self, name: str = "model", probabilities: bool = False) -> Any:
        """Return the model as one C99 header, which is also valid C++.

        It needs no heap and no recursion. Of the C library it needs at most ``memcpy``, and
        ``expf`` if ``probabilities`` are asked for.
        Its tables are constant, and on an AVR they stay in program memory.

        Parameters
        ----------
        name : str, default="model"
            Prefix of all names in the header.
        probabilities : bool, default=False
            Whether to add a function that computes probabilities. It needs ``expf``.

        Returns
        -------
        CHeader
            ``str(header)`` is its text, ``header.save(path)`` writes it, and ``header.compile()``
            returns an object whose ``predict`` and ``scores`` run the compiled code.

        Notes
        -----
        A predictor that was not quantised computes in float32, in the order of
        `laconic.model.single`. Compile it with ``-ffp-contract=off``.
        """
        return find(TO_C)(self, name, probabilities)

    def to_onnx(
        self, name: str = "model", inputs: str | None = None, probabilities: bool = False
    ) -> Any:
        """Return the model as an ONNX model of standard operators (opset 18).

        Parameters
        ----------
        name : str, default="model"
            Name of the graph.
        inputs : {"float64", "float32"}, default="float64"
            Type of the rows. Everything is computed in float64. A model with integers takes what
            its device hands over, so it refuses this setting.
        probabilities : bool, default=False
            Whether to add the output ``probabilities``.

        Returns
        -------
        OnnxModel
            ``made.proto`` is the model, ``made.save(path)`` writes it, and ``made.predict`` and
            ``made.scores`` run it with onnxruntime.

        Notes
        -----
        The input ``X`` has all features, in the order of the training columns. Categories are their
        codes, dates are numbers in the unit of ``units``, and a missing value is NaN (or the
        reserved number among integers). The outputs are ``label``, (n_rows,), and ``scores``,
        (n_rows, n_scores). Labels are whole numbers or text. Other labels are counted from 0, in
        the order of ``classes``. The file names them all.
        """
        return find(TO_ONNX)(self, name, inputs, probabilities)

    def device_rows(self, X: Any) -> np.ndarray:
        """Return rows as C code of this model reads them, (n_rows, n_features), in float32."""
        return self.dense_rows(X, np.float32)

    def dense_rows(self, X: Any, dtype: Any) -> np.ndarray:
        """Return rows as numbers of one type, (n_rows, n_features). What is not read is 0."""
        X = self._matrix(X)
        rows = np.zeros((X.shape[0], self.n_features), dtype=dtype)
        read = self.map.features()
        with np.errstate(over="ignore"):
            rows[:, read] = take(X, read)
        return rows

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the predictor to a file. Such a file is safe to load, even from a stranger."""
        write_predictor(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Predictor:
        """Read a predictor that `save` wrote, by this version or an older one.

        The file may come from a stranger. It is checked before anything is built from it. A
        `ValueError` says what is wrong.
        """
        return read_predictor(path, cls)
