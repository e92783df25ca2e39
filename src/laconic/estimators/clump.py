"""`ErrorClumpingClassifier`: a linear classifier whose errors clump, for scikit-learn."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from laconic.clumping.checkpoint import Resumable
from laconic.clumping.graph import NeighbourGraph, empty_graph
from laconic.clumping.margins import Margins
from laconic.clumping.neighbours import find_graph, find_radius, given_graph
from laconic.clumping.one_vs_rest import (
    ClumpingSolver,
    OneVsRestProblems,
    linear_predictor,
    state_kind,
    why_unfinished,
)
from laconic.clumping.problem import ClumpingSolution
from laconic.clumping.theta import NORMALIZE, Theta
from laconic.data.doubts import stacklevel_of_user
from laconic.data.fingerprint import fingerprint, settings_of
from laconic.data.labels import PricedRows, check_scale, priced_rows
from laconic.estimators.base import LaconicClassifier
from laconic.estimators.label_groups import group_labels
from laconic.estimators.lazily import lazily
from laconic.look.bars import share_bar
from laconic.numeric.threads import Threads


class ErrorClumpingClassifier(LaconicClassifier):
    """Linear classifier that pays less for errors near other errors, so that its errors clump.

    It minimises eq. (1) of the paper over w and the slacks ξ,

        λ/2 ‖w‖² + ξᵀΘξ / (2m)   s.t.  ξ_i ≥ 0 and ξ_i ≥ 1 − y_i⟨w, x_i⟩,

    where Θ is 1 on the diagonal and −η c_ij for neighbours i, j. An error costs its squared slack,
    less a discount for the errors in its neighbourhood. So the classifier gives up on tight
    clusters and does better elsewhere. The clusters can then be found and handled separately.
    Without a discount it is an SVM with squared hinge loss: scikit-learn's LinearSVC with
    C = 1/(2 m λ).

    The problem is convex, and it is solved to a proven gap. Finding neighbours takes O(m² d)
    operations at the speed of BLAS, and at most about m²/8 bytes. Every step after that takes a
    few passes over the rows and the graph. Sparse rows stay sparse: 20,000 rows with 100,000
    columns and 10 values each take 0.4 GB and some seconds. All rows must be in one memory, because
    any two rows may be neighbours.

    Parameters
    ----------
    alpha : float, default=1e-3
        λ, the ridge penalty on the weights and on the intercept. The right value depends on the
        units of the features. A `sklearn.preprocessing.StandardScaler` before this classifier
        makes the units alike.
    radius : float or "auto", default="auto"
        ρ. Rows at most this far apart are neighbours. ``"auto"`` takes the distance within which
        5 % of the pairs of rows lie (see `laconic.clumping.neighbours.auto_radius`). ``radius_``
        holds the value in use.
    discount : float, default=0.5
        η in [0, 1]: how much neighbouring errors forgive each other. It must be below 1 with
        ``normalize="degree"``. At 0 neighbours do not count, and no graph is built.
    normalize : {"degree", "pairs"}, default="degree"
        c_ij. ``"degree"`` means 1/√(d_i d_j), where d are the numbers of neighbours. ``"pairs"``
        means 1/(m − 1), as in the paper. By degree, an error whose neighbours are all errors of
        equal slack costs 1 − η of a lone error, for any m and ρ. By pairs it costs
        1 − η d_i/(m − 1). So the discount is weak unless the radius spans much of the data.
    n_neighbors : int, default=None
        Use this many nearest rows as neighbours, instead of a radius. Two rows are neighbours if
        either is among the nearest of the other. Rows exactly as far as the last of the nearest
        count too. ``radius`` must then stay ``"auto"``.
    metric : str or callable, default="euclidean"
        Distance: any that `sklearn.metrics.pairwise_distances` takes. Euclidean is by far the
        fastest.
    label_groups : dict, default=None
        Names of groups, with the labels in each. The classifier then separates groups instead of
        labels. A problem of two groups is binary, whatever the number of labels. ``classes_`` are
        then the groups, and ``predict`` returns groups. A scorer of scikit-learn would compare
        these groups with the labels in y, so wrap it in `laconic.grouped_scorer`. (``score``
        itself compares groups.)
    fit_intercept : bool, default=True
        Whether rows have a constant feature 1. Its weight is penalised like all others.
    solver : {"newton", "averaging"}, default="newton"
        ``"newton"`` is a semismooth Newton method (`laconic.clumping.solver`). ``"averaging"`` is
        the paper's stochastic dual averaging (`laconic.clumping.averaging`). It is far slower, and
        takes dense rows only.
    tol : float, default=1e-10
        Stop at this gap, relative to the objective. The last step of the Newton method gains
        several digits. The stochastic method would never get there.
    max_iter : int, default=100
        Largest number of Newton iterations, or of passes of m stochastic steps. If rows are few or
        separable, and λ is small compared with their squared norms, the Newton method approaches λ
        from larger values. Iterations at larger λ count too. If a fit is stopped there, its w
        belongs to a larger λ, and the gap shows it. With a ``checkpoint`` you can raise
        ``max_iter``, and the fit goes on.
    learning_rate : float, default=None
        γ in the learning rate γ/√t of ``solver="averaging"``. The default is one over the mean
        squared norm of the rows.
    class_weight : dict, "balanced" or None, default=None
        What the slack of a row costs, for each class. Only the ratios count. Unlike sample
        weights, class weights do not count copies of rows: see the notes.
    checkpoint : str or path-like, default=None
        File that keeps the state. If the file exists, the fit resumes from it and ends with the
        identical model. A file of other data or settings is refused, but you may raise
        ``max_iter``. (With a smaller ``max_iter``, iterations that are in the file stay.) A kill
        loses the current iteration and at most 5 seconds before it. If the file can no longer be
        written, a warning says so and the fit goes on.
    random_state : int, RandomState instance or None, default=None
        Draws the rows of ``solver="averaging"``. Nothing else is random.
    n_jobs : int, default=None
        Number of threads. ``None`` and -1 take every core. The result does not depend on it.
    verbose : int, default=0
        1 shows the progress of the search for neighbours. It prints the radius, and the objective
        and gap of every iteration. If an iteration is at a larger λ than ``alpha``, it prints that
        λ too.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        w of the second class against the first, or of every class against the rest.
    intercept_ : ndarray of shape (1,) or (n_classes,)
    objective_ : float
        Eq. (1) at the solution. If there are more than two classes, the sum over their problems.
    gap_ : float
        Proven bound on how far ``objective_`` is above the optimum (up to rounding).
    radius_ : float
        The radius in use. NaN if neighbours were not found by a radius. At a discount of 0, the
        radius that would be in use: hole punching counts errors within it.
    neighbour_share_ : float
        Share of the pairs of rows that are neighbours, copies of a row included. NaN at a discount
        of 0, because no graph is built.
    n_iter_ : int
        Largest number of iterations that any of the problems took, those at larger λ included.
    predictor_ : Predictor
        The deployable result.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    *More than two classes* are separated one against the rest. Each class has a problem of its
    own. All problems have the same neighbours, and the largest score wins.

    *Sample weights* count rows. An integer weight is the same as the row repeated. Copies are
    neighbours of each other. They count in the degrees, in m, in the automatic radius and among
    the ``n_neighbors`` nearest. A weight below 1 is the part of a row that counts: its slack
    costs that part, and forgives its neighbours by that part. (A row of weight 2.5 is a neighbour
    of itself with weight 1.5.) In a graph of your own, copies have the row's neighbours and each
    other as neighbours. ``solver="averaging"`` draws rows. So there a weight is the same as
    repeated rows only at the optimum.

    *Class weights* are prices. The slack of a row of price p costs p times as much, and it counts p
    times in what its neighbours are forgiven. They change neither the neighbours nor the radius.
    Without a discount, a class weight of 2 is the same as all rows of the class twice, as in
    LinearSVC. With a discount it is not: two copies of a row would also forgive each other.

    *Kernels* (footnote 1) come in through a feature map before this classifier, in a pipeline:
    `sklearn.kernel_approximation.Nystroem` or `RBFSampler`. Neighbours are then neighbours in the
    feature space.

    References
    ----------
    Dekel, Shamir. There's a Hole in My Data Space: Piecewise Predictors for Heterogeneous Learning
    Problems. AISTATS 2012.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from laconic import ErrorClumpingClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> groups = {"0-4": [0, 1, 2, 3, 4], "5-9": [5, 6, 7, 8, 9]}
    >>> model = ErrorClumpingClassifier(discount=0.5, label_groups=groups).fit(X, y)
    >>> model.predict(X[:2]), model.gap_ < 1e-5
    (array(['0-4', '0-4'], dtype='<U3'), True)
    """

    _takes_large_maps = False

    _parameter_constraints: dict[str, Any] = {  # noqa: RUF012 (scikit-learn's convention)
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "radius": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "discount": [Interval(Real, 0, 1, closed="both")],
        "normalize": [StrOptions(set(NORMALIZE))],
        "n_neighbors": [Interval(Integral, 1, None, closed="left"), None],
        "metric": [str, callable],
        "label_groups": [Mapping, None],
        "fit_intercept": ["boolean"],
        "solver": [StrOptions({"newton", "averaging"})],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither"), None],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "checkpoint": "no_validation",
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        alpha: float = 1e-3,
        *,
        radius: float | str = "auto",
        discount: float = 0.5,
        normalize: str = "degree",
        n_neighbors: int | None = None,
        metric: Any = "euclidean",
        label_groups: Mapping[Any, Any] | None = None,
        fit_intercept: bool = True,
        solver: str = "newton",
        tol: float = 1e-10,
        max_iter: int = 100,
        learning_rate: float | None = None,
        class_weight: Any = None,
        checkpoint: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.radius = radius
        self.discount = discount
        self.normalize = normalize
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.label_groups = label_groups
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.class_weight = class_weight
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    # -- fitting -------------------------------------------------------------------------------

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, graph: Any = None
    ) -> ErrorClumpingClassifier:
        """Fit the classifier.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_features)
            Dates and durations in a data frame become numbers, for example days since the first
            date of the column, or hours. float32 stays float32.
        y : array-like of shape (n_rows,)
            Class labels. At least two must differ. With ``label_groups``, they must be of at least
            two groups.
        sample_weight : array-like of shape (n_rows,), default=None
            A row of weight 2 counts like the row twice. A row of weight 0 is left out. See the
            notes.
        graph : NeighbourGraph or matrix of shape (n_rows, n_rows), default=None
            The neighbours of each row, instead of a radius. Give a graph from
            `laconic.clumping.neighbours`, so that several fits share it, or any dense or sparse
            matrix whose non-zeros are edges. The matrix is made symmetric.

        Returns
        -------
        self
        """
        self._check_settings()
        X, y = self._validated(X, y, reset=True, weight=sample_weight)
        check_scale(X)
        rows = priced_rows(self, X, self._as_predicted(y), sample_weight)
        given = None if graph is None else given_graph(graph, X.shape[0])
        if given is not None and len(rows.number) < X.shape[0]:
            given = given.subset(rows.number)
        with self._saver(rows, given) as saver:
            network = self._neighbours(rows, given)
            with Threads(self.n_jobs) as threads:
                terms = self.discount, self.normalize, rows.weight, threads, rows.price
                theta = Theta(network, *terms)
                margins = Margins(rows.X, self.fit_intercept, threads)
                problems = OneVsRestProblems(margins, theta, rows.codes, self.classes_, self.alpha)
                answers = problems.solve(self._solver(), saver, print if self.verbose else None)
        self._keep(answers)
        return self

    def _as_predicted(self, y: Any) -> Any:
        """Return the labels, or their groups if ``label_groups`` is set."""
        return y if self.label_groups is None else group_labels(self.label_groups, np.asarray(y))

    def _draws(self) -> tuple[str, str] | None:
        if self.solver != "averaging":
            return None
        return "with solver='averaging'", "draws the same rows"

    def _solver(self) -> ClumpingSolver:
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        return ClumpingSolver(self.solver, self.tol, self.max_iter, self.learning_rate, seed)

    def _saver(
        self, rows: PricedRows, given: NeighbourGraph | None
    ) -> AbstractContextManager[Resumable[Any] | None]:
        """Return the checkpoint, or an empty context if there is none."""
        if self.checkpoint is None:
            return nullcontext()
        settings = settings_of(self, "max_iter")
        settings |= {"price": rows.price, "graph": None if given is None else given.digest()}
        settings |= {"units": self._units}
        mark = fingerprint(rows.X, rows.codes, rows.weight, settings)
        return Resumable(self.checkpoint, mark, state_kind(self.solver), self._save_every)

    def _neighbours(self, rows: PricedRows, given: NeighbourGraph | None) -> NeighbourGraph:
        """Return the graph of neighbours. At a discount of 0 it is empty."""
        asked = rows.X, self.radius, self.n_neighbors, self.metric, given
        weight = rows.weight
        if self.discount == 0:
            self.radius_, self.neighbour_share_ = find_radius(*asked, weight=weight), np.nan
            return empty_graph(rows.X.shape[0])
        with share_bar(self.verbose, "finding neighbours") as watch:
            network, self.radius_ = find_graph(
                *asked, weight=weight, n_jobs=self.n_jobs, watch=watch
            )
        with Threads(self.n_jobs) as threads:
            self.neighbour_share_ = network.weighted_share(weight, threads)
        if self.verbose:
            where = "" if np.isnan(self.radius_) else f"radius {self.radius_:.4g}: "
            share = 100 * self.neighbour_share_
            print(f"{where}{share:.3g} % of the pairs of rows are neighbours")
        return network

    def _keep(self, answers: list[ClumpingSolution]) -> None:
        """Set the fitted attributes from the solutions."""
        weights = np.stack([answer.weights for answer in answers])
        d = self.n_features_in_
        self.coef_ = weights[:, :d]
        self.intercept_ = weights[:, d] if self.fit_intercept else np.zeros(len(weights))
        self.objective_ = float(sum(answer.objective for answer in answers))
        self.gap_ = float(sum(answer.gap for answer in answers))
        self.n_iter_ = max(1, *(answer.iterations for answer in answers))
        unfinished = why_unfinished(answers, self.max_iter)
        if unfinished is not None:
            warnings.warn(unfinished, ConvergenceWarning, stacklevel=stacklevel_of_user())
        names = getattr(self, "feature_names_in_", None)
        given = self.coef_, self.intercept_, self.classes_, names, self._units
        self.predictor_ = linear_predictor(*given)

    # -- predicting ----------------------------------------------------------------------------

    @lazily
    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores ⟨w, x⟩ of every row.

        Their shape is (n_rows, n_classes). For two classes it is (n_rows,), and a score above zero
        means the second class.
        """
        scores = self._scores(X)
        return scores[:, 1] if len(self.classes_) == 2 else scores

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy.

        With ``label_groups``, ``y`` holds labels, and their groups are compared.
        """
        return super().score(X, y, sample_weight)
