"""`HolePunchingClassifier`: a classifier, and other classifiers where it fails."""

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

# Settings that change how far a fit goes, or what is made of it, but not what it finds on the way.
_LIMITS = ("max_holes", "tol", "n_iter_no_change", "prune")


class HolePunchingClassifier(HolesModel):
    """A piecewise classifier: one outside, and another in every hole punched where errors are many.

    The loop of Dekel and Shamir, section 5.2. Starting from a classifier h of all rows, each round
    takes the training row whose neighbourhood holds most errors, the largest ball around it that is
    more than half misclassified, and a classifier of its own inside. Eq. (6),

        h(x)·1[x in no hole] + Σ_j h_j(x)·1[x in hole j and in no newer one]:

    *the newest hole that contains a row decides it*, so that errors inside old holes can heal.

    Where several rows have equally many errors around them, a digest of their values decides. So
    the order of the rows does not matter (but for the held-out part).

    Inside a new hole the model is the best on its training rows of a fitted one, a constant and the
    predictor so far (which leaves nothing to punch: a smaller ball or the next centre has its
    turn), so that every hole lowers the training error, for any number of classes. In the paper's
    worst case holes are tiny and as many as the errors; ``min_rows``, ``guard``,
    ``early_stopping`` and ``prune`` keep them honest.

    Parameters
    ----------
    estimator : classifier, default=None
        What to fit to all rows: any scikit-learn classifier. `ErrorClumpingClassifier` by default,
        whose errors lie close together.
    max_holes : int, default=20
        Most holes to punch. The fit also holds the models of fewer; see `at`.
    local_estimator : classifier, default=None
        What to fit inside holes; ``estimator`` by default. A `ShareBoostClassifier` here makes a
        compact piecewise model.
    radius : float or "auto", default="auto"
        ρ, the radius of the neighbourhoods in which errors are counted. By default that of the
        fitted ``estimator`` if it has a ``radius_`` of Euclidean distances (error clumping does),
        or else one within which a row has 5 % of the others.
    min_rows : float, default=10
        Least number of training rows in a hole (their weight, where rows are weighted), above 0.
        The paper's procedure has 1.
    n_candidates : int, default=1
        Centres to compare in every round: the row with most errors around it, which is the paper's
        procedure and all that 1 looks at; misclassified rows drawn at random, whatever their
        weight; then, where these are fewer, the rows with next most errors around them. Equal rows
        are one centre. The one whose largest ball holds most errors is taken. What lies around a
        centre is kept from round to round while 256 MB hold it (1,000 centres of 67,000 rows), so
        that hundreds cost little.
    tol : float, default=0.0
        Training error at which to stop.
    early_stopping : bool, default=False
        Hold out a part of the rows, stop when their error no longer falls, and use the number of
        holes at which it was lowest.
    guard : bool, default=False
        Hold out a part of the rows, and punch a hole only where its model makes fewer errors on the
        held-out rows inside than the predictor so far.
    prune : bool, default=False
        Hold out a part of the rows, and drop in the end, newest first, the holes without which
        their error is no higher. What is left need no longer lower the training error hole by hole.
    validation_fraction : float, default=0.1
        The part held out, once for all three.
    n_iter_no_change : int, default=5
        Holes without a lower held-out error after which ``early_stopping`` stops.
    class_weight : dict, "balanced" or None, default=None
        What an error of each class costs. Unlike a sample weight it does not count copies of rows.
        An estimator that has a ``class_weight`` gets these there, times its own where it has one.
    checkpoint : str or path-like, default=None
        File that keeps the state. A fit that finds it resumes from it and ends with the identical
        model; other data or settings are refused, but ``max_holes`` may be raised. A kill loses the
        hole under way and at most 5 seconds before it. Where the file can no longer be written, a
        warning says so and the fit goes on. It needs ``pickle_models=True``.
    pickle_models : bool, default=False
        Whether a checkpoint may hold pickles. Estimators can be of any class, so a checkpoint keeps
        them as pickles, which run code when they are read. Set it where nobody but you can write to
        the file. (Models that `Predictor.save` writes never hold any.)
    callbacks : list of callables, default=None
        Called with the loop's state after the first fit and every hole; a true answer ends the fit.
    random_state : int, RandomState instance or None, default=None
        Draws the held-out part, the centres beyond the first of ``n_candidates``, and where it is
        given, the ``random_state`` of every fit.
    n_jobs : int, default=None
        Threads for distances. ``None`` and -1 take every core. The answer does not depend on it.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    estimator_ : classifier
        The classifier outside the holes.
    holes_ : list of Hole
        Oldest first, those in use: centre, radius, model, rows and errors of each.
    n_holes_ : int
        Number of holes in use: all that were punched, or fewer after ``early_stopping``.
    errors_ : ndarray
        Weighted training error with 0, 1, 2, … holes. It falls with every hole.
    validation_errors_ : ndarray
        The same on the held-out rows, where there are any.
    radius_ : float
        ρ.
    predictor_ : Predictor
        The deployable result, where every model is linear, a constant or one of Laconic's.
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

    _parameter_constraints: dict[str, Any] = {  # noqa: RUF012 (scikit-learn's convention)
        "estimator": [HasMethods(["fit", "predict"]), None],
        "max_holes": [Interval(Integral, 0, None, closed="left")],
        "local_estimator": [HasMethods(["fit", "predict"]), None],
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
            Dates and durations of a frame are numbers: days since the first date of the column, or
            hours, say.
            float32 stays float32. Distances are taken as the columns are: scale them first where
            their units differ.
        y : array-like of shape (n_rows,)
            Class labels, at least two different ones.
        sample_weight : array-like of shape (n_rows,), default=None
            Weight 2 means the row twice, weight 0 the row gone (held-out parts are drawn by rows,
            whatever their weight). The estimators must take it too.

        Returns
        -------
        self
            Also after Ctrl-C: then with the holes punched so far.
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
                "code when they are read; set pickle_models=True if nobody but you can write to it"
            )

    def _draws(self) -> tuple[str, str] | None:
        if not self._holds_out() and self.n_candidates == 1:
            return None
        return "of a fit that holds rows out or draws candidates", "draws the same rows"

    def _holds_out(self) -> bool:
        return self.early_stopping or self.guard or self.prune

    def _estimators(self) -> tuple[Any, Any]:
        """What to fit outside and inside."""
        outside = self.estimator
        if outside is None:
            from laconic.estimators.clump import ErrorClumpingClassifier

            outside = ErrorClumpingClassifier()
        return outside, outside if self.local_estimator is None else self.local_estimator

    def _mark(self, rows: PricedRows, weighted: bool) -> str:
        """What tells this fit's checkpoint from those of other data or settings.

        Models that are given weights of one may differ from models that are given none.
        """
        settings = settings_of(self, *_LIMITS) | {"classes": self.classes_.tolist()}
        settings |= {"rows": rows.number, "held": self._holds_out()}
        settings |= {"weighted": weighted, "units": self._units}
        return fingerprint(rows.X, rows.codes, rows.weight, settings)

    def _run(self, run: PunchRun, mark: str) -> PunchState:
        """Run the loop, from the checkpoint where there is one."""
        with (
            saved(self.checkpoint, mark, run, self._save_every) as (resumed, hooks),
            progress(self.verbose, self.max_holes) as bar,
        ):
            state = run.begin(resumed)
            hooks += [*(self.callbacks or []), bar]
            self._until_interrupted(lambda: run.punch(state, hooks), state, lambda: run.kept(state))
        return state

    def _keep(self, state: PunchState, parts: tuple[Part, Part | None]) -> None:
        """Turn the loop's state into fitted attributes."""
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
