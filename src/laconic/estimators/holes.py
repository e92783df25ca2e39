"""`HolePunchingClassifier`: one classifier for all rows, and others where it fails."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from laconic.data.doubts import told_already
from laconic.data.fingerprint import fingerprint, settings_of
from laconic.data.labels import PricedRows, check_scale, priced_rows
from laconic.estimators.hole_model import HolesModel
from laconic.holes.local_models import check_models
from laconic.holes.run import PunchRun, draw_seeds, saved, split_rows
from laconic.holes.stages import choose_holes, staged_shares
from laconic.holes.state import Part, PunchState
from laconic.look.holes import progress
from laconic.numeric.threads import Threads

# These settings say how far a fit goes and which of its holes are used. They do not change the
# holes that it finds on the way, so a resumed fit may have other values.
_LIMITS = ("max_holes", "tol", "n_iter_no_change", "prune")


class HolePunchingClassifier(HolesModel):
    """Piecewise classifier: one model outside, and another in every hole where errors are many.

    This is the loop of Dekel and Shamir, section 5.2. It starts from a classifier h of all rows.
    Each round takes the training row with the most errors in its neighbourhood, and the largest
    ball around this row that is more than half misclassified. The ball is a hole, and it gets a
    classifier of its own. The result is eq. (6),

        h(x)·1[x in no hole] + Σ_j h_j(x)·1[x in hole j and in no newer one]:

    *the newest hole that contains a row decides it*. So new holes can correct errors inside old
    holes.

    If several rows have equally many errors around them, a digest of their values decides. So
    the order of the rows does not matter (except for the held-out part).

    Inside a new hole, the fit keeps whichever of three makes the fewest training errors: a fitted
    model, a constant, or the current predictor. If the current predictor is best, there is no hole
    to punch, and a smaller ball or the next centre is tried. So every hole lowers the training
    error, for any number of classes. In the paper's worst case the holes are tiny, and there are as
    many holes as errors. ``min_rows``, ``guard``, ``early_stopping`` and ``prune`` guard against
    this.

    All rows must be in one memory, because a hole may contain any of them, and the classifiers of
    scikit-learn are fitted to whole arrays.

    Parameters
    ----------
    estimator : classifier, default=None
        Classifier to fit to all rows: any scikit-learn classifier. The default is
        `ErrorClumpingClassifier`, whose errors are close together.
    max_holes : int, default=20
        Largest number of holes to punch. The fit also holds the models with fewer holes; see `at`.
    local_estimator : classifier, default=None
        Classifier to fit inside holes. The default is ``estimator``. A `ShareBoostClassifier` here
        makes a compact piecewise model.
    radius : float or "auto", default="auto"
        ρ, the radius of the neighbourhoods in which errors are counted. ``"auto"`` takes the
        ``radius_`` of the fitted ``estimator`` if it has one of Euclidean distances (error
        clumping does). Otherwise it takes a radius within which a row has 5 % of the other rows.
    min_rows : float, default=10
        Least number of training rows in a hole, above 0. If rows are weighted, their weight
        counts. The paper's procedure has 1.
    n_candidates : int, default=1
        Number of centres to compare in every round. The first is the row with the most errors
        around it. With 1, as in the paper, it is the only one. The others are misclassified rows
        drawn at random, whatever their weight. If these are too few, the rows with the next most
        errors around them follow. Equal rows are one centre. The centre whose largest ball holds
        the most errors is taken. The rows around each centre are kept from round to round, up to
        256 MB (1,000 centres of 67,000 rows). So hundreds of centres cost little.
    tol : float, default=0.0
        Stop at this training error.
    early_stopping : bool, default=False
        Hold out a part of the rows. Stop when their error no longer falls, and use the number of
        holes at which it was lowest.
    guard : bool, default=False
        Hold out a part of the rows. Punch a hole only if its model makes fewer errors than the
        current predictor on the held-out rows inside.
    prune : bool, default=False
        Hold out a part of the rows. In the end, drop holes, newest first, if the held-out error is
        no higher without them. The holes that are left need not each lower the training error.
    validation_fraction : float, default=0.1
        The part held out. It is held out once, for all three.
    n_iter_no_change : int, default=5
        ``early_stopping`` stops after this many holes without a lower held-out error.
    class_weight : dict, "balanced" or None, default=None
        What an error of each class costs. Unlike a sample weight, it does not count copies of
        rows. An estimator that has a ``class_weight`` gets these weights there, times its own if
        it has any.
    checkpoint : str or path-like, default=None
        File that keeps the state. If the file exists, the fit resumes from it and ends with the
        identical model. A file of other data or settings is refused, but you may raise
        ``max_holes``. A kill loses the current hole and at most 5 seconds before it. If the file
        can no longer be written, a warning says so and the fit goes on. A checkpoint needs
        ``pickle_models=True``.
    pickle_models : bool, default=False
        Whether a checkpoint may hold pickles. Estimators can be of any class, so a checkpoint
        keeps them as pickles, which run code when they are read. Set this to True if nobody but
        you can write to the file. (Models that `Predictor.save` writes never hold pickles.)
    callbacks : list of callables, default=None
        Called with the loop's state after the first fit and after every hole. If a callback
        returns something true, the fit ends.
    random_state : int, RandomState instance or None, default=None
        Draws the held-out part and the centres beyond the first of ``n_candidates``. If it is
        given, it also draws the ``random_state`` of every fit.
    n_jobs : int, default=None
        Number of threads for distances. ``None`` and -1 take every core. The result does not
        depend on it.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    estimator_ : classifier
        The classifier outside the holes.
    holes_ : list of Hole
        The holes in use, oldest first. Each has a centre, a radius, a model, its rows and its
        errors.
    n_holes_ : int
        Number of holes in use. It is the number of all holes punched, or lower after
        ``early_stopping``.
    errors_ : ndarray
        Weighted training error with 0, 1, 2, … holes. It falls with every hole.
    validation_errors_ : ndarray
        The same on the held-out rows, if there are any.
    radius_ : float
        ρ.
    predictor_ : Predictor
        The deployable result, if every model is linear, a constant or one of Laconic's. A subclass
        that predicts in its own way has none.
    status_ : str
        Why the fit ended.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    Dekel, Shamir. There's a Hole in My Data Space: Piecewise Predictors for Heterogeneous Learning
    Problems. AISTATS 2012.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.linear_model import LogisticRegression
    >>> from laconic import HolePunchingClassifier
    >>> X, y = make_moons(300, noise=0.1, random_state=0)
    >>> model = HolePunchingClassifier(LogisticRegression(), max_holes=4).fit(X, y)
    >>> round(model.estimator_.score(X, y), 2), round(model.score(X, y), 2), model.n_holes_
    (0.87, 1.0, 2)
    """

    _takes_large_maps = False

    _parameter_constraints: dict[str, Any] = {  # noqa: RUF012 (scikit-learn's convention)
        "estimator": [HasMethods(["fit"]), None],
        "max_holes": [Interval(Integral, 0, None, closed="left")],
        "local_estimator": [HasMethods(["fit"]), None],
        "radius": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "min_rows": [Interval(Real, 0, None, closed="neither")],
        "n_candidates": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, 1, closed="left")],
        "early_stopping": ["boolean"],
        "guard": ["boolean"],
        "prune": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "checkpoint": "no_validation",
        "pickle_models": ["boolean"],
        "callbacks": [list, tuple, None],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        estimator: Any = None,
        max_holes: int = 20,
        *,
        local_estimator: Any = None,
        radius: Any = "auto",
        min_rows: float = 10,
        n_candidates: int = 1,
        tol: float = 0.0,
        early_stopping: bool = False,
        guard: bool = False,
        prune: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        class_weight: Any = None,
        checkpoint: Any = None,
        pickle_models: bool = False,
        callbacks: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.max_holes = max_holes
        self.local_estimator = local_estimator
        self.radius = radius
        self.min_rows = min_rows
        self.n_candidates = n_candidates
        self.tol = tol
        self.early_stopping = early_stopping
        self.guard = guard
        self.prune = prune
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.class_weight = class_weight
        self.checkpoint = checkpoint
        self.pickle_models = pickle_models
        self.callbacks = callbacks
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    # -- fitting -------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> HolePunchingClassifier:
        """Fit the classifier outside, and punch holes.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_features)
            Dates and durations in a data frame become numbers, for example days since the first
            date of the column, or hours. float32 stays float32. Distances are taken between the
            columns as they are. Scale the columns first if their units differ.
        y : array-like of shape (n_rows,)
            Class labels. At least two must differ.
        sample_weight : array-like of shape (n_rows,), default=None
            A row of weight 2 counts like the row twice. A row of weight 0 is left out. (Held-out
            parts are drawn row by row, whatever the weights.) The estimators must accept it too.

        Returns
        -------
        self
            The fitted estimator. After Ctrl-C it has the holes punched so far.
        """
        self._check_settings()
        X, y = self._validated(X, y, reset=True, weight=sample_weight)
        check_scale(X)
        outside, local = self._estimators()
        weighted = sample_weight is not None or self.class_weight is not None
        check_models((outside, local), weighted)
        rows = priced_rows(self, X, y, sample_weight)
        mark = "" if self.checkpoint is None else self._mark(rows, weighted)
        train, held = split_rows(self, rows, self._holds_out())
        patience = self.n_iter_no_change if self.early_stopping else None
        with Threads(self.n_jobs) as threads, told_already():
            run = PunchRun(
                outside, local, weighted, train, held, self.classes_, self.radius, self.min_rows,
                self.max_holes, self.n_candidates, self.tol, patience, self.guard,
                draw_seeds(self.random_state, self.max_holes + 2), threads,
            )  # fmt: skip
            state = self._run(run, mark)
        self.radius_ = run.radius
        self._keep(state, (train, held))
        return self

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.checkpoint is not None and not self.pickle_models:
            raise ValueError(
                f"checkpoint {self.checkpoint} would hold fitted estimators as pickles, which run "
                "code when they are read; set pickle_models=True if nobody but you can write to "
                "the file"
            )

    def _draws(self) -> tuple[str, str] | None:
        if not self._holds_out() and self.n_candidates == 1:
            return None
        return "of a fit that holds rows out or draws candidates", "draws the same rows"

    def _holds_out(self) -> bool:
        return self.early_stopping or self.guard or self.prune

    def _estimators(self) -> tuple[Any, Any]:
        """Return the estimator for all rows and the estimator for holes."""
        outside = self.estimator
        if outside is None:
            from laconic.estimators.clump import ErrorClumpingClassifier

            outside = ErrorClumpingClassifier()
        return outside, outside if self.local_estimator is None else self.local_estimator

    def _mark(self, rows: PricedRows, weighted: bool) -> str:
        """Return a fingerprint of data and settings, by which a fit recognises its checkpoint.

        ``weighted`` is part of it: a model that is given weights of one may differ from a model
        that is given none.
        """
        settings = settings_of(self, *_LIMITS) | {"classes": self.classes_.tolist()}
        settings |= {"rows": rows.number, "held": self._holds_out()}
        settings |= {"weighted": weighted, "units": self._units}
        return fingerprint(rows.X, rows.codes, rows.weight, settings)

    def _run(self, run: PunchRun, mark: str) -> PunchState:
        """Run the loop, from the checkpoint if there is one."""
        with (
            saved(self.checkpoint, mark, run, self._save_every) as (resumed, hooks),
            progress(self.verbose, self.max_holes) as bar,
        ):
            state = run.begin(resumed)
            hooks += [*(self.callbacks or []), bar]
            self._until_interrupted(lambda: run.punch(state, hooks), state, lambda: run.kept(state))
        return state

    def _keep(self, state: PunchState, parts: tuple[Part, Part | None]) -> None:
        """Set the fitted attributes from the loop's state."""
        choice = choose_holes(state, parts, self.max_holes, self.early_stopping, self.prune)
        self.status_ = choice.status
        self.estimator_ = state.base
        self._every_hole = choice.holes
        self.errors_ = choice.errors
        self.__dict__.pop("validation_errors_", None)
        if choice.held_errors is not None:
            self.validation_errors_ = choice.held_errors
        self._shares = staged_shares(choice.holes, parts[0])
        self._use(choice.use)
