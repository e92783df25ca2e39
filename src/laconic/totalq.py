"""`TotalQBoostClassifier`: boosting with a price on every weak learner."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils._param_validation import Interval, StrOptions

from laconic.boost.checkpoint import Checkpoint
from laconic.boost.constraints import dual_value
from laconic.boost.hooks import progress
from laconic.boost.loop import State
from laconic.boost.master import Master, SignsMaster, make_master
from laconic.boost.path import Path, PathEntry
from laconic.boost.rules import GradientRule
from laconic.boost.totalq import TotalLoop
from laconic.correct import Orthant
from laconic.edge import check_repeatable, normalised_weights
from laconic.fingerprint import fingerprint, settings_of
from laconic.losses import find_loss
from laconic.pathmodel import PathClassifier
from laconic.penalties import L1
from laconic.pools import Stumps, bind_parts, make_pool
from laconic.pools.oracle import Oracle
from laconic.pools.signs import Signs
from laconic.rows.rows import Rows, rows_in_memory
from laconic.subset import check_options, find_method
from laconic.threads import Threads

# Relative gap above which an exact search has not ended by itself.
OPEN = 1e-6


class _Bound(NamedTuple):
    """Training rows, checked and bound to the pool."""

    X: Any
    rows: Rows
    codes: np.ndarray
    weight: np.ndarray


class TotalQBoostClassifier(PathClassifier):
    """Boosted ensemble with an explicit price on every weak learner (TotalQBoost).

    Minimises, over the weights of all atoms of the pool,

        Σ_i s_i l(y_i f(x_i)) / Σ_i s_i + l1 ‖w‖₁ + price · card(w),   f = b + Σ_j w_j h_j,

    eq. (2) with sample weights s_i. (The paper sums over the m rows: its ν and λ are m times
    ``l1`` and ``price``. Its w ≥ 0 goes with weak classifiers of both signs; here one atom stands
    for h and −h, and the sign of its weight says which.) Algorithm 1: weigh the rows by
    u_i = −l′(y_i f(x_i)), eq. (5); take the atom outside H, the atoms taken so far, that violates
    its dual constraint (4) most; choose the best subset of H; re-optimise its weights. To find the
    best subset is NP-hard, and atoms outside H are not considered.

    Parameters
    ----------
    max_rounds : int, default=100
        T: largest number of atoms ever taken.
    max_atoms : int, default=None
        Cap on the number of atoms in the model: never more, whatever they cost. There are fewer
        where ``price`` is not worth paying, or no atom helps.
    price : float, default=1e-3
        λ, of one atom, for the mean loss. With 0 and no ``max_atoms`` every atom stays. A few
        hundred rows need a higher price than the default: 0.01 or more.
    l1 : float, default=1e-6
        ν, for the mean loss. A little of it keeps weights finite on separable data.
    loss : {"auto", "exponential", "logistic", "squared_hinge", "log", "margin"} or loss object, \
            default="auto"
        ``"auto"`` is ``"exponential"`` for two classes and ``"log"`` for more; ``loss_`` says which
        it was. ``"exponential"``, ``"logistic"`` and ``"squared_hinge"`` are of the margin y f(x),
        for two classes. The others give every class a score, and every atom a group of weights that
        is in or out together; so does a `laconic.losses.Loss` of your own.
    pool : {"stumps", "columns", "products", "pieces"}, pool object or classifier, default="stumps"
        Where atoms come from. ``"stumps"`` has every threshold; ``laconic.pools.Stumps(bins=255)``
        is quicker on many rows. A scikit-learn classifier is fitted to the weights u every round.
    search : {"local", "exact", "tabu", "anneal"}, dimod sampler or None, default="local"
        How the subset of H is chosen (line 10): by add, drop and swap moves from the one before;
        by branch and bound; by sampling weights of a few bits (extra ``dwave``). ``None`` keeps
        all. All but the first need stumps or a classifier as pool, and a loss of the margin, thus
        two classes.
    hot_start : int, default=0
        T′: atoms taken before the first search. It then goes over every size of subsets, and ends
        no worse than early stopping at any size.
    search_options : dict, default=None
        Of the search; see `laconic.subset.search`.
    scale : {"max", "std"} or None, default="max"
        Scale of columns and products, as for `ShareBoostClassifier`.
    fit_intercept : bool, default=True
        Whether a constant is always in, without price or penalty. The paper has none: False gives
        its problem (2) exactly.
    class_weight : dict, "balanced" or None, default=None
        Multiplies the sample weights, class by class. It shifts probabilities towards classes that
        weigh more; `corrected_proba` takes that back.
    tol : float, default=5e-4
        ε of (8), for the mean loss: stop when no atom outside H violates its constraint by more
        than this (of a classifier as pool: the one it offers). An atom with several weights, one
        for every class say, has a constraint for each of them.
    checkpoint : str or path-like, default=None
        File that keeps the state. A fit that finds it resumes from it and ends with the identical
        model; other data or settings are refused, but ``max_rounds`` may be raised. A kill loses
        the round under way and at most 5 seconds before it. Where the file can no longer be
        written, a warning says so and the fit goes on.
    callbacks : list of callables, default=None
        Called with the loop's state after every round; a true answer ends the fit.
    n_jobs : int, default=None
        Threads. ``None`` and -1 take every core. The answer does not depend on it.
    verbose : int, default=0
        1 shows a progress bar, and the nodes and the gap of ``search="exact"`` as it runs.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    loss_ : str or loss object
        The loss that was minimised: ``loss``, or what ``"auto"`` chose.
    path_ : Path
        The best model of every size that was met, in a round or by the search after a hot start,
        smallest first; none is larger than ``max_atoms``.
    rounds_ : list of PathEntry
        The model after every round, from none on.
    n_atoms_ : int
        Size of the model in use: that of the last round. (A fit that is stopped in its hot start
        has the largest model that ``max_atoms`` allows.)
    atoms_ : list
        Records of its atoms. None has weight zero.
    generated_ : list
        Records of H: all atoms ever taken, in order.
    atom_coef_, intercept_ : ndarray
        Weights of the atoms' columns in the units of the input; a stump counts 1 for yes and 0 for
        no. There is no ``coef_``, which scikit-learn's selectors would take for weights of the
        features.
    objective_ : float
        Mean loss + l1 term + price of the atoms, of the model in use.
    dual_value_ : float
        A value of the dual (7), feasible for every atom of the pool (in H or not): no weights over
        the pool have a mean loss + l1 term below it. For a classifier as pool, whose atoms cannot
        all be asked, 0; of a loss of your own, true if that is never below 0.
    duality_gap_ : float
        ``objective_ − dual_value_``; at least price · n_atoms (Theorem 2).
    bound_ : float
        No weights over the pool have an objective (2) below this.
    search_bound_ : float
        No subset of H has an objective below this, by ``search="exact"``; -inf otherwise, and for
        the other sizes of the path.
    predictor_ : Predictor
        The deployable result.
    feature_importances_ : ndarray of shape (n_features,)
        Shares in the decrease of the training loss. A classifier's is split up by its own
        ``feature_importances_`` or the size of its ``coef_``, or equally where it has neither.
        scikit-learn's selectors go by them; see the notes of `ShareBoostClassifier`.
    status_ : str
        Why the fit ended.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    The paper's five experiments are settings. A, l1-regularised column generation: ``price=0,
    l1=ν``. B, unregularised with early stopping: ``price=0`` and ``path_``, or ``at(size)``. C:
    ``price=λ``. D, hot-started: ``price=λ, hot_start=T′``. E, subset selection only: D with
    ``max_rounds=T′``. `fit_path` fits a path of prices, or of l1, from one hot start.

    References
    ----------
    Denchev, Ding, Matsushima, Vishwanathan, Neven. Totally Corrective Boosting with Cardinality
    Penalization. 2015.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from laconic import TotalQBoostClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = TotalQBoostClassifier(max_rounds=40, max_atoms=5, price=0.0).fit(X, y)
    >>> model.n_atoms_, round(model.score(X, y), 2)
    (5, 0.96)
    """

    _parameter_constraints: dict[str, Any] = {  # noqa: RUF012 (scikit-learn's convention)
        "max_rounds": [Interval(Integral, 0, None, closed="left")],
        "max_atoms": [Interval(Integral, 0, None, closed="left"), None],
        "price": [Interval(Real, 0, None, closed="left")],
        "l1": [Interval(Real, 0, None, closed="left")],
        "loss": "no_validation",  # find_loss checks it
        "pool": "no_validation",  # make_pool checks it
        "search": "no_validation",
        "hot_start": [Interval(Integral, 0, None, closed="left")],
        "search_options": [dict, None],
        "scale": [StrOptions({"max", "std"}), None],
        "fit_intercept": ["boolean"],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "tol": [Interval(Real, 0, None, closed="left")],
        "checkpoint": "no_validation",
        "callbacks": [list, tuple, None],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        max_rounds: int = 100,
        *,
        max_atoms: int | None = None,
        price: float = 1e-3,
        l1: float = 1e-6,
        loss: Any = "auto",
        pool: Any = "stumps",
        search: Any = "local",
        hot_start: int = 0,
        search_options: dict[str, Any] | None = None,
        scale: str | None = "max",
        fit_intercept: bool = True,
        class_weight: Any = None,
        tol: float = 5e-4,
        checkpoint: Any = None,
        callbacks: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.max_rounds = max_rounds
        self.max_atoms = max_atoms
        self.price = price
        self.l1 = l1
        self.loss = loss
        self.pool = pool
        self.search = search
        self.hot_start = hot_start
        self.search_options = search_options
        self.scale = scale
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.checkpoint = checkpoint
        self.callbacks = callbacks
        self.n_jobs = n_jobs
        self.verbose = verbose

    # -- fitting -------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> TotalQBoostClassifier:
        """Run algorithm 1.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_features)
            Text of a frame is for stumps only; its dates and durations are numbers.
            Missing values only for stumps.
        y : array-like of shape (n_rows,)
            Class labels, at least two different ones.
        sample_weight : array-like of shape (n_rows,), default=None
            Weight 2 means the row twice, weight 0 the row gone.

        Returns
        -------
        self
            Also after Ctrl-C: then with the model learned so far.
        """
        with Threads(self.n_jobs) as threads, ExitStack() as stack:
            bound = self._bind(X, y, sample_weight, threads)
            loop, state = self._loop(make_master(*bound[1:], self.l1)), State()
            if self.checkpoint is not None:
                settings = settings_of(self, "max_rounds")
                settings |= {"loss": self.loss_, "categorical": [*self._categories]}
                settings |= {"units": self._units}
                mark = fingerprint(bound.X, bound.codes, bound.weight, settings)
                saver = stack.enter_context(Checkpoint(self.checkpoint, mark, self.max_rounds))
                state = saver.resume(bound.rows.pool, bound.rows.n_outputs)
                if len(state.generated) > self.max_rounds:
                    raise ValueError(
                        f"checkpoint {self.checkpoint} already has {len(state.generated)} rounds; "
                        f"set max_rounds to at least that, not {self.max_rounds}, or name another "
                        "file"
                    )
                self._reopen_hot_start(state)
                loop.hooks.insert(0, saver)
            self._run(loop, state)
        return self

    def _reopen_hot_start(self, state: State) -> None:
        """Take back what followed a hot start that may have ended for want of rounds."""
        if 0 < state.searched < self.hot_start:
            del state.entries[state.searched + 1 :]
            del state.generated[state.searched :]
            state.offered, state.searched, state.bound = [], -1, -np.inf

    def fit_path(
        self,
        X: Any,
        y: Any,
        *,
        price: Iterable[float] | None = None,
        l1: Iterable[float] | None = None,
        sample_weight: Any = None,
    ) -> list[TotalQBoostClassifier]:
        """Fit one model for every price, or for every l1, sharing what they have in common.

        Models of different prices share the hot start and its search, and are the same as fitted
        one by one. Those of different ``l1`` each start from the atoms of the one before, largest
        first; these count among the ``max_rounds``.

        Returns
        -------
        list of TotalQBoostClassifier
            Fitted, in the order given. This estimator itself is not.
        """
        if (price is None) == (l1 is None):
            both = "" if price is None else ", not both"
            raise ValueError(f"give a sequence of prices, or one of l1{both}")
        if self.checkpoint is not None:
            raise ValueError("a path of models has no checkpoint; fit them one by one for that")
        name, values = ("price", price) if price is not None else ("l1", l1)
        if not isinstance(values, Iterable):
            raise TypeError(f"{name} must be a sequence, such as [{values!r}], not {values!r}")
        return list(self._fitted(X, y, sample_weight, name, values))

    def _fitted(
        self, X: Any, y: Any, sample_weight: Any, name: str, values: Iterable[float]
    ) -> Iterator[TotalQBoostClassifier]:
        """The models of `fit_path`; those of prices as soon as each is fitted."""
        models = [clone(self).set_params(**{name: float(value)}) for value in values]
        for model in models:
            model._validate_params()
        with Threads(self.n_jobs) as threads:
            shared = clone(self)
            bound = shared._bind(X, y, sample_weight, threads)
            for model in models:
                model.__dict__.update(shared._learned_of_data())
            if name == "price":
                yield from shared._fit_prices(models, bound)
            else:
                shared._fit_l1(models, bound)
                yield from models

    def _fit_prices(
        self, models: list[TotalQBoostClassifier], bound: _Bound
    ) -> Iterator[TotalQBoostClassifier]:
        """Every price from the same hot start; the search over its sizes is done once."""
        start, master = State(), make_master(*bound[1:], self.l1)
        hot = min(self.hot_start, self.max_rounds)
        if hot:
            self._loop(master, search=None, max_rounds=hot).grow(start)
        found = None
        for model in models:
            state = State(list(start.entries), generated=list(start.generated))
            loop = model._loop(master)
            loop.sizes = loop.sizes if found is None else found
            model._run(loop, state)
            found = loop.sizes
            yield model

    def _fit_l1(self, models: list[TotalQBoostClassifier], bound: _Bound) -> None:
        """Every l1 from the model of the next larger one."""
        start: tuple[int, ...] = ()
        for model in sorted(models, key=lambda m: -m.l1):
            loop = model._loop(make_master(*bound[1:], model.l1))
            state = loop.refitted(list(start))
            model._run(loop, state)
            start = state.entries[-1].numbers

    def _learned_of_data(self) -> dict[str, Any]:
        names = ("classes_", "loss_", "class_prior_", "_class_factors", "n_features_in_",
                 "feature_names_in_", "_categories", "_units")  # fmt: skip
        return {name: getattr(self, name) for name in names if hasattr(self, name)}

    def _bind(self, X: Any, y: Any, sample_weight: Any, threads: Threads) -> _Bound:
        """Check everything, and bind the pool to the rows."""
        self._validate_params()
        for callback in self.callbacks or ():
            if not callable(callback):
                raise TypeError(f"callbacks must be a list of callables; {callback!r} is not one")
        if self.search is not None:
            find_method(self.search, "search", "None, ")
            check_options(self.search, self.search_options or {})
        elif self.search_options:
            raise ValueError("search=None keeps every atom, and takes no search_options")
        if not self._chooses_loss():
            find_loss(self.loss)  # a wrong loss comes before wrong data, and so does a wrong pool
        make_pool(self._pool_object(), self.scale, None, [])
        X, y = self._validated(X, y, reset=True, weight=sample_weight)
        pool = make_pool(self._pool_object(), self.scale, None, list(self._categories))
        check_repeatable(pool, self.checkpoint)
        if self.checkpoint is not None and isinstance(pool, Oracle):
            raise ValueError("a checkpoint holds numbered atoms, not fitted classifiers")
        X, codes, weight, _ = normalised_weights(self, X, y, sample_weight)
        self.loss_ = self.loss
        if self._chooses_loss():
            self.loss_ = "exponential" if len(self.classes_) == 2 else "log"
        loss = find_loss(self.loss_)
        n_outputs = loss.n_outputs(len(self.classes_))
        bounds = bind_parts(pool, self._limits.parts(X, weight), threads)
        if bounds[0].binary:
            bounds = [Signs(bound) for bound in bounds]
        rows = rows_in_memory(
            bounds, loss, codes, weight, n_outputs, threads, self.fit_intercept, self._limits
        )
        return _Bound(X, rows, codes, weight)

    def _chooses_loss(self) -> bool:
        return isinstance(self.loss, str) and self.loss == "auto"

    def _pool_object(self) -> Any:
        """The pool with every threshold, or of a classifier; others as they are."""
        if isinstance(self.pool, str) and self.pool == "stumps":
            return Stumps(bins=None)
        if hasattr(self.pool, "predict") and not hasattr(self.pool, "bind"):
            return Oracle(self.pool)
        return self.pool

    def _loop(self, master: Master, **changed: Any) -> TotalLoop:
        """The loop with this estimator's settings."""
        if self.search not in (None, "local") and not isinstance(master, SignsMaster):
            many = len(self.classes_)
            chosen = f' (loss="auto" is "log" for the {many} classes of y)' * self._chooses_loss()
            raise ValueError(
                f"search={self.search!r} needs stumps or a classifier as pool and a loss of the "
                'margin ("exponential", "logistic", "squared_hinge"), thus two classes'
                f'{chosen * (many > 2)}; search="local" takes any'
            )
        cap = self.max_rounds if self.max_atoms is None else self.max_atoms
        settings: dict[str, Any] = {
            "max_atoms": cap,
            "master": master,
            "price": self.price,
            # Where nothing is dropped, a cap on the model is one on the rounds.
            "max_rounds": min(self.max_rounds, cap) if self.search is None else self.max_rounds,
            "hot_start": self.hot_start,
            "search": self.search,
            "options": self.search_options or {},
            "tol": self.tol,
            "hooks": list(self.callbacks or []),
        }
        return TotalLoop(
            master.rows, GradientRule(), Orthant(), L1(master.l1), **{**settings, **changed}
        )

    def _run(self, loop: TotalLoop, state: State) -> None:
        """Run the loop from wherever the state is; Ctrl-C keeps what was learned."""

        def rounds(state: State) -> int:
            return len(state.generated)

        with progress(self.verbose, loop.max_rounds, False, "rounds", rounds) as bar:
            loop.hooks.append(bar)
            loop.on_search = bar.searched
            try:
                loop.grow(state)
            except KeyboardInterrupt:
                if not state.entries:
                    raise
                state.status = "interrupted"
                warnings.warn(
                    f"fit was interrupted; the model keeps {state.entries[-1].size} atoms",
                    stacklevel=3,
                )
        self._keep(loop, state)

    def _keep(self, loop: TotalLoop, state: State) -> None:
        """Turn the loop's state into fitted attributes."""
        best: dict[int, PathEntry] = {}
        for entry in (*state.entries, *state.offered):
            held = best.get(entry.size)
            if entry.size <= loop.max_atoms and (held is None or entry.objective <= held.objective):
                best[entry.size] = entry
        last, bound = state.entries[-1], state.bound
        if last.size <= loop.max_atoms:
            best[last.size] = last
        else:  # stopped in a hot start, which has no cap
            last, bound = best[max(best)], -np.inf
        self.path_ = Path([best[size] for size in sorted(best)])
        self.rounds_ = state.entries
        self._keep_asked([*self.path_, *self.rounds_])
        self.generated_ = [loop.rows.pool.atom(n) for n in state.generated]
        self.status_ = state.status
        self.dual_value_ = dual_value(state.entries, self.l1)
        self.bound_ = min(state.entries[0].objective, self.dual_value_ + self.price)
        self._search_bounds = {last.size: bound}
        value = last.objective + self.price * last.size
        if np.isfinite(bound) and value - bound > OPEN * value:
            self.status_ += "; the exact search reached its limits, see search_bound_"
        if last.size == 0 and self.max_rounds > 0 and self.max_atoms != 0:
            warnings.warn(
                "no atom is worth its price, so the model says the same of every row. Lower price "
                "or l1. If all columns are constant, or tiny and not scaled, no atom can help.",
                stacklevel=4,
            )
        self._use(last.size)

    def _use(self, size: int) -> None:
        """Make the path's model of ``size`` atoms the one in use, with what is proven of it."""
        super()._use(size)
        self.objective_ = self.path_[size].objective + self.price * size
        self.duality_gap_ = self.objective_ - self.dual_value_
        self.search_bound_ = self._search_bounds.get(size, -np.inf)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        try:
            if not self._chooses_loss():
                find_loss(self.loss).n_outputs(3)
        except (TypeError, ValueError):
            tags.classifier_tags.multi_class = False
        return tags
