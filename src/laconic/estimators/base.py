"""`LaconicClassifier`: what all estimators share, and the single way from rows to labels."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from laconic.data.doubts import stacklevel_of_user
from laconic.data.elsewhere import in_words, is_dask, is_elsewhere, is_large_map, is_on_device
from laconic.data.frames import Categories, Units
from laconic.data.labels import check_labels, check_mask, check_no_name, with_plain_type
from laconic.data.validation import validated
from laconic.estimators.lazily import lazily
from laconic.files.journal import EVERY
from laconic.notebook import MOST_ROWS, box, show
from laconic.numeric.namespaces import check_tensor, is_tensor, to_host


def _has_probabilities(self: LaconicClassifier) -> bool:
    return self._has_probabilities()


class LaconicClassifier(ClassifierMixin, BaseEstimator):
    """A classifier that predicts through its predictor.

    The ``fit`` of a subclass calls `_check_settings` and `_validated`, and sets ``classes_`` and
    ``predictor_``. A subclass may override `_draws` and `_has_probabilities`.
    """

    classes_: np.ndarray
    n_features_in_: int
    predictor_: Any
    checkpoint: Any
    random_state: Any
    _categories: Categories
    _units: Units
    _save_every = EVERY
    """Seconds between two records of a checkpoint."""
    _fitted = "predictor_"
    """The attribute that only a fitted estimator has."""
    _takes_large_maps = True
    """Whether a memory map of very many rows can be learned from."""

    # -- settings and input --------------------------------------------------------------------

    def _check_settings(self) -> None:
        """Refuse wrong settings before looking at the data."""
        self._validate_params()
        drawn = self._draws()
        seeded = isinstance(self.random_state, Integral)
        if drawn is not None and self.checkpoint is not None and not seeded:
            what, same = drawn
            raise ValueError(
                f"a checkpoint {what} needs an integer random_state, so that a resumed fit {same}"
            )
        for callback in getattr(self, "callbacks", None) or ():
            if not callable(callback):
                raise TypeError(f"callbacks must be a list of callables; {callback!r} is not one")

    def _draws(self) -> tuple[str, str] | None:
        """Return which fits draw at random, and what a resumed fit must repeat.

        Both are parts of an error message. None means that the fit draws nothing.
        """
        return None

    def _validated(self, X: Any, y: Any = None, reset: bool = False, weight: Any = None) -> Any:
        """Check input as scikit-learn does. Only fits pass ``y``, ``reset`` and ``weight``."""
        check_tensor(X)
        if is_elsewhere(X):
            raise TypeError(self._refused(X, reset))
        if is_on_device(X):
            if reset:
                raise TypeError(
                    f"{type(self).__name__} learns from rows in the memory of the processor, and X "
                    "is on a GPU; give X.cpu() for a tensor of torch, X.get() for an array of CuPy"
                )
            from laconic.estimators.on_device import new_rows

            return new_rows(self, X)
        X = to_host(X)
        if reset and is_large_map(X) and not self._takes_large_maps:
            raise TypeError(
                f"{self._in_one_memory('a memory map of ' + format(len(X), ',') + ' rows')}. If "
                "they fit into memory many times over, give np.array(X)"
            )
        if reset:
            check_no_name(y, "y")
            y = with_plain_type(to_host(y))
            check_mask(y, "y")
            check_labels(y)
        labels = {"y": y} if reset else {}
        return validated(self, X, **labels, reset=reset, weight=weight, **self._input())

    def _refused(self, X: Any, fits: bool) -> str:
        """Say why rows that are elsewhere are refused, and what to do."""
        if fits:
            return self._in_one_memory(in_words(X))
        if is_dask(X):
            remedy = "apply it to each partition, with X.map_blocks or X.map_partitions"
        else:
            remedy = (
                'give the rows: np.load(file, mmap_mode="r") of a .npy file, or '
                "dask.dataframe.read_parquet(path) without the column of labels"
            )
        return f"X is {in_words(X)}; {remedy}"

    def _in_one_memory(self, given: str) -> str:
        return (
            f"{type(self).__name__} learns from rows in one memory, and X is {given}; fit it on a "
            "sample of the rows: the fitted model predicts all of them"
        )

    def _input(self) -> dict[str, Any]:
        """Return the options of the check that say what kinds of input are accepted."""
        return {"accept_sparse": "csr"}

    def _new_rows(self, X: Any) -> Any:
        """Check new rows for a fitted estimator, and return them as numbers."""
        check_is_fitted(self, self._fitted)
        return self._validated(X)

    # -- fitting -------------------------------------------------------------------------------

    @staticmethod
    def _until_interrupted(
        run: Callable[[], object], state: Any, kept: Callable[[], str | None]
    ) -> None:
        """Call ``run``. After Ctrl-C, warn that the model keeps what it has learned.

        ``kept`` names what is kept. If it returns None, there is nothing to keep, and Ctrl-C is
        raised again.
        """
        try:
            run()
        except KeyboardInterrupt:
            what = kept()
            if what is None:
                raise
            state.status = "interrupted"
            warnings.warn(
                f"fit was interrupted; the model keeps {what}", stacklevel=stacklevel_of_user()
            )

    # -- predicting ----------------------------------------------------------------------------

    @property
    def _predictor(self) -> Any:
        """The object that predicts rows of numbers: a `Predictor`, or one with the same methods."""
        return self.predictor_

    @lazily
    def predict(self, X: Any) -> np.ndarray:
        """Return the class of every row.

        Of a tensor, or an array on a GPU, this and the other answers for rows are of the same kind
        and in the same place, except for labels that are no numbers: they are an array of NumPy. It
        is the class with the largest score. If there is only one score, its sign decides.
        """
        rows = self._new_rows(X)
        return self._predictor.encoded_labels(rows)

    @lazily
    def decision_function(self, X: Any) -> np.ndarray:
        """Return the class scores of every row.

        Their shape is (n_rows, n_classes). For two classes it is (n_rows,), and a score above zero
        means the second class.
        """
        scores = self._scores(X)
        if scores.shape[1] == 1:
            return scores[:, 0]
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    @available_if(_has_probabilities)
    @lazily
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the class probabilities, (n_rows, n_classes).

        The method exists only if the scores stand for probabilities.
        """
        rows = self._new_rows(X)
        return self._predictor.encoded_probabilities(rows)

    def _has_probabilities(self) -> bool:
        """Return whether the scores stand for probabilities."""
        return False

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy: the share of rows, by weight, that are predicted right.

        Of Dask collections, only the sums of each partition leave the workers. Of tensors, only the
        labels leave the device.
        """
        if is_dask(X):
            from laconic.beyond.answers import score

            check_is_fitted(self, self._fitted)
            return score(self, X, y, sample_weight)
        if not is_elsewhere(X):
            check_no_name(y, "y")
            check_no_name(sample_weight, "sample_weight")
        true = self._as_predicted(to_host(y))
        if is_tensor(X) or is_on_device(X):
            from sklearn.metrics import accuracy_score

            labels = to_host(self.predict(X))
            return float(accuracy_score(true, labels, sample_weight=to_host(sample_weight)))
        return float(super().score(X, true, sample_weight))

    def _as_predicted(self, y: Any) -> Any:
        """Return labels in the form in which `predict` gives them."""
        return y

    def _scores(self, X: Any) -> np.ndarray:
        rows = self._new_rows(X)
        return self._predictor.encoded_scores(rows)

    # -- explaining ----------------------------------------------------------------------------

    def describe(self, file: Any = None) -> None:
        """Print a readable card of the model: its atoms or holes, and what they add up to.

        In a notebook, the card is shown as HTML, unless ``file`` is given.
        """
        from laconic.model.card import MOST_LINES

        check_is_fitted(self, self._fitted)
        show(self._card(), lambda: box(self._html(MOST_LINES)), file)

    def _card(self) -> str:
        """Return the model in words and numbers."""
        from laconic.model.card import card

        return card(self.predictor_)

    def _html(self, most: int = MOST_ROWS) -> list[str]:
        """Return the card as parts of HTML, with at most ``most`` lines of atoms or holes."""
        from laconic.model.html_card import html_card

        return html_card(self.predictor_, most)

    @property
    def _repr_html_(self) -> Callable[[], str]:
        """``_repr_html_()``: scikit-learn's diagram, and what a fitted model learned below it.

        After ``sklearn.set_config(display="text")`` there is no such attribute.
        """
        diagram = super()._repr_html_
        return lambda: diagram() + self._learned()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] += self._learned()
        return bundle

    def _learned(self) -> str:
        """Return the card as HTML, or nothing before a fit."""
        return box(self._html()) if hasattr(self, self._fitted) else ""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
