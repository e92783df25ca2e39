"""How does the number of features needed grow with the number of classes? (Figure 2.)

The data are characters with 2 to 36 classes (digits and capitals). The features are those of
appendix A.1: the largest response of a 7 x 7 template near one of 16 places. Templates come from
k-means of the training images. There are 100 templates and 1,600 features here (the paper has 1,000
and 16,000). ShareBoost is compared with one-vs-rest selection by the same mechanism. A method needs
n features for a target error if n is the smallest number at which its test error is at or below the
target. For one-vs-rest, n is the number of *different* features of all its classes together. Their
sum over the classes is in the results too.

* Fonts: fonts36, with targets of 20 % and 8 % as in the paper. Families of fonts are split, 60 %
  for training, 15 % for validation, 25 % for the test. Of these at most 150, 60 and 120 images per
  class are drawn.
* Natural images: chars74k_img, with every image at zero mean and unit variance, split into 50, 15
  and 35 %, with targets of 40 % and 25 %. The error of a Gaussian SVM on the pixels is also
  reported.

Each of three repeats draws a new split, learns new templates, and draws new classes for every
number below 36. The Frobenius penalty of each method is chosen among `ALPHAS` on the validation
part of the first repeat with all 36 classes: the one with the fewest features at the lower target.
It is then used for everything. The test part decides nothing. It only gives the figure.

Run: python experiments/share_chars74k.py [--sets fonts natural] [--repeats 3] [--json FILE]
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from _common import (
    BLUE,
    GREEN,
    INK,
    arguments,
    error,
    figure,
    finish,
    frame,
    load,
    logarithmic,
    progress,
    save,
    table,
    verdict,
)
from gaussian_svm import choose_svm
from one_vs_rest import OneVsRest

from laconic import ShareBoostClassifier
from laconic.pools import Patches

CLASSES = (2, 4, 8, 12, 18, 26, 36)
TARGETS = {"fonts": (0.20, 0.08), "natural": (0.40, 0.25)}
DRAWN = (150, 60, 120)
ALPHAS = (1e-6, 1e-5, 1e-4)
ATOMS = 60
"""Largest number of atoms of ShareBoost."""
ATOMS_EACH = 16
"""Largest number of atoms of every class of one-vs-rest."""


class Part(NamedTuple):
    """Features and classes of some rows."""

    F: np.ndarray
    y: np.ndarray

    def only(self, classes: np.ndarray) -> Part:
        """Return the rows of some classes, with the classes numbered from 0 again."""
        rows = np.isin(self.y, classes)
        return Part(self.F[rows], np.searchsorted(classes, self.y[rows]))


class Curve(NamedTuple):
    """Errors of growing models, and their numbers of features: different ones, and the sum."""

    errors: np.ndarray
    features: np.ndarray
    in_sum: np.ndarray

    def needed(self, target: float) -> tuple[int, int] | None:
        """Return the features, different and in sum, at which the target is first reached."""
        there = np.flatnonzero(self.errors <= target)
        return (int(self.features[there[0]]), int(self.in_sum[there[0]])) if len(there) else None


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--sets", nargs="+", default=list(TARGETS), choices=list(TARGETS))
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    results = {name: experiment(name, args) for name in args.sets}
    for name, found in results.items():
        found["verdicts"] = judge(name, found)
    save(args.json, args, [], results)
    finish(draw(results), args)


# -- data ------------------------------------------------------------------------------------------


def images(name: str, args: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return pixels, classes and families, if any. No family may be in two parts."""
    data = load(args.data, "fonts36" if name == "fonts" else "chars74k_img")
    X = data["X"].reshape(len(data["X"]), -1).astype(np.float32) / 255.0
    if name == "natural":
        X -= X.mean(axis=1, keepdims=True)
        X /= X.std(axis=1, keepdims=True) + 1e-3
    return X, data["y"].astype(np.int64), data.get("family_id")


def parts(y: np.ndarray, family: np.ndarray | None, rng: np.random.Generator) -> list[np.ndarray]:
    """Return the rows for training, for choosing settings, and for the test."""
    if family is None:
        order = rng.permutation(len(y))
        return [np.sort(p) for p in np.split(order, [len(y) // 2, int(0.65 * len(y))])]
    known = rng.permutation(np.unique(family))
    groups = np.split(known, [int(0.6 * len(known)), int(0.75 * len(known))])
    out = []
    for group, most in zip(groups, DRAWN, strict=True):
        rows = rng.permutation(np.flatnonzero(np.isin(family, group)))
        out.append(np.sort(np.concatenate([rows[y[rows] == c][:most] for c in range(36)])))
    return out


# -- one set ---------------------------------------------------------------------------------------


def experiment(name: str, args: Any) -> dict[str, Any]:
    """Find the features that both methods need at every number of classes, target and repeat."""
    X, y, family = images(name, args)
    found: dict[str, Any] = {"needed": [], "alpha": {}, "errors at 36": {}}
    for repeat in range(args.repeats):
        rng = np.random.default_rng([args.seed, repeat])
        rows = parts(y, family, rng)
        patches = Patches(n_templates=100, mask_sigma=3.0, random_state=args.seed + repeat)
        patches.fit(X[rows[0]])
        train, held, test = (Part(patches.transform(X[r]), y[r]) for r in rows)
        if repeat == 0:
            found["rows"] = [len(r) for r in rows]
            for method in METHODS:
                found["alpha"][method] = choose_alpha(method, train, held, TARGETS[name])
            progress(f"{name}: alpha by validation: {found['alpha']}")
            if name == "natural":
                pixels = [X[r] for r in rows]
                svm, said = choose_svm(pixels[0], y[rows[0]], pixels[1], y[rows[1]])
                wrong = error(svm.predict(pixels[2]), y[rows[2]])
                found["gaussian svm"] = {**said, "test error": wrong}
                progress(f"natural: Gaussian SVM on pixels {wrong:.3f}")
        for k in CLASSES:
            classes = np.sort(rng.choice(36, k, replace=False))
            for method, alpha in found["alpha"].items():
                seen = METHODS[method](train.only(classes), test.only(classes), alpha)
                for target in TARGETS[name]:
                    n = seen.needed(target)
                    found["needed"].append((method, k, target, repeat, *(n or (None, None))))
                if k == 36 and repeat == 0:
                    found["errors at 36"][method] = (seen.features, seen.errors)
            progress(f"{name}, repeat {repeat}, {k} classes: done")
    found["summary"] = summarise(found["needed"], TARGETS[name])
    table(
        f"{name}: features needed (standard error), {args.repeats} repeats",
        ["method, target", *map(str, CLASSES)],
        [
            [label, *(f"{m:.1f} ({s:.1f})" if m is not None else "-" for m, s, _ in line)]
            for label, line in found["summary"].items()
        ],
    )
    return found


def shareboost(train: Part, new: Part, alpha: float) -> Curve:
    """Fit one path for all classes together."""
    model = ShareBoostClassifier(ATOMS, alpha=alpha, tol=1e-3).fit(train.F, train.y)
    errors = np.array([error(p, new.y) for p in model.staged_predict(new.F)])[1:]
    sizes = model.path_.sizes[1:]
    return Curve(errors, sizes, sizes)


def one_vs_rest(train: Part, new: Part, alpha: float) -> Curve:
    """Fit a path for every class."""
    model = OneVsRest(ATOMS_EACH, alpha=alpha, tol=1e-3).fit(train.F, train.y)
    errors = np.array([error(s.argmax(axis=1), new.y) for s in model.staged_scores(new.F)])
    return Curve(errors, *model.sizes())


METHODS = {"ShareBoost": shareboost, "one-vs-rest": one_vs_rest}


def choose_alpha(method: str, train: Part, held: Part, targets: tuple[float, float]) -> float:
    """Return the penalty with the fewest features for the lower target, on the validation part."""

    def need(alpha: float) -> tuple[float, float]:
        seen = METHODS[method](train, held, alpha)
        n = seen.needed(targets[1])
        return (n[0] if n else np.inf), float(seen.errors[-1])

    return min(ALPHAS, key=need)


def summarise(
    needed: list[tuple[Any, ...]], targets: tuple[float, float]
) -> dict[str, list[tuple[float | None, float, float | None]]]:
    """Return mean, standard error and mean sum over the repeats, for every number of classes.

    If a repeat did not reach the target, there is no value.
    """
    out: dict[str, list[tuple[float | None, float, float | None]]] = {}
    for method in METHODS:
        for target in targets:
            line = out.setdefault(f"{method}, {100 * target:g} %", [])
            for k in CLASSES:
                rows = [n for n in needed if n[:3] == (method, k, target)]
                if any(n[4] is None for n in rows):
                    line.append((None, 0.0, None))
                    continue
                counts = np.array([n[4] for n in rows])
                spread = counts.std(ddof=1) / np.sqrt(len(counts)) if len(counts) > 1 else 0.0
                line.append((counts.mean(), float(spread), np.mean([n[5] for n in rows])))
    return out


def judge(name: str, found: dict[str, Any]) -> list[dict[str, Any]]:
    """Compare the features at 36 classes: ours divided by those of one-vs-rest."""
    print()
    verdicts = []
    for target in TARGETS[name]:
        ours, theirs = (
            found["summary"][f"{method}, {100 * target:g} %"][-1][0] for method in METHODS
        )
        if ours is not None and theirs is not None:
            label = f"{name}, {100 * target:g} %: our features / one-vs-rest's at 36 classes"
            verdicts.append(verdict(label, ours / theirs, 0.2, False))
    return verdicts


def draw(results: dict[str, Any]) -> Any:
    """Draw the features needed against the number of classes, as in the paper's figure."""
    sheet, axes = figure(len(results), 4.6, 3.6)
    titles = {"fonts": "Fonts", "natural": "Natural images"}
    for ax, (name, found) in zip(axes, results.items(), strict=True):
        frame(ax, titles[name], "classes", "features needed")
        for target, colour in zip(TARGETS[name], (BLUE, GREEN), strict=True):
            for method, style in (("one-vs-rest", "o-"), ("ShareBoost", "s--")):
                label = f"{method}, {100 * target:g} %"
                line = found["summary"][label]
                mean = [np.nan if m is None else m for m, _, _ in line]
                ax.errorbar(
                    CLASSES, mean, [s for _, s, _ in line], fmt=style, color=colour, label=label,
                    markersize=4, capsize=2, linewidth=1.5,
                )  # fmt: skip
        ax.set_xticks(CLASSES)
        ax.set_yscale("log")
        logarithmic(ax.yaxis)
        ax.legend(frameon=False, labelcolor=INK, fontsize="small", loc="upper left", ncols=2)
        ax.set_ylim(0.8, ax.get_ylim()[1] * 4)
    return sheet


if __name__ == "__main__":
    main()
