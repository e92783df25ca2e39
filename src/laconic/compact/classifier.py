"""`CompactClassifier`: the best classifier that fits a budget, as a scikit-learn estimator."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from contextlib import nullcontext
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from laconic.compact.averages import parts_of
from laconic.compact.checked import Checked, checked, compared_rows, encoded_rows, random_rows
from laconic.compact.frontier import best_of, pareto
from laconic.compact.plan import tried_sizes
from laconic.compact.record import SearchRecord
from laconic.compact.refit import FrontierModel, fit_frontier
from laconic.compact.search import Given, Outcome, Search, Task
from laconic.compact.settings import (
    ALPHAS,
    allow_missing,
    check_averages,
    check_pools,
    check_whole,
    find_settings,
)
from laconic.compact.tables import frontier_table, lines_of, trials_table, why_chosen
from laconic.compact.trials import COLUMNS, FLOAT, Form
from laconic.data.doubts import stacklevel_of_user
from laconic.data.fingerprint import fingerprint, settings_of
from laconic.data.frames import asked_categories, what_stumps_could_do
from laconic.data.labels import kept_rows
from laconic.estimators.base import LaconicClassifier
from laconic.estimators.budgets import in_order, resolve_target
from laconic.estimators.share import ShareBoostClassifier
from laconic.export.footprint import CHIP_NAMES, Target, find_target, footprint, measured_code
from laconic.look.bars import progress_bar, share_bar
from laconic.losses import find_loss
from laconic.model.atoms import ColumnsMap
from laconic.model.input_codes import GIVEN
from laconic.model.mean import mean_predictor
from laconic.model.predictor import Predictor
from laconic.notebook import MOST_ROWS, sentences
from laconic.tune import Tuning


class CompactClassifier(LaconicClassifier):
    """The best classifier that fits: say how much there is room for, and get the whole frontier.

    It tries pools of atoms, sizes, penalties and word lengths with ShareBoost. All models are
    compared by cross-validation in the form that ships: quantised, with the labels that the chip
    will give. The plan is successive halving: many settings are tried on few rows, and the best of
    them on more rows. Every trial fits one path, which has a model of every size.

    Parameters
    ----------
    max_bytes : int or None, default=4096
        Most bytes that the exported model may add to an empty program on ``chip``.
    chip : {"c99", "avr", "cortex-m0", "cortex-m4", "rv32"}, default="cortex-m0"
        The chip that bytes are counted for.
    max_operations : float, default=None
        Most operations for one row.
    max_features : int, default=None
        Most features that the model may read.
    costs : array-like, dict or "operations", default=None
        Price of reading each feature or sensor; see `laconic.ShareBoostClassifier`.
    max_cost : float, default=None
        Most that the features of the model may cost.
    inputs : {"auto", "float", "uint8", "int8", "int16"}, default="auto"
        What the device hands over. ``"auto"`` is the type of ``X`` if that is uint8, int8 or int16,
        and float otherwise.
    bits : tuple of {8, 16, 32}, default=(8, 16)
        Word lengths of the weights. 32 is a float model.
    pools : "auto" or list, default="auto"
        Pools of atoms: names, pool objects, or lists of them for atoms of several kinds in one
        model. ``"patches"`` are patches of images. ``"auto"`` tries columns, products, stumps,
        bumps, hinges of all inputs and of four, pieces, mixes of the first three, and patches if
        rows are images. For tables with missing values or categories, it tries stumps, and up to
        100 columns also rules, alone and together with stumps.
    alphas : list, default=("auto", 1e-3)
        Strengths of the penalty.
    averages : int or tuple of int, default=1
        How many paths are averaged. With 8, every model is the mean of 8 models, each fitted with
        random weights of the rows. Means take more bytes, and are often better. ``(1, 8)`` tries
        both. Only for columns, products, stumps and rules, and without ``costs``.
    image_shape : "auto", None or tuple of two int, default="auto"
        Height and width of the images in the rows. ``"auto"`` takes rows for square images if
        neighbouring pixels are alike. None means that rows are no images.
    max_atoms : int, default=100
        Most atoms of a model, or of each model that is averaged.
    loss : {"margin", "log"}, default="margin"
        The loss that is minimised; see `laconic.ShareBoostClassifier`.
    refine : bool, default=False
        Improve every path with swap moves, which takes longer.
    tune : bool or Tuning, default=True
        Also tune atoms: in the end, the two best pools that can be tuned are fitted again, and a
        few sizes of each are tuned; see `laconic.ShareBoostClassifier`. A `laconic.tune.Tuning`
        has settings of your own, such as other sizes. With fewer than 200 rows, nothing is tuned.
    cv : int or splitter, default=3
        Folds. A number means stratified folds of shuffled rows.
    scoring : str or callable, default=None
        The score by which models are compared: any scorer of scikit-learn. None is accuracy.
    one_standard_error : bool, default=False
        Choose the smallest model whose score is within one standard error of the best.
    time_limit : float, default=None
        Seconds after which no further trial starts. The first trial is always completed. The models
        of the frontier are then fitted as usual, which takes more time. The result is that of the
        first part of the same plan, and ``status_`` says so.
    class_weight : dict, "balanced" or None, default=None
        Multiplies the sample weights of each class.
    checkpoint : str or path-like, default=None
        File that keeps the outcome of every trial. If the file exists, the search resumes from it
        and ends with the identical model. Needs an integer ``random_state``.
    random_state : int, RandomState instance or None, default=None
        Draws the rows of the rungs and shuffles the folds. An integer makes a search repeatable.
    n_jobs : int, default=None
        Trials that run at the same time, through joblib. ``None`` means what
        ``joblib.parallel_config`` says, for example the workers of a Dask cluster. Outside of such
        a context, trials run one after the other on all cores. The result does not depend on it.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    checked_ : Checked
        Whether compiled code was compared with Python, and its measured size.
    classes_ : ndarray of shape (n_classes,)
    predictor_ : IntegerPredictor or Predictor
        The chosen model in the form that ships. ``predictor_.to_c()`` is its C code.
    pareto_ : data frame or list of dict
        The frontier: each model has a better score than every smaller one. ``at(bytes)`` returns
        the model that fits a smaller budget.
    trials_ : data frame or list of dict
        Everything that was tried, with scores in cross-validation. Both tables are lists of dicts
        if pandas is not installed.
    bytes_ : int
        Bytes that the model takes at most on the chip.
    n_atoms_ : int
    score_ : float
        Score of the model in cross-validation: accuracy, or that of ``scoring``. It is a little too
        high, because it is the best of many.
    why_ : str
        Why this model was chosen.
    status_ : str
        Why the search ended.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from laconic import CompactClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = CompactClassifier(900, pools=["columns", "stumps"], random_state=0).fit(X, y)
    >>> model.bytes_ <= 900, model.score(X, y) > 0.9
    (True, True)
    """

    _parameter_constraints: dict[str, Any] = {  # noqa: RUF012 (scikit-learn's convention)
        "max_bytes": [Interval(Integral, 1, None, closed="left"), None],
        "chip": [StrOptions(set(CHIP_NAMES))],
        "max_operations": [Interval(Real, 0, None, closed="neither"), None],
        "max_features": [Interval(Integral, 1, None, closed="left"), None],
        "costs": ["array-like", dict, StrOptions({"operations"}), None],
        "max_cost": [Interval(Real, 0, None, closed="neither"), None],
        "inputs": [StrOptions({"auto", *GIVEN})],
        "bits": "no_validation",  # _form checks it
        "pools": "no_validation",  # find_settings checks it
        "alphas": [list, tuple],
        "averages": "no_validation",  # check_averages checks it
        "image_shape": [StrOptions({"auto"}), tuple, list, None],
        "max_atoms": [Interval(Integral, 1, None, closed="left")],
        "loss": "no_validation",  # find_loss checks it
        "refine": ["boolean"],
        "tune": ["boolean", Tuning],
        "cv": ["cv_object"],
        "scoring": [str, callable, None],
        "one_standard_error": ["boolean"],
        "time_limit": [Interval(Real, 0, None, closed="neither"), None],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "checkpoint": "no_validation",
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        max_bytes: int | None = 4096,
        *,
        chip: str = "cortex-m0",
        max_operations: float | None = None,
        max_features: int | None = None,
        costs: Any = None,
        max_cost: float | None = None,
        inputs: str = "auto",
        bits: Any = (8, 16),
        pools: Any = "auto",
        alphas: Any = ALPHAS,
        averages: Any = 1,
        image_shape: Any = "auto",
        max_atoms: int = 100,
        loss: Any = "margin",
        refine: bool = False,
        tune: bool | Tuning = True,
        cv: Any = 3,
        scoring: Any = None,
        one_standard_error: bool = False,
        time_limit: float | None = None,
        class_weight: Any = None,
        checkpoint: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.max_bytes = max_bytes
        self.chip = chip
        self.max_operations = max_operations
        self.max_features = max_features
        self.costs = costs
        self.max_cost = max_cost
        self.inputs = inputs
        self.bits = bits
        self.pools = pools
        self.alphas = alphas
        self.averages = averages
        self.image_shape = image_shape
        self.max_atoms = max_atoms
        self.loss = loss
        self.refine = refine
        self.tune = tune
        self.cv = cv
        self.scoring = scoring
        self.one_standard_error = one_standard_error
        self.time_limit = time_limit
        self.class_weight = class_weight
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    # -- fitting -------------------------------------------------------------------------------

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None
    ) -> CompactClassifier:
        """Search for the best classifier that fits.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_features)
            Text in a data frame is taken as categories. Values may be missing.
        y : array-like of shape (n_rows,)
            Class labels. At least two must differ.
        sample_weight : array-like of shape (n_rows,), default=None
            A row of weight 0 is left out.
        groups : array-like of shape (n_rows,), default=None
            Groups of rows, for a ``cv`` that keeps them together.

        Returns
        -------
        self
        """
        self._check_settings()
        find_loss(self.loss)
        form = self._form(X)
        X, y = self._validated(X, y, reset=True, weight=sample_weight)
        search = self._search(self._rows(X, y, sample_weight, groups), form)
        check_whole(search.rows.X, form.inputs, list(self._categories), self)
        with self._record(search) as record:
            search.known = [] if record is None else record.known
            self._run(search, record)
        self._keep(search)
        return self

    def _rows(self, X: Any, y: np.ndarray, sample_weight: Any, groups: Any) -> Given:
        """Return the rows to learn from, and set ``classes_``.

        Rows of weight 0 are dropped, unless ``cv`` may know rows by their numbers.
        """
        if groups is not None and len(groups) != len(y):
            raise ValueError(f"groups has {len(groups)} entries, but X has {len(y)} rows")
        keep, _, weight = kept_rows(self, X, y, sample_weight)
        if keep is None:
            return Given(X, y, weight, groups)
        if not isinstance(self.cv, Integral):
            whole = np.zeros(len(y))
            whole[keep] = weight
            return Given(X, y, whole, groups)
        return Given(X[keep], y[keep], weight, None if groups is None else np.asarray(groups)[keep])

    def _draws(self) -> tuple[str, str] | None:
        return "of a search", "draws the same rows"

    def _form(self, X: Any) -> Form:
        """Return how models ship."""
        single = isinstance(self.bits, Integral)
        bits = (self.bits,) if single else tuple(self.bits if np.iterable(self.bits) else ())
        known = all(isinstance(word, Integral) and word in (8, 16, FLOAT) for word in bits)
        if not bits or not known:
            raise ValueError(f"bits must be 8, 16 or 32, or a tuple of them, not {self.bits!r}")
        target = resolve_target(find_target(Target(self.chip, 8, self.inputs)), X)
        if target.inputs != "float":
            bits = tuple(word for word in bits if word != FLOAT)
        if not bits:
            raise ValueError(f"bits=32 computes with floats, but inputs are {target.inputs}")
        return Form(self.chip, target.inputs, tuple(sorted(set(bits))))

    def _check_budget(self, form: Form) -> None:
        """Refuse a budget that not even a model without atoms fits."""
        if self.max_bytes is None:
            return
        n_classes = len(self.classes_)
        scores = 1 if n_classes == 2 else n_classes
        given = form.target(form.bits[0]), self.n_features_in_, n_classes
        least = footprint(ColumnsMap(np.empty(0, dtype=np.int64)), scores, *given)
        if least > self.max_bytes:
            raise ValueError(
                f"a model without any atom would take {least} bytes, more than "
                f"max_bytes={self.max_bytes}"
            )

    def _search(self, rows: Given, form: Form) -> Search:
        self._check_budget(form)
        names = getattr(self, "feature_names_in_", None)
        settings = find_settings(
            self.pools, self.alphas, rows.X, list(self._categories), self.image_shape,
            check_averages(self.averages, self.costs),
        )  # fmt: skip
        path = ShareBoostClassifier(
            self.max_atoms,
            loss=self.loss,
            refine=self.refine,
            costs=in_order(self.costs, names, self.n_features_in_),
            max_cost=self.max_cost,
            max_features=self.max_features,
            max_operations=self.max_operations,
            max_bytes=self.max_bytes,
            chip=form.target(form.bits[0]),
            class_weight=self.class_weight,
        )
        return Search(
            path, settings, rows, tried_sizes(self.max_atoms), form, self.cv, self.scoring,
            check_random_state(self.random_state), self.n_jobs, self.time_limit,
            may_fail=isinstance(self.pools, str), tune=self.tune,
        )  # fmt: skip

    def _record(self, search: Search) -> Any:
        if self.checkpoint is None:
            return nullcontext()
        rows, form = search.rows, search.form
        settings = settings_of(self, "time_limit", "one_standard_error", "tune")
        settings |= {"form": form, "costs": search.model.costs, "units": self._units}
        settings |= {"categorical": [*self._categories], "groups": rows.groups}
        mark = fingerprint(rows.X, np.searchsorted(self.classes_, rows.y), rows.weight, settings)
        shape = len(form.bits), len(search.sizes), len(COLUMNS)
        return SearchRecord(self.checkpoint, mark, shape)

    def _run(self, search: Search, record: SearchRecord | None) -> None:
        """Run the search. After Ctrl-C, keep what was found."""
        n_known = len(search.known)

        def kept() -> str | None:
            n = len(search.found.models)
            return f"the best of {n:,} models" if n else None

        with progress_bar("fits  {task.fields[says]}") if self.verbose else nullcontext() as bar:
            shown = None if bar is None else bar.add_task("searching", total=None, says="")

            def done(task: Task, outcome: Outcome, total: int) -> None:
                if record is not None and search.found.n_fits > n_known:
                    record.add(outcome)
                if bar is not None and shown is not None:
                    says = f"rung {task.rung + 1}  {search.settings[task.setting].title}"
                    bar.update(shown, completed=search.found.n_fits, total=total, says=says)

            self._until_interrupted(lambda: search.run(done), search.found, kept)

    # -- what is kept --------------------------------------------------------------------------

    def _keep(self, search: Search) -> None:
        """Fit the models of the frontier to all rows, and use the best."""
        found = search.found
        self.status_ = found.status
        if found.status.startswith("the time limit"):
            warnings.warn(
                f"{found.status}; the model is the best of what was tried until then",
                stacklevel=stacklevel_of_user(),
            )
        best = best_of(found.last, search.most, self.one_standard_error)
        wanted = list(dict.fromkeys([best, *pareto(found.last)]))
        with share_bar(self.verbose, "fitting the frontier to all rows") as shown:
            n_fitted = iter(range(1, len(wanted) + 1))

            def done(title: str) -> None:
                if shown is not None:
                    shown(next(n_fitted) / len({tried.setting for tried in wanted}))

            models = fit_frontier(search, wanted, self._named, self.n_jobs, done)
        self.status_ = found.status
        if best not in models:  # with all rows, its numbers do not fit the integers
            if not models:
                raise ValueError("no model of the frontier fits the integers; use bits=16 or 32")
            best = best_of(models, search.most, self.one_standard_error)
        titles = [setting.title for setting in search.settings]
        alphas = [setting.alpha for setting in search.settings]
        self._models = pareto(models.values())
        self._keep_asked([model.predictor for model in models.values()])
        priced = self.costs is not None or self.max_cost is not None
        self.trials_ = trials_table(found.models, titles, alphas, priced)
        self.pareto_ = frontier_table(self._models, titles, alphas, self.scoring is None, priced)
        name = "accuracy" if self.scoring is None else str(self.scoring)
        budget = "" if self.max_bytes is None else f" {self.max_bytes:,} bytes on {self.chip}"
        self.why_ = why_chosen(
            models[best], titles[best.setting], found, name, self.one_standard_error, budget
        )
        self._use(models[best])
        sample = search.rows.X[compared_rows(search.rows.weight)]
        self.checked_ = checked(self.predictor_, self.chip, encoded_rows(self.predictor_, sample))
        if self.checked_.flash is not None and self.checked_.flash > self.bytes_:
            same = measured_code()[self.chip]["compiler"] == self.checked_.compiler
            why = "; please report this fault" if same else " for another compiler"
            warnings.warn(
                f"the model takes {self.checked_.flash} bytes with {self.checked_.compiler}, more "
                f"than the {self.bytes_} that were promised{why}",
                stacklevel=stacklevel_of_user(),
            )
        if self.n_atoms_ == 0:
            warnings.warn(
                "the chosen model has no atom, so it predicts the same for every row; raise the "
                "budget, or give more rows",
                stacklevel=stacklevel_of_user(),
            )

    def _keep_asked(self, predictors: list[Any]) -> None:
        """Forget the categories that no model asks about, so that others do not learn of them."""
        asked: dict[int, set[int]] = {}
        for predictor in predictors:
            for feature, words in predictor.categories.items():
                asked.setdefault(feature, set()).update(words)
        self._categories = asked_categories(self._categories, asked)

    def _named(self, model: ShareBoostClassifier) -> Predictor:
        """Return the predictor of a model, with the names, categories and units of the rows."""
        if parts := parts_of(model):
            return mean_predictor([self._named(part) for part in parts])
        named = copy.copy(model)
        named._categories, named._units = self._categories, self._units
        if hasattr(self, "feature_names_in_"):
            named.feature_names_in_ = self.feature_names_in_
        entry = model.path_[model.n_atoms_]
        named._keep_asked([entry])
        return named._predictor_of(entry)

    def _use(self, model: FrontierModel) -> None:
        """Use a model of the frontier."""
        self.predictor_, self.bytes_ = model.predictor, model.bytes
        self.score_, self.n_atoms_ = model.score, model.costs.atoms

    def frontier(self) -> Iterator[CompactClassifier]:
        """Yield a fitted classifier for every model of the frontier, smallest first."""
        check_is_fitted(self, "predictor_")
        for model in self._models:
            other = copy.copy(self)
            other._use(model)
            other.why_ = f"It is the best model of the frontier within {model.bytes:,} bytes."
            other.checked_ = Checked(None, None, None, "frontier() compiles nothing, at() does")
            yield other

    def at(self, max_bytes: float) -> CompactClassifier:
        """Return the best classifier of the frontier that takes at most ``max_bytes``.

        If a compiler is here, its code was compiled and compared with Python on random rows.
        """
        fitting = [model for model in self.frontier() if model.bytes_ <= max_bytes]
        if not fitting:
            least = self._models[0].bytes
            raise ValueError(f"no model takes {max_bytes:g} bytes; the smallest takes {least}")
        found = fitting[-1]
        found.why_ = (
            f"It is the best model of the frontier within {max_bytes:g} bytes, and takes at most "
            f"{found.bytes_:,}."
        )
        found.checked_ = checked(found.predictor_, self.chip, random_rows(found.predictor_))
        return found

    # -- explaining ----------------------------------------------------------------------------

    def _card(self) -> str:
        """Return the card of the model, why it was chosen, and what compilers said about it."""
        return f"{self.predictor_._card()}\n\n{self.why_}\n{self.checked_}"

    def _html(self, most: int = MOST_ROWS) -> list[str]:
        return [*self.predictor_._html(most), sentences(f"{self.why_} {self.checked_}")]

    def plot_pareto(self, ax: Any = None) -> Any:
        """Draw the frontier: error or score against bytes. Needs the ``plot`` extra."""
        from laconic.look.pareto import plot_pareto

        check_is_fitted(self, "predictor_")
        what = None if self.scoring is None else str(self.scoring)
        return plot_pareto(lines_of(self.pareto_), self.bytes_, self.max_bytes, self.chip, what, ax)

    # -- the scikit-learn edge -----------------------------------------------------------------

    def _has_probabilities(self) -> bool:
        return True

    def _validated(self, X: Any, y: Any = None, reset: bool = False, weight: Any = None) -> Any:
        try:
            return super()._validated(X, y, reset, weight)
        except ValueError as error:
            said = what_stumps_could_do(error)
            if said is None or allow_missing(self.pools):
                raise
            check_pools(self.pools)
            raise ValueError(
                "X holds text or missing values (NaN), which only stumps and rules take; give "
                'pools="auto" or pools=["stumps", "rules"]'
            ) from error

    def _input(self) -> dict[str, Any]:
        sparse = ["csr", "csc"]
        missing = allow_missing(self.pools)
        finite = "allow-nan" if missing else True
        return {"accept_sparse": sparse, "categories": missing, "ensure_all_finite": finite}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = allow_missing(self.pools)
        return tags
