"""`PathClassifier`: what all estimators with a path share after the path is fitted."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from laconic.boost.path import Path, PathEntry
from laconic.data.cells import is_frame
from laconic.data.elsewhere import is_dask, is_elsewhere, is_on_device
from laconic.data.frames import asked_categories, clearer
from laconic.estimators.base import LaconicClassifier
from laconic.estimators.lazily import lazily
from laconic.model.predictor import Predictor
from laconic.notebook import MOST_ROWS
from laconic.numeric.magnitudes import ENLARGE
from laconic.numeric.namespaces import is_tensor
from laconic.registry import allows_missing
from laconic.rows.limits import Limits

Self = TypeVar("Self", bound="PathClassifier")

# Least share of a feature that is read, even if its atoms gained nothing. It is above rounding and
# below any share that matters.
LEAST_SHARE = 1e-9


class PathClassifier(TransformerMixin, LaconicClassifier):
    """A classifier with a model of every size: choose a size, predict, explain.

    A subclass has the parameter ``pool``. Its ``fit`` sets ``classes_``, ``loss_`` (the loss that
    it minimised) and ``path_``, and calls ``_use`` with a size.
    """

    pool: Any
    loss_: Any
    path_: Path
    _limits = Limits()
    """Limits by which the work over the rows is cut into parts. Clones keep them."""
    _given_names: list[str] | None = None
    _class_factors: np.ndarray

    def __sklearn_clone__(self: Self) -> Self:
        other: Self = super().__sklearn_clone__()
        other._limits = self._limits
        return other

    def _use(self, size: int) -> None:
        """Use the path's model of ``size`` atoms."""
        entry = self.path_[size]
        self.predictor_ = self._predictor_of(entry)
        self.n_atoms_ = size
        self.atoms_ = list(entry.atoms)
        self.atom_coef_ = self.predictor_.weights.T
        self.intercept_ = entry.intercept

    def _predictor_of(self, entry: PathEntry) -> Predictor:
        """Return the deployable form of an entry of the path."""
        with np.errstate(over="ignore"):
            weights = entry.input_weights()
        if not np.isfinite(weights).all():
            raise ValueError(
                "weights overflow in the units of the input, because some columns are tiny; "
                f"{ENLARGE}"
            )
        return Predictor(
            entry.map,
            weights,
            entry.intercept,
            self.classes_,
            self.loss_,
            [atom.width for atom in entry.atoms],
            self.n_features_in_,
            getattr(self, "feature_names_in_", self._given_names),
            self._categories,
            units=self._units,
            class_factors=self._class_factors.tolist(),
        )

    def _keep_asked(self, entries: Iterable[PathEntry]) -> None:
        """Forget the categories that no model asks about, so that others do not learn of them."""
        asked: dict[int, set[int]] = {}
        for entry in entries:
            if not hasattr(entry.map, "asked"):
                return
            for feature, codes in entry.map.asked().items():
                asked.setdefault(feature, set()).update(codes)
        self._categories = asked_categories(self._categories, asked)

    # -- other sizes ---------------------------------------------------------------------------

    def at(self: Self, n_atoms: int) -> Self:
        """Return the model of ``n_atoms`` atoms, as a fitted classifier."""
        check_is_fitted(self, "predictor_")
        if n_atoms not in self.path_.sizes:
            raise ValueError(f"no model of {n_atoms!r} atoms in {self.path_!r}")
        other = copy.copy(self)
        other._use(int(n_atoms))
        return other

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the predicted labels of every size of the path, smallest first."""
        if is_dask(X) or is_tensor(X) or is_on_device(X):
            yield from (self.at(size).predict(X) for size in self.path_.sizes)
            return
        rows = self._new_rows(X)
        for entry in self.path_:
            yield self._predictor_of(entry).encoded_labels(rows)

    def staged_predict_proba(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the class probabilities of every size of the path, smallest first."""
        if is_dask(X) or is_tensor(X) or is_on_device(X):
            yield from (self.at(size).predict_proba(X) for size in self.path_.sizes)
            return
        rows = self._new_rows(X)
        for entry in self.path_:
            yield self._predictor_of(entry).encoded_probabilities(rows)

    # -- predicting ----------------------------------------------------------------------------

    def _has_probabilities(self) -> bool:
        return True

    @lazily
    def corrected_proba(self, X: Any) -> np.ndarray:
        """Return the class probabilities with the effect of ``class_weight`` removed.

        If the rows of a class weigh f times as much, the class gets f times the odds. So with
        ``"balanced"``, `predict_proba` answers as if all classes were equally common. This method
        divides every probability by the factor of its class, and scales the probabilities to sum to
        one again. They are about as calibrated as those of a fit without ``class_weight``. Without
        ``class_weight`` they are those of `predict_proba`.
        """
        return self.predictor_.corrected(self.predict_proba(X))

    @lazily
    def transform(self, X: Any) -> np.ndarray:
        """Return the columns of the chosen atoms, in the units of the input.

        Dates count from the first training date of their column; see ``predictor_.units``.
        """
        rows = self._new_rows(X)
        return self.predictor_.encoded_columns(rows)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return readable names of the columns of `transform`.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the input features, as a pipeline passes them on. The default is the names that
            the model knows: from the data frame given to ``fit``, from `name_features`, or x0, x1,
            ….
        """
        check_is_fitted(self, "predictor_")
        names = None
        if input_features is not None:
            names = _check_feature_names_in(self, input_features).tolist()
        return np.array(self.predictor_.names(names), dtype=object)

    def name_features(self: Self, names: Any) -> Self:
        """Give names to the input features, if ``fit`` was given an array.

        ``describe``, plots, saved models and `get_feature_names_out` then use these names. If you
        give a data frame later, its columns must have these names in this order. In a pipeline:
        ``pipeline[-1].name_features(pipeline[:-1].get_feature_names_out())``.

        Parameters
        ----------
        names : sequence of str
            One name for every feature, in order.

        Returns
        -------
        self
        """
        check_is_fitted(self, "predictor_")
        if hasattr(self, "feature_names_in_"):
            raise ValueError("fit was given a data frame, and its columns have names already")
        given = [str(name) for name in names]
        if len(given) != self.n_features_in_ or len(set(given)) != len(given):
            raise ValueError(
                f"names must be {self.n_features_in_} different names, one for every feature; got "
                f"{len(given)} names, {len(set(given))} of them different"
            )
        self._given_names = given
        self._use(self.n_atoms_)
        return self

    # -- explaining ----------------------------------------------------------------------------

    def _card(self) -> str:
        from laconic.model.card import card

        return card(self)

    def _html(self, most: int = MOST_ROWS) -> list[str]:
        from laconic.model.html_card import html_card

        return html_card(self, most)

    def plot(self, X: Any = None, y: Any = None, ax: Any = None) -> Any:
        """Plot the loss, and the error on (X, y) if given, against the number of atoms.

        Returns the matplotlib axes. Needs the ``plot`` extra.
        """
        from laconic.look.plots import plot_path

        check_is_fitted(self, "predictor_")
        return plot_path(self, X, y, ax)

    def plot_atoms(self, n_atoms: int | None = None, ax: Any = None) -> Any:
        """Draw the chosen patches with their masks (see `laconic.look.mosaic.plot_patches`).

        Only for a pool of `laconic.pools.Patches`; `laconic.look.balls.plot_balls` draws pieces.
        Needs the ``plot`` extra.
        """
        from laconic.look.mosaic import plot_patches

        check_is_fitted(self, "predictor_")
        return plot_patches(self, n_atoms, ax)

    @property
    def coef_(self) -> Any:
        """Not available: a selector would take weights of atoms for weights of features."""
        raise AttributeError(
            f"a {type(self).__name__} has no coef_, because its weights belong to atoms and not to "
            "input features; they are in atom_coef_, and feature_importances_ has one number per "
            "feature"
        )

    @property
    def feature_importances_(self) -> np.ndarray:
        """Share of every input feature in the decrease of the training loss.

        The gain of an atom goes to the features that it reads, in equal parts. The gain of a fitted
        classifier is split by its ``feature_importances_`` or the size of its ``coef_``, if it has
        one of them. A feature that is read has a share of at least about 1e-9, even if its atoms
        gain nothing. A feature that is not read has 0. So ``SelectFromModel(model,
        threshold=1e-12)`` keeps exactly the features that are read. (If the pool is a classifier,
        features that it does not use count as not read.) The shares sum to one up to rounding, or
        to zero if nothing is read.
        """
        check_is_fitted(self, "predictor_")
        entry = self.path_[self.n_atoms_]
        share, read = np.zeros((2, self.n_features_in_))
        for atom, gain in zip(entry.atoms, entry.gains, strict=True):
            parts = atom.shares() if hasattr(atom, "shares") else 1.0 / len(atom.reads)
            share[list(atom.reads)] += max(gain, 0.0) * parts
            read[list(atom.reads)] += parts
        total = share.sum()
        if total > 0:
            share = np.where(read > 0, np.maximum(share / total, LEAST_SHARE), 0.0)
        else:
            share = read
        # Selectors compare shares with their mean. With 40 bits, the mean of equal shares is exact.
        even: np.ndarray = np.ldexp(np.rint(np.ldexp(share / (share.sum() or 1.0), 40)), -40)
        return even

    # -- the scikit-learn edge -----------------------------------------------------------------

    def _validated(self, X: Any, y: Any = None, reset: bool = False, weight: Any = None) -> Any:
        """Check input as scikit-learn does. Only fits pass ``y``, ``reset`` and ``weight``."""
        if reset:
            self._given_names = None
        elif self._categories and not is_frame(X) and not is_elsewhere(X):
            raise ValueError(
                "fit was given a data frame with categories, and an array cannot hold them; "
                "give a data frame here too"
            )
        if getattr(X, "ndim", 2) > 2:
            raise ValueError(
                f"Found array with dim {X.ndim}, while dim <= 2 is required. A row of X must hold "
                "all pixels of an image: give images.reshape(len(images), -1)"
            )
        known = self
        if self._given_names is not None and is_frame(X):
            known = copy.copy(self)
            known.feature_names_in_ = np.array(self._given_names, dtype=object)
        try:
            return super(PathClassifier, known)._validated(X, y, reset, weight)
        except ValueError as error:
            hint = clearer(error, self._allows_missing(), self._mixes_pools(), is_frame(X))
            if hint is None:
                raise
            raise ValueError(hint) from error

    def _input(self) -> dict[str, Any]:
        missing = self._allows_missing()
        finite = "allow-nan" if missing else True
        sparse = ["csr", "csc"]
        return {"accept_sparse": sparse, "categories": missing, "ensure_all_finite": finite}

    def _allows_missing(self) -> bool:
        return allows_missing(self.pool)

    def _mixes_pools(self) -> bool:
        return type(self.pool) in (list, tuple) and len(self.pool) > 1

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._allows_missing()
        return tags
