"""Any scikit-learn classifier as the oracle that provides weak hypotheses (TotalQBoost section 1).

The pool cannot be written down. When an atom is asked for, the classifier is fitted to the current
weights of the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone, is_classifier
from sklearn.utils.validation import has_fit_parameter

from laconic.model.feature_maps import Labels, Names, feature_name
from laconic.numeric.threads import Threads
from laconic.pools.base import BoundPool, Offer


class Hypothesis(NamedTuple):
    """A fitted classifier that answers -1 or 1."""

    classifier: Any
    reads: tuple[int, ...]

    @property
    def width(self) -> int:
        """Number of columns the atom adds to the model."""
        return 1

    def shares(self) -> np.ndarray:
        """Return the share of each feature in the classifier's answers. The shares sum to one.

        They come from the classifier's ``feature_importances_``, or from the sizes of its
        ``coef_``. Numbers are not used unless there is one for each feature, all are finite, and
        some are not zero. Without usable numbers, all features have equal shares.
        """
        for name in ("feature_importances_", "coef_"):
            sizes = getattr(self.classifier, name, None)
            if sizes is not None:
                sizes = np.abs(np.asarray(sizes.toarray() if issparse(sizes) else sizes))
                sizes = np.atleast_2d(sizes).sum(axis=0)
                if len(sizes) == len(self.reads) and 0 < sizes.sum() < np.inf:
                    return sizes / sizes.sum()
        return np.full(len(self.reads), 1.0 / len(self.reads))


class HypothesesMap:
    """The answers of fitted classifiers on new rows, -1 or 1."""

    kind = "classifiers"
    points = "A classifier adds its points if it says yes, and subtracts them if it says no. "

    def __init__(self, hypotheses: Sequence[Hypothesis]) -> None:
        self.hypotheses = list(hypotheses)

    def columns(self, X: Any) -> np.ndarray:
        """Return the answers on new rows."""
        out = np.empty((X.shape[0], len(self.hypotheses)), order="F")
        for column, hypothesis in zip(out.T, self.hypotheses, strict=True):
            column[:] = hypothesis.classifier.predict(X)
        return out

    def names(self, feature_names: Names = None, categories: Labels = None) -> list[str]:
        """Return the classifiers' own names, with the feature if a classifier reads only one."""
        out = []
        for number, (classifier, reads) in enumerate(self.hypotheses, start=1):
            of = f" of {feature_name(reads[0], feature_names)}" if len(reads) == 1 else ""
            out.append(f"{type(classifier).__name__} {number}{of}")
        return out

    def features(self) -> np.ndarray:
        """Return the sorted distinct input features that are read, as far as is known."""
        return np.unique([f for h in self.hypotheses for f in h.reads]).astype(np.int64)

    def operations(self) -> int:
        """Return one operation for each classifier, because the true number is not known."""
        return len(self.hypotheses)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return no arrays. A classifier is not made of arrays, so its predictor is never saved."""
        return {}


@dataclass(frozen=True)
class Oracle:
    """A classifier that is fitted to the current weights of the rows when an atom is asked for.

    Parameters
    ----------
    classifier : estimator
        Any scikit-learn classifier whose ``fit`` accepts ``sample_weight``. Clones of it are fitted
        to labels -1 and 1.
    """

    in_one_memory: ClassVar[str] = "weak learners of scikit-learn are fitted to all rows at once"

    classifier: Any

    def __post_init__(self) -> None:
        if isinstance(self.classifier, type) or not is_classifier(self.classifier):
            raise TypeError(f"an oracle needs a classifier object, not {self.classifier!r}")
        if not has_fit_parameter(self.classifier, "sample_weight"):
            raise TypeError(
                f"the fit of {type(self.classifier).__name__} takes no sample_weight, but an "
                "oracle needs it to pass the weights of the rows"
            )

    @property
    def called(self) -> str:
        """What messages call the pool: the classifier that was given."""
        return type(self.classifier).__name__

    def bind(self, X: Any, weight: np.ndarray, threads: Threads) -> BoundOracle:
        """Keep the rows."""
        return BoundOracle(X, self.classifier)


class BoundOracle(BoundPool):
    """The hypotheses fitted so far, and the classifier that gives new ones; see `Oracle`."""

    signs = True

    def __init__(self, X: Any, classifier: Any) -> None:
        self._X = X
        self._classifier = classifier
        self._hypotheses: list[Hypothesis] = []
        self._columns = np.empty((X.shape[0], 0), dtype=np.int8, order="F")
        self.n_features = X.shape[1]
        self.dtype = np.dtype(np.float64)

    @property
    def n_atoms(self) -> int:  # type: ignore[override]
        """Number of hypotheses so far."""
        return len(self._hypotheses)

    @property
    def n_columns(self) -> int:  # type: ignore[override]
        """Number of columns: one for each hypothesis."""
        return len(self._hypotheses)

    def fitted(self, residual: np.ndarray) -> Offer | None:
        """Fit the classifier to the signs of the residuals y_i u_i with weights u_i.

        This is line 3 of algorithm 1. A classifier of least weighted error has the largest
        Σ_i u_i y_i h(x_i). Return None if all answers are those of an earlier hypothesis, or all
        are the opposite.
        """
        _check_one_score(residual)
        r = residual[:, 0].astype(np.float64)
        fitted = clone(self._classifier)
        fitted.fit(self._X, np.where(r < 0, -1, 1), sample_weight=np.abs(r) / np.abs(r).mean())
        column = np.asarray(fitted.predict(self._X)).astype(np.int8)
        agree = column.astype(np.int64) @ self._columns
        if np.any(np.abs(agree) == len(column)):
            return None
        hypothesis = Hypothesis(fitted, tuple(range(self.n_features)))
        return Offer(hypothesis, float(abs(r @ column)), column)

    def join(self, offer: Offer) -> int:
        """Add a fitted hypothesis, and return its number."""
        assert offer.column is not None
        self._hypotheses.append(offer.atom)
        self._columns = np.asfortranarray(np.column_stack([self._columns, offer.column]))
        return self.n_atoms - 1

    def gradients(self, residual: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the column sums of the hypotheses so far."""
        _check_one_score(residual)
        yield 0, self._columns.T @ residual.astype(np.float64)

    def squares(self, weight: np.ndarray) -> np.ndarray:
        """Return the sum of the weights for every column, because every h² is 1."""
        return np.full(self.n_columns, float(np.sum(weight, dtype=np.float64)))

    def columns(self, atoms: Sequence[int]) -> np.ndarray:
        """Return the training columns of -1 and 1."""
        return np.asfortranarray(self._columns[:, list(atoms)], dtype=self.dtype)

    def scales(self, atoms: Sequence[int]) -> np.ndarray:
        """Return ones, because hypotheses are not scaled."""
        return np.ones(len(atoms))

    def atom(self, index: int) -> Hypothesis:
        """Return hypothesis ``index``."""
        return self._hypotheses[index]

    def index(self, atom: Hypothesis) -> int:
        """Return the number of a hypothesis."""
        return self._hypotheses.index(atom)

    def matching(self, item: Any) -> np.ndarray:
        """Raise a `ValueError`, because hypotheses cannot be named before they are fitted."""
        raise ValueError("atoms of a classifier as pool cannot be named before they are fitted")

    def extract(self, atoms: Sequence[int]) -> HypothesesMap:
        """Return the hypotheses as a feature map for new rows."""
        return HypothesesMap([self._hypotheses[index] for index in atoms])

    def costs(self, feature_costs: np.ndarray) -> np.ndarray:
        """Return the cost of every hypothesis. It may read every feature."""
        return np.full(self.n_atoms, float(np.sum(feature_costs)))


def _check_one_score(residual: np.ndarray) -> None:
    if residual.shape[1] != 1:
        raise ValueError("a classifier as pool needs two classes and a loss of the margin")
