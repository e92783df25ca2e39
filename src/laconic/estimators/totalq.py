"""`TotalQBoostClassifier`: boosting with a price on every weak learner."""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager
from numbers import Integral, Real
from typing import Any

from sklearn.utils._param_validation import Interval, StrOptions

from laconic.boost.loop import Loop
from laconic.boost.master import Master, check_search, check_searchable, make_master
from laconic.boost.propose import Asked, Violated
from laconic.boost.record import Recorder
from laconic.boost.search_state import SearchState
from laconic.boost.search_subset import SearchSubset
from laconic.boost.stages import Propose, State
from laconic.data.doubts import stacklevel_of_user
from laconic.estimators.booster import Ready, Terms
from laconic.estimators.budgets import CAPS, tight_caps
from laconic.estimators.priced import PricedClassifier
from laconic.estimators.terms import check_weak_learner
from laconic.look.progress import Shown, progress
from laconic.losses import Loss, find_loss
from laconic.pools import Stumps, make_pool
from laconic.pools.weak_learners import Oracle
from laconic.rows.rows import Rows


class TotalQBoostClassifier(PricedClassifier):
    """Boosted ensemble with an explicit price on every weak learner (TotalQBoost).

    It minimises, over the weights of all atoms of the pool,

        Σ_i s_i l(y_i f(x_i)) / Σ_i s_i + l1 ‖w‖₁ + price · card(w),   f = b + Σ_j w_j h_j,

    eq. (2) with sample weights s_i. (The paper sums over the m rows: its ν and λ are m times
    ``l1`` and ``price``. The paper has w ≥ 0 and weak classifiers of both signs. Here one atom
    stands for h and −h, and the sign of its weight says which.)

    H is the set of atoms taken so far. Each round of algorithm 1 has four steps. It weighs the rows
    by u_i = −l′(y_i f(x_i)), eq. (5). It adds to H the atom outside H that violates its dual
    constraint (4) most. It chooses the best subset of H. It re-optimises the weights of this
    subset. Finding the best subset is NP-hard, and atoms outside H are not considered.

    Parameters
    ----------
    max_rounds : int, default=100
        T: largest number of atoms ever taken.
    max_atoms : int, default=None
        Cap on the number of atoms in the model, whatever they cost. The model has fewer atoms if
        more are not worth their ``price``, or if no atom helps.
    price : float or sequence of floats, default=1e-3
        λ, the price of one atom, for the mean loss. With 0 and no ``max_atoms`` every atom stays.
        For a few hundred rows, set a higher price than the default: 0.01 or more. ``cv`` chooses
        from several prices.
    l1 : float, default=1e-6
        ν, for the mean loss. A small value keeps weights finite on separable data.
    loss : {"auto", "exponential", "logistic", "squared_hinge", "log", "margin"} or loss object, \
            default="auto"
        ``"auto"`` is ``"exponential"`` for two classes and ``"log"`` for more. ``loss_`` holds the
        loss that was used. ``"exponential"``, ``"logistic"`` and ``"squared_hinge"`` are losses of
        the margin y f(x), for two classes. The others give every class a score. Every atom then has
        a group of weights, which are in or out together. The same holds for a
        `laconic.losses.Loss` of your own.
    pool : {"stumps", "rules", "columns", "products", "pieces", "bumps", "hinges"}, pool object, \
            list or classifier, default="stumps"
        The atoms to choose from. ``"stumps"`` has every threshold.
        ``laconic.pools.Stumps(bins=255)`` is faster on many rows. A scikit-learn classifier is
        fitted to the weights u in every round. A list of names and objects mixes pools. In a mix,
        stumps and rules are -1 or 1 and other columns are scaled, as they are alone. A classifier
        cannot be mixed.
    search : {"local", "exact", "tabu", "anneal"}, dimod sampler or None, default="local"
        How the subset of H is chosen (line 10). ``"local"`` starts from the subset of the round
        before, and adds, drops and swaps atoms. ``"exact"`` is branch and bound. ``"tabu"``,
        ``"anneal"`` and dimod samplers sample weights of a few bits (extra ``dwave``). ``None``
        keeps all atoms. All searches except ``"local"`` need stumps, rules or a classifier as pool,
        and a loss of the margin, so two classes.
    hot_start : int, default=0
        T′: number of atoms to take before the first search. The first search then looks at subsets
        of every size. At each size it ends no worse than early stopping at that size.
    search_options : dict, default=None
        Options of the search; see `laconic.subset.search`.
    scale : {"max", "std"} or None, default="max"
        How columns and products are scaled, as for `ShareBoostClassifier`.
    fit_intercept : bool, default=True
        Whether a constant is always in the model, without price or penalty. The paper has no
        constant: False gives its problem (2) exactly.
    tune : bool or Tuning, default=False
        Re-optimise the parameters of the chosen atoms together with their weights when the last
        round is done, as for `ShareBoostClassifier`, under the loss and the l1 term of this
        problem. A tuned model has as many atoms and the same price. It is used if it has a lower
        loss on held-out rows, which choose no atoms. ``path_.chosen`` is the path without tuning,
        and ``path_.is_tuned(size)`` says whether a tuned model was accepted.
    groups : sequence, default=None
        A label for every feature, or lists of feature numbers. Features of a group are in or out
        together. Only for ``"columns"``, alone or in a list. (Groups of rows, for
        ``cv``, go to ``fit``.)
    costs : array-like of shape (n_features,), dict or "operations", default=None
        As for `ShareBoostClassifier`: each feature or sensor is paid once, and atoms are taken by
        gain per cost. The price of a model is ``price`` times its cost, so an atom that reads
        nothing new has no price. Only for ``search="local"`` and None.
    max_cost : float, default=None
        Cap on the cost of the model. If ``costs`` is None, the cost is the number of atoms. This
        and the next three are caps: every model of ``path_`` keeps them. In ``rounds_``, those of a
        hot start need not.
    max_features : int, default=None
        Cap on the number of distinct features that the model reads.
    max_operations : float, default=None
        Cap on the operations of the model for one row, weights included; see
        ``predictor_.cost().operations``.
    max_bytes : int, default=None
        Cap on the bytes that the exported model adds to an empty program for ``chip``.
    chip : {"c99", "avr", "cortex-m0", "cortex-m4", "rv32"} or Target, default="c99"
        What ``max_bytes`` is counted for. A `laconic.export.footprint.Target` also sets the bits of
        the weights and the type of the features. By default features have the type of ``X`` if that
        is uint8, int8 or int16, and are floats otherwise.
    include, exclude : list, default=None
        Atoms that are always in the model, for no price, or never in it: feature names, feature
        numbers, or atom records.
    early_stopping : bool, default=False
        Hold out a part of the rows. Stop when their loss no longer falls, and use the model of the
        path at which it was lowest.
    validation_fraction : float, default=0.1
        The part held out.
    n_iter_no_change : int, default=10
        ``early_stopping`` stops after this many rounds without a lower held-out loss.
    cv : int or splitter, default=None
        Cross-validation with the one-standard-error rule. Among several prices it chooses the
        highest one whose score is within one standard error of the best. With one price, it chooses
        the smallest such size of the path.
    scoring : str or callable, default=None
        The score by which ``cv`` compares: any scorer of scikit-learn. The default is accuracy.
    class_weight : dict, "balanced" or None, default=None
        Multiplies the sample weights of each class. This shifts probabilities towards classes that
        weigh more. `corrected_proba` removes this shift.
    tol : float, default=5e-4
        ε of (8), for the mean loss. Stop when no atom outside H violates its constraint by more
        than this. If the pool is a classifier, only the atom that it offers is checked. An atom
        with several weights, for example one for every class, has a constraint for each of them.
    checkpoint : str or path-like, default=None
        File that keeps the state. If the file exists, the fit resumes from it and ends with the
        identical model. A file of other data or settings is refused, but you may raise
        ``max_rounds`` and change settings of ``tune``. To set ``tune`` for the first time, or to
        leave it out, you need another file, or ``early_stopping`` in both fits. A kill loses the
        round (or epoch of tuning) under way and at most 5 seconds before it. If the file can no
        longer be written, a warning says so and the fit goes on.
    callbacks : list of callables, default=None
        Called with the loop's state after every round. If a callback returns something true, the
        fit ends.
    random_state : int, RandomState instance or None, default=None
        Draws the held-out part. Nothing else is random.
    device : {"cuda", "cpu"}, str or torch.device, default=None
        Where the fit runs. ``"cuda"`` moves the rows to a GPU once, and ``"cpu"`` runs the same
        loop on the processor, for tests. ``None`` stays where the rows are: tensors of torch and
        arrays of CuPy on a GPU are learned from there. Needs torch (``pip install ".[gpu]"``), and
        a pool of columns, products, stumps, patches or hinges. The atoms are those of the processor
        up to ties, and two fits on one device give the same bits. See `fit` for what goes in and
        comes out.
    n_jobs : int, default=None
        Number of threads. ``None`` and -1 take every core. The result does not depend on it. The
        workers of a Dask cluster do not use it: each of their threads computes one partition.
    verbose : int, default=0
        1 shows a progress bar, and the nodes and the gap of ``search="exact"`` as it runs.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    loss_ : str or loss object
        The loss that was minimised: ``loss``, or what ``"auto"`` chose.
    path_ : Path
        The best model of every size that was found, in a round or by the search after a hot start,
        smallest first. None is larger than ``max_atoms``.
    rounds_ : list of PathEntry
        The model after every round. The first is the model before any round.
    n_atoms_ : int
        Size of the model in use, which is the model of the last round. (A fit that is stopped in
        its hot start has the largest model that ``max_atoms`` allows.)
    atoms_ : list
        Records of the atoms in the model in use. None has weight zero.
    generated_ : list
        Records of H: all atoms ever taken, in order.
    atom_coef_, intercept_ : ndarray
        Weights of the atoms' columns in the units of the input. A stump counts 1 for yes and 0 for
        no. There is no ``coef_``, because scikit-learn's selectors would take it for weights of the
        features.
    price_ : float
        The price that was paid: ``price``, or what ``cv`` chose.
    objective_ : float
        Mean loss + l1 term + price of the atoms, for the model in use.
    dual_value_ : float
        A value of the dual (7) that is feasible for every atom of the pool, in H or not. No weights
        over the pool have a mean loss + l1 term below it. It is 0 if the pool is a classifier,
        because not all of its atoms can be checked. With a loss of your own, it is valid if the
        loss is never below 0.
    duality_gap_ : float
        ``objective_ − dual_value_``. It is at least price · n_atoms (Theorem 2). It is NaN for a
        tuned model, because the dual value is for the atoms of the pool, and tuned ones are others.
    bound_ : float
        No weights over the pool have an objective (2) below this. Tuned atoms may.
    search_bound_ : float
        With ``search="exact"``, no subset of H has an objective below this. It is -inf for other
        searches, and for the other sizes of the path.
    predictor_ : Predictor
        The deployable result.
    feature_importances_ : ndarray of shape (n_features,)
        Share of each feature in the decrease of the training loss. If an atom is a classifier, its
        share is split by its ``feature_importances_`` or the size of its ``coef_``, or equally if
        it has neither. scikit-learn's selectors use it; see the notes of `ShareBoostClassifier`.
    status_ : str
        Why the fit ended.
    validation_losses_ : ndarray
        Held-out loss of every entry of ``path_``, with ``early_stopping``.
    cv_scores_ : ndarray of shape (n_folds, n_prices) or (n_folds, n_sizes)
        With ``cv``, the scores of the prices, highest price first, or of the sizes.
    exchanges_ : Exchanges
        After a fit on a Dask cluster: how often the loop asked the workers (``count``), and the
        bytes ``sent`` and ``received``. Preparing the rows asks about ten more times. After
        `fit_path`, the counts of all models add up to those of the path. What models share counts
        for the first that is fitted.
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
        "price": "no_validation",  # check_prices checks it
        "l1": [Interval(Real, 0, None, closed="left")],
        "loss": "no_validation",  # find_loss checks it
        "pool": "no_validation",  # make_pool checks it
        "search": "no_validation",
        "hot_start": [Interval(Integral, 0, None, closed="left")],
        "search_options": [dict, None],
        "scale": [StrOptions({"max", "std"}), None],
        "fit_intercept": ["boolean"],
        "tune": "no_validation",  # asked_tuning checks it
        "groups": ["array-like", None],
        "costs": ["array-like", dict, StrOptions({"operations"}), None],
        "max_cost": [Interval(Real, 0, None, closed="neither"), None],
        "max_features": [Interval(Integral, 1, None, closed="left"), None],
        "max_operations": [Interval(Real, 0, None, closed="neither"), None],
        "max_bytes": [Interval(Integral, 1, None, closed="left"), None],
        "chip": "no_validation",  # find_target checks it
        "include": [list, tuple, None],
        "exclude": [list, tuple, None],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "cv": ["cv_object"],
        "scoring": "no_validation",  # find_scorer checks it
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "tol": [Interval(Real, 0, None, closed="left")],
        "checkpoint": "no_validation",
        "callbacks": [list, tuple, None],
        "random_state": ["random_state"],
        "device": "no_validation",  # asked_device checks it
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    _limits_of_fit = ("max_rounds", "n_iter_no_change", "cv", "scoring", "tune")
    _signs = True
    _minimal = True

    def __init__(
        self,
        max_rounds: int = 100,
        *,
        max_atoms: int | None = None,
        price: Any = 1e-3,
        l1: float = 1e-6,
        loss: Any = "auto",
        pool: Any = "stumps",
        search: Any = "local",
        hot_start: int = 0,
        search_options: dict[str, Any] | None = None,
        scale: str | None = "max",
        fit_intercept: bool = True,
        tune: Any = False,
        groups: Any = None,
        costs: Any = None,
        max_cost: float | None = None,
        max_features: int | None = None,
        max_operations: float | None = None,
        max_bytes: int | None = None,
        chip: Any = "c99",
        include: Any = None,
        exclude: Any = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        cv: Any = None,
        scoring: Any = None,
        class_weight: Any = None,
        tol: float = 5e-4,
        checkpoint: Any = None,
        callbacks: Any = None,
        random_state: Any = None,
        device: Any = None,
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
        self.tune = tune
        self.groups = groups
        self.costs = costs
        self.max_cost = max_cost
        self.max_features = max_features
        self.max_operations = max_operations
        self.max_bytes = max_bytes
        self.chip = chip
        self.include = include
        self.exclude = exclude
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.cv = cv
        self.scoring = scoring
        self.class_weight = class_weight
        self.tol = tol
        self.checkpoint = checkpoint
        self.callbacks = callbacks
        self.random_state = random_state
        self.device = device
        self.n_jobs = n_jobs
        self.verbose = verbose

    # -- fitting -------------------------------------------------------------------------------

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None
    ) -> TotalQBoostClassifier:
        """Run algorithm 1.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, tensor, Dask collection, path or list of paths
            Rows and features. Tensors of torch and arrays of CuPy on a GPU stay there, and ``y``
            and ``sample_weight`` may be there or not. The model predicts any rows, wherever they
            are, and answers in kind. Rows may also stay on the workers of a Dask cluster, or in
            ``.npy`` or Parquet files: give a folder, a pattern such as ``"rows/*.parquet"``, or a
            list. Files are read again and again, and only small codes of stumps and rules stay in
            memory. Other pools may write scratch files to the folder for temporary files; set
            ``TMPDIR`` to use another one.
            Only stumps and rules take text in a data frame, and missing values. Dates and durations
            in a data frame become numbers.
        y : array-like of shape (n_rows,), Dask collection or str
            Class labels. At least two must differ. With Parquet files, this is the name of the
            column of labels.
        sample_weight : array-like of shape (n_rows,), default=None
            A row of weight 2 counts like the row twice. A row of weight 0 is left out. (Folds and
            held-out parts are drawn row by row, whatever the weights.)
        groups : array-like of shape (n_rows,), default=None
            Groups of rows, for a ``cv`` that keeps them together, such as
            `sklearn.model_selection.GroupKFold`. (The constructor's ``groups`` are groups of
            features.)

        Returns
        -------
        self
            The fitted estimator. After Ctrl-C it has the model learned so far.
        """
        return self._fit(X, y, sample_weight, groups)

    def _check_own(self) -> None:
        check_search(self.search, self.search_options)
        if not self._chooses_loss():
            find_loss(self.loss)  # refuse a wrong loss or pool before looking at the data
        if isinstance(make_pool(self._pool_object(), self.scale, self.groups, []), Oracle):
            check_weak_learner(self, CAPS)
        super()._check_own()

    def _chooses_loss(self) -> bool:
        return isinstance(self.loss, str) and self.loss == "auto"

    def _loss_of(self, total: float) -> Loss:
        self.loss_ = self.loss
        if self._chooses_loss():
            self.loss_ = "exponential" if len(self.classes_) == 2 else "log"
        return find_loss(self.loss_)

    def _pool_object(self) -> Any:
        """Return the pool: ``"stumps"`` with every threshold, a wrapped classifier, or as given."""
        if type(self.pool) not in (list, tuple):
            return _as_pool(self.pool)
        alone = len(self.pool) == 1
        # A classifier in a longer list stays as it is, and is refused.
        return [_as_pool(item) if alone or isinstance(item, str) else item for item in self.pool]

    def _largest(self) -> tuple[int, int]:
        most = self.max_rounds + len(self.include or ())
        return (most if self.max_atoms is None else self.max_atoms), self.max_rounds

    def _fingerprinted(self) -> dict[str, Any]:
        return {"loss": self.loss_, "price": self._price()}

    def _master(self, rows: Rows, ready: Ready, terms: Terms) -> Master:
        return make_master(rows, self.l1, len(terms.include))

    def _search_over(self, master: Master, terms: Terms, **changed: Any) -> SearchSubset:
        search = changed.get("search", self.search)
        if search not in (None, "local"):
            auto = self._chooses_loss()
            check_searchable(search, master, terms.include, terms.costs, self.classes_, auto)
        cap, rounds = self._largest()
        settings: dict[str, Any] = {
            "price": self._price(),
            "max_atoms": self.max_atoms,
            # If nothing is dropped, a cap on the atoms is also a cap on the rounds.
            "max_rounds": min(rounds, cap - len(terms.include)) if search is None else rounds,
            "include": terms.include,
            "hot_start": self.hot_start,
            "search": self.search,
            "options": self.search_options or {},
        }
        record = Recorder(master.rows, terms.costs)
        return SearchSubset(record, master, **{**settings, **changed})

    def _loop_of(self, settle: SearchSubset, ready: Ready, terms: Terms) -> Loop:
        rows, record = settle.rows, settle.record
        propose: Propose = Asked(rows, self.l1, self.tol)
        if not isinstance(ready.pool, Oracle):
            always = terms.include if self.search is not None else None
            propose = Violated(rows, self.l1, self.tol, terms.admissible, always)
        watch = None if ready.held is None else ready.held.again()
        return Loop(propose, settle, record, watch, self._hooks(ready))

    def _progress(self) -> AbstractContextManager[Shown]:
        def rounds(state: State) -> int:
            return len(SearchState.of(state).generated)

        return progress(self.verbose, self.max_rounds, False, "rounds", rounds)

    def _finish(self, loop: Loop, state: State, shown: Shown) -> None:
        loop.settle.on_search = shown.searched
        loop.grow(state)

    # -- what is kept --------------------------------------------------------------------------

    def _keep_own(self, loop: Loop, state: State, size: int) -> None:
        self.generated_ = [loop.record.rows.pool.atom(n) for n in SearchState.of(state).generated]
        self._keep_proof(loop, state)
        by_price = self.cv is None and not self.early_stopping
        if size == 0 and self.max_rounds > 0 and self.max_atoms != 0 and by_price:
            why = tight_caps(loop.record.costs) or (
                "Lower price or l1. If all columns are constant, or tiny and not scaled, no atom "
                "can help."
            )
            warnings.warn(
                f"no atom is worth its price, so the model predicts the same for every row. {why}",
                stacklevel=stacklevel_of_user(),
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        try:
            if not self._chooses_loss():
                find_loss(self.loss).n_outputs(3)
        except (TypeError, ValueError):
            tags.classifier_tags.multi_class = False
        return tags


def _as_pool(pool: Any) -> Any:
    if isinstance(pool, str) and pool == "stumps":
        return Stumps(bins=None)
    if hasattr(pool, "predict") and not hasattr(pool, "bind"):
        return Oracle(pool)
    return pool
