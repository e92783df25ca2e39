"""`ShareBoostClassifier`: ShareBoost as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager
from numbers import Integral, Real
from typing import Any

from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from laconic.boost.correct_all import CorrectAll, Refinement
from laconic.boost.loop import Loop
from laconic.boost.moved import ByRuleMoved
from laconic.boost.path import PathEntry, rounds_needed
from laconic.boost.propose import ByRule
from laconic.boost.record import Recorder
from laconic.boost.rules import find_rule
from laconic.boost.stages import State
from laconic.correct import Newton
from laconic.data.doubts import stacklevel_of_user
from laconic.estimators.booster import BoostedClassifier, Ready, Terms
from laconic.estimators.budgets import tight_caps
from laconic.estimators.tuning import mark_of_moves, mover
from laconic.look.progress import Shown, progress
from laconic.losses import Loss, find_loss
from laconic.penalties import check_penalty, find_penalty
from laconic.rows.rows import Rows

# alpha="auto" is FALLING over the square of the sum of the weights, but at least WEAKEST and
# at most STRONGEST.
FALLING, WEAKEST, STRONGEST = 32.0, 1e-6, 3e-4


class ShareBoostClassifier(BoostedClassifier):
    """Multiclass classifier whose classes share a few features (ShareBoost).

    It grows the predictor argmax_y (W x)_y, eq. (1), one atom at a time. Each round chooses the
    atom whose column of the gradient has the largest l1 norm, eq. (7), and then re-optimises the
    weights of all chosen atoms (algorithm 1). One fit gives every size up to ``max_atoms``. It
    minimises

        Φ(W) = Σ_i w_i ℓ(W, (x_i, y_i)) / Σ_i w_i + Ω(W)   s.t. at most n non-zero columns,

    eq. (4) with the penalty of section 2.1. Choosing the atoms of T rounds costs O(T m d k). Each
    correction costs a few dozen products of the m x t chosen block with a t x k matrix. With the l1
    gradient rule, columns in [-1, 1] and no penalty, 4‖W*‖²_{∞,1}/ε rounds reach L(W*) + ε for any
    W* (Theorem 2). Choosing the best n columns exactly is NP-hard.

    Parameters
    ----------
    max_atoms : int, default=20
        Largest number of atoms, T in the paper. The path also holds every smaller size.
    pool : {"columns", "stumps", "rules", "products", "pieces", "bumps", "hinges"}, pool object \
            or list, default="columns"
        The atoms to choose from: input columns, decision stumps on them (section 3.1), rules of two
        conditions, products of two columns, balls with a linear function inside (section 3.2), soft
        balls, or hinges max(0, v·x − b). To change the settings of a pool, give an object of
        `laconic.pools`.
        A list of names and objects mixes pools: each round chooses the best atom of all of them. Of
        a mix, ``rule="projection"`` compares atoms of different scales better; see
        `laconic.pools.Mixed`.
    loss : {"margin", "log"} or loss object, default="margin"
        ``"margin"`` is the loss of eq. (3), ``"log"`` the plain multinomial log-loss. You can also
        give a loss of your own; see `laconic.losses.Loss`. The losses of TotalQBoost
        ("exponential" and so on) work for two classes.
    rule : {"gradient", "projection", "step", "column", "refit"} or rule object, default="gradient"
        How the next atom is chosen (section 2.1). ``"gradient"``: the largest l1 norm of the
        gradient, eq. (7). ``"projection"``: this norm, divided by the length of the part of the
        column that the chosen columns do not explain. ``"step"``: the best step along the gradient.
        ``"column"``: the best new column. ``"refit"``: a full refit for every candidate. The last
        three try every atom and are slow for large pools. A rule object has the method of
        `laconic.boost.rules.Rule`.
    penalty : {"l2", "l1", "linf_l1"} or penalty object, default="l2"
        Ω. ``"l2"`` is the Frobenius penalty (alpha/2)‖W‖² (the paper's λ is alpha/2). ``"l1"`` and
        ``"linf_l1"`` are the smooth l1 and l∞/l1 norms times alpha. Weights are penalised in scaled
        units. The intercept is not penalised. A penalty object (see `laconic.penalties.Penalty`)
        has a strength of its own, and ``alpha`` and ``beta`` are not used.
    alpha : float or "auto", default="auto"
        Strength of the penalty. 0 switches it off. ``"auto"`` is 32 over the square of the sum of
        the weights, but at least 1e-6 and at most 3e-4. (Without weights, the sum is the number of
        rows.) So the penalty is stronger for fewer rows (``experiments/default_alpha.py``).
    beta : float, default=20.0
        β ≥ 1 of the smooth norms. A larger value is closer to the norm and harder to optimise.
    scale : {"max", "std"} or None, default="max"
        How columns are scaled. The scale is applied on the fly. The l1 rule depends on the scale,
        and the paper assumes columns in [-1, 1]. ``atom_coef_`` is in the units of the input.
        Stumps need no scale.
    fit_intercept : bool, default=True
        Whether a constant column is always in the model.
    refine : bool, default=False
        Improve the finished path with swap moves. The loss is never higher at any size, and often
        lower. Models of different sizes need not nest, and may depend on ``max_atoms``.
    tune : bool or Tuning, default=False
        Re-optimise the parameters of the chosen atoms together with their weights once the path is
        grown: the directions of hinges, the templates of patches, the centres and radii of soft
        balls. A tuned model is used if it has a lower loss on held-out rows; without
        ``early_stopping``, the share ``validation_fraction`` of the rows is held out for this. The
        path is grown on the other rows. ``path_.chosen`` is the path without tuning, and
        ``path_.is_tuned(size)`` says whether a tuned model was accepted. See
        `laconic.tune.Tuning` for settings, and for which sizes are tuned. With
        ``Tuning(at_selection=True)``, hinges and patches are also moved when they are chosen. Only
        for ``"hinges"``, ``"bumps"``, and `laconic.pools.Patches` and ``Pieces(soft=True)``.
    groups : sequence, default=None
        A label for every feature, or lists of feature numbers. Features of a group are chosen
        together (section 2.1). Only for ``"columns"``, alone or in a list; see
        `laconic.pools.Columns`. (Groups of rows, for ``cv``, go to ``fit``.)
    costs : array-like of shape (n_features,), dict or "operations", default=None
        Cost of reading each feature, in the order of the features. Or a dict or pandas series with
        costs by feature name, or by feature number if ``X`` has no names. Features that it does not
        name cost 1. A key of a dict may be a tuple of features: a sensor that brings all of them
        at one cost. Each feature, or sensor, is paid once, however many atoms read it. Atoms are
        ranked by gain per cost, where the cost is what an atom adds to the cost of the model. An
        atom that adds nothing, because all that it reads is paid, is ranked as if it added the
        least of all costs. So an atom that costs nothing is never preferred to an atom of the least
        cost that gains more. With ``"operations"`` an atom costs the operations that it adds to the
        model, without those of weights. What the chosen atoms already compute costs nothing. This
        needs a pool that computes something (such as `laconic.pools.Patches`).
    max_cost : float, default=None
        Cap on the cost of the model. If ``costs`` is None, the cost is the number of atoms. This
        and the next three are caps: an atom is not chosen if the model would be beyond one of them.
        They do not change how atoms are ranked. ``path_`` has what every size costs.
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
        Atoms that are always, or never, in the model: feature names, feature numbers, or atom
        records.
    early_stopping : bool, default=False
        Hold out a part of the rows. Stop when their loss no longer falls, and use the size at which
        it was lowest.
    validation_fraction : float, default=0.1
        The part held out.
    n_iter_no_change : int, default=10
        ``early_stopping`` stops after this many rounds without a lower held-out loss.
    cv : int or splitter, default=None
        Choose the size by cross-validation with the one-standard-error rule: the smallest size
        whose score is within one standard error of the best. It fits one path per fold.
    scoring : str or callable, default=None
        The score by which ``cv`` compares sizes: any scorer of scikit-learn, such as ``"roc_auc"``,
        ``"balanced_accuracy"`` or ``"neg_log_loss"``. ``None`` is accuracy, which says little if
        one class is rare.
    class_weight : dict, "balanced" or None, default=None
        Multiplies the sample weights of each class. This shifts probabilities towards classes that
        weigh more. `corrected_proba` removes this shift.
    tol : float, default=1e-5
        Relative tolerance of each correction; see `laconic.correct.Newton`.
    checkpoint : str or path-like, default=None
        File that keeps the state. If the file exists, the fit resumes from it and ends with the
        identical model. A file of other data or settings is refused, but you may raise
        ``max_atoms`` and change settings of ``tune``, except ``at_selection``. To set ``tune`` for
        the first time, or to leave it out, you need another file, or ``early_stopping`` in both
        fits: otherwise the path is grown on other rows. A kill loses the current round (or epoch
        of tuning) and at most 5 seconds before it. If the file can no longer be written, a warning
        says so and the fit goes on.
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
        1 shows a progress bar.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    loss_ : str
        The loss that was minimised: ``loss``.
    path_ : Path
        Atoms, weights, losses, certificates, costs and times for each size.
    n_atoms_ : int
        The size in use: the largest of the path, or the one chosen by ``early_stopping`` or ``cv``.
    atoms_ : list
        Records of the atoms of that size.
    atom_coef_ : ndarray of shape (n_classes, n_columns)
        Weights of the atoms' columns in the units of the input. There is no ``coef_``, because
        scikit-learn's selectors would take it for weights of the features.
    intercept_ : ndarray of shape (n_classes,)
    alpha_ : float
        The strength of the penalty that was used: ``alpha``, or the value that ``"auto"`` chose.
    predictor_ : Predictor
        The deployable result.
    feature_importances_ : ndarray of shape (n_features,)
        Share of each feature in the decrease of the training loss. It is 0 for features that the
        model does not read, and above 0 for those that it reads. scikit-learn's selectors use it;
        see the notes.
    status_ : str
        Why the fit ended.
    validation_losses_ : ndarray
        Held-out loss of every path entry, with ``early_stopping``.
    cv_scores_ : ndarray of shape (n_folds, n_sizes)
        Score of every size on every fold, with ``cv``: accuracy, or the score of ``scoring``.
    exchanges_ : Exchanges
        After a fit on a Dask cluster: how often the loop asked the workers (``count``), and the
        bytes ``sent`` and ``received``. Preparing the rows asks about ten more times.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    *Probabilities.* With ``loss="log"`` they are the softmax of the scores. The margin of eq. (3)
    asks the true class to win by 1, which stretches the scores: their softmax s is over-confident.
    ``predict_proba`` undoes that exactly for the population optimum, p_q ∝ s_q (e − (e − 1) s_q).
    On finite data either loss can still be miscalibrated. Prefer ``loss="log"`` for probabilities.

    *Selecting features.* `sklearn.feature_selection.SelectFromModel` with ``threshold=1e-12`` keeps
    exactly the features that the model reads. Its default threshold is the mean, 1 / n_features. It
    keeps features with at least an even share, and drops others although the model reads them.
    (With ``penalty="l1"`` scikit-learn's default is 1e-5 instead.)

    References
    ----------
    Shalev-Shwartz, Wexler, Shashua. ShareBoost: Efficient Multiclass Learning with Feature
    Sharing. NIPS 2011.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from laconic import ShareBoostClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ShareBoostClassifier(max_atoms=2).fit(X, y)
    >>> model.atoms_
    [Column(feature=3), Column(feature=2)]
    >>> round(model.score(X, y), 2), round(model.at(1).score(X, y), 2)
    (0.95, 0.96)
    """

    _parameter_constraints: dict[str, Any] = {  # noqa: RUF012 (scikit-learn's convention)
        "max_atoms": [Interval(Integral, 0, None, closed="left")],
        "pool": "no_validation",  # make_pool checks it
        "loss": "no_validation",  # find_loss checks it
        "rule": "no_validation",  # find_rule checks it
        "penalty": "no_validation",  # find_penalty checks it
        "alpha": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "beta": [Interval(Real, 1, None, closed="left")],
        "scale": [StrOptions({"max", "std"}), None],
        "fit_intercept": ["boolean"],
        "refine": ["boolean"],
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
        "scoring": [str, callable, None],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "checkpoint": "no_validation",
        "callbacks": [list, tuple, None],
        "random_state": ["random_state"],
        "device": "no_validation",  # asked_device checks it
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    # These say how far a fit goes and which size is used. They do not change what it finds.
    _limits_of_fit = ("max_atoms", "n_iter_no_change", "cv", "scoring", "tune")

    def __init__(
        self,
        max_atoms: int = 20,
        *,
        pool: Any = "columns",
        loss: Any = "margin",
        rule: Any = "gradient",
        penalty: Any = "l2",
        alpha: float | str = "auto",
        beta: float = 20.0,
        scale: str | None = "max",
        fit_intercept: bool = True,
        refine: bool = False,
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
        tol: float = 1e-5,
        checkpoint: Any = None,
        callbacks: Any = None,
        random_state: Any = None,
        device: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.max_atoms = max_atoms
        self.pool = pool
        self.loss = loss
        self.rule = rule
        self.penalty = penalty
        self.alpha = alpha
        self.beta = beta
        self.scale = scale
        self.fit_intercept = fit_intercept
        self.refine = refine
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
    ) -> ShareBoostClassifier:
        """Fit the whole path.

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
            in it become numbers, for example days since the first date of the column, or hours.
            float32 stays float32.
        y : array-like of shape (n_rows,), Dask collection or str
            Class labels. At least two must differ. With Parquet files, this is the name of the
            column of labels.
        sample_weight : array-like of shape (n_rows,), default=None
            A row of weight 2 counts like the row twice. A row of weight 0 is left out. (Folds and
            held-out parts are drawn row by row, whatever the weights.) ``alpha="auto"`` takes the
            sum of the weights as the number of rows. With an ``alpha`` of your own, only the ratios
            of the weights count. So set ``alpha`` if your weights are not counts of rows, for
            example if they sum to 1.
        groups : array-like of shape (n_rows,), default=None
            Groups of rows, for a ``cv`` that keeps them together, such as
            `sklearn.model_selection.GroupKFold`. (The constructor's ``groups`` are groups of
            features.)

        Returns
        -------
        self
            The fitted estimator. After Ctrl-C it has the path learned so far.
        """
        return self._fit(X, y, sample_weight, groups)

    def _check_own(self) -> None:
        find_loss(self.loss)
        corrector, penalty = Newton(self.tol), find_penalty(self.penalty, 0.0, self.beta)
        check_penalty(corrector, penalty)
        if not isinstance(self.penalty, str) and self.alpha != "auto":
            raise ValueError(
                f"a penalty object has its own strength; leave alpha={self.alpha!r} out"
            )
        find_rule(self.rule, penalty, corrector)

    def _loss_of(self, total: float) -> Loss:
        self.loss_ = self.loss
        penalty = self.penalty
        self.alpha_ = self._strength(total) if isinstance(penalty, str) else float(penalty.alpha)
        return find_loss(self.loss)

    def _strength(self, total: float) -> float:
        """Return the strength of the penalty; ``total`` is the sum of the weights."""
        if not isinstance(self.alpha, str):
            return float(self.alpha)
        return min(max(FALLING / total / total, WEAKEST), STRONGEST)

    def _largest(self) -> tuple[int, int]:
        return self.max_atoms, self.max_atoms

    def _fingerprinted(self) -> dict[str, Any]:
        return {"alpha": self.alpha_, **mark_of_moves(self)}

    def _loop(self, rows: Rows, ready: Ready, terms: Terms) -> Loop:
        penalty = find_penalty(self.penalty, self.alpha_, self.beta)
        corrector, record = Newton(self.tol), Recorder(rows, terms.costs)
        model = CorrectAll(record, corrector, penalty, self.max_atoms, terms.include)
        stage = find_rule(self.rule, penalty, corrector), model, terms.admissible
        own = mover(self, ready)
        propose = ByRule(*stage) if own is None else ByRuleMoved(*stage, own)
        return Loop(propose, model, record, ready.held, self._hooks(ready))

    def _progress(self) -> AbstractContextManager[Shown]:
        def steps(state: State) -> int:
            return state.last.size + Refinement.of(state).swept

        return progress(self.verbose, self.max_atoms, self.refine, count=steps)

    def _finish(self, loop: Loop, state: State, shown: Shown) -> None:
        if loop.grow(state) and self.refine:
            from laconic.boost.refine import refine  # Numba loads with it

            refine(loop, state)

    def _entries(self, loop: Loop, state: State) -> list[PathEntry]:
        entries, refined = list(state.entries), Refinement.of(state).entries
        entries[: len(refined)] = refined
        return entries

    def _keep_own(self, loop: Loop, state: State, size: int) -> None:
        nothing = self.path_.sizes[-1] == 0 and self.max_atoms > 0
        if nothing and state.status.startswith("no admissible"):
            tight = tight_caps(loop.record.costs)
            why = tight or (
                "Exclude fewer columns. If all columns are constant, or tiny and not scaled, no "
                "atom can help."
            )
            warnings.warn(
                f"no atom helps, so the model only knows how common the classes are. {why}",
                stacklevel=stacklevel_of_user(),
            )

    # -- guarantees ----------------------------------------------------------------------------

    def excess_loss_bound(self, norm: float) -> float:
        """Return a bound on how much lower the training loss of any other weights can be.

        The bound holds for every weight matrix W* over the whole pool, sparse or dense, with
        ‖W*‖_{∞,1} ≤ ``norm``. The norm is in scaled units and includes the intercept. It is (from
        Lemma 3)

            L(W) − L(W*) ≤ ⟨∇L(W), W⟩ + norm · max_r ‖∇_r L(W)‖₁.
        """
        check_is_fitted(self, "predictor_")
        return self.path_[self.n_atoms_].excess_loss_bound(norm)

    @staticmethod
    def rounds_needed(norm: float, epsilon: float) -> int:
        """Return a number of rounds after which the loss is at most L(W*) + epsilon (Theorem 2).

        It holds for every W* with ‖W*‖_{∞,1} ≤ norm, for the l1 gradient rule, columns in [-1, 1]
        and no penalty.
        """
        return rounds_needed(norm, epsilon)
