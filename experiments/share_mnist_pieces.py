"""Compare balls with a linear function inside with a Gaussian SVM on MNIST (figure 4 of the paper).

PCA reduces the images to 50 dimensions. With 1,500 candidate centres from clustering and 35 radii,
there are 52,500 balls to choose from, and 230 are taken. The error on the training and test rows is
measured against the number of balls. It is compared with the error of a support vector machine with
Gaussian kernel on the same 50 dimensions. The number of support vectors is reported too, and for
both methods the time to predict one row and a batch of 10,000.

Settings are chosen by `--tune`: 50 balls are fitted on 10,000 training rows, and compared on the
last 10,000 training rows. C and gamma of the SVM are chosen on the same rows in every run. The test
rows are used once, by the models fitted to all training rows.

Run: python experiments/share_mnist_pieces.py [--tune] [--hard] [--checkpoint FILE] [--json FILE]
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from _common import (
    BLUE,
    GREEN,
    INK,
    ORANGE,
    arguments,
    error,
    figure,
    finish,
    frame,
    load,
    median_time,
    progress,
    save,
    table,
    timed,
    verdict,
)
from gaussian_svm import choose_svm

from laconic import ShareBoostClassifier
from laconic.pools import Pieces

DIMENSIONS = 50
BALLS = 230
POOL: dict[str, Any] = {"n_centres": 1500, "n_radii": 35, "slope": 20.0}
KINDS: dict[str, dict[str, Any]] = {
    "soft": {"soft": True, "max_share": 0.4},
    "hard": {"soft": False, "max_share": 0.25},
}
FIT: dict[str, Any] = {"alpha": 5e-4, "tol": 0.1}
# Changes of the settings above that --tune compares.
TRIED: list[dict[str, Any]] = [
    {},
    {"max_share": 0.6},
    {"max_share": 0.25},
    {"alpha": 1e-4},
    {"alpha": 1e-3},
    {"slope": 60.0},
    {"balance": 0.3},
    {"relative": True},
    {"soft": False, "max_share": 0.25},
    {"soft": False, "max_share": 0.5},
    {"soft": False, "max_share": 0.25, "relative": True},
]
TUNED_ON, TUNED_BALLS, TUNED_CENTRES = 10_000, 50, 500
HELD = 10_000
GRID = {"strengths": (2.0, 5.0, 10.0), "gammas": (0.03, 0.04, 0.05, 0.06)}
# The Gaussian SVM's error, read off figure 4. ShareBoost comes close to it at 230 balls.
PAPER = 0.014
SHOWN = (1, 2, 5, 10, *range(20, BALLS + 1, 10))


def main() -> None:
    """Tune the settings, or fit and compare."""
    parser = arguments(__doc__)
    parser.add_argument("--tune", action="store_true", help="compare settings without any test row")
    parser.add_argument("--hard", action="store_true", help="hard balls, as in the paper")
    parser.add_argument("--balls", type=int, default=BALLS)
    parser.add_argument(
        "--checkpoint", type=Path, help="file to save the fit to and resume it from"
    )
    args = parser.parse_args()
    data = load(args.data, "mnist")
    _, X, X_test = components(data["X_train"], data["X_test"])
    y, y_test = data["y_train"].astype(np.int64), data["y_test"].astype(np.int64)
    if args.tune:
        save(args.json, args, [], {"tried": tune(X, y, args.seed)})
        return
    results = {"pieces": pieces(X, y, X_test, y_test, args)}
    results["svm"] = support_vectors(X, y, X_test, y_test, args.seed)
    compare(results)
    save(args.json, args, [], results)
    finish(draw(results), args)


def components(train: np.ndarray, test: np.ndarray) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return a PCA of the training images, with pixels in [0, 1], and the components of both."""
    from sklearn.decomposition import PCA
    from threadpoolctl import threadpool_limits

    flat = [(images.reshape(len(images), -1) / np.float32(255)) for images in (train, test)]
    with threadpool_limits(1):  # a checkpoint needs the same rows to the last bit
        pca = PCA(DIMENSIONS, svd_solver="covariance_eigh").fit(flat[0])
        return pca, pca.transform(flat[0]), pca.transform(flat[1])


def parts(X: np.ndarray, y: np.ndarray, seed: int) -> tuple[np.ndarray, ...]:
    """Return rows to fit settings on and rows to compare them on, both from the training rows."""
    held = min(HELD, len(X) // 5)
    some = np.random.default_rng(seed).permutation(len(X) - held)[:TUNED_ON]
    return X[some], y[some], X[-held:], y[-held:]


def tune(X: np.ndarray, y: np.ndarray, seed: int) -> list[dict[str, Any]]:
    """Return the error of every setting on the held-out part of the training rows."""
    X_fit, y_fit, X_held, y_held = parts(X, y, seed)
    out = []
    for changed in TRIED:
        settings = {**POOL, **KINDS["soft"], **FIT, "n_centres": TUNED_CENTRES, **changed}
        fit = {name: settings.pop(name) for name in FIT}
        pool = Pieces(random_state=seed, **settings)
        seconds, model = timed(
            ShareBoostClassifier(TUNED_BALLS, pool=pool, **fit).fit, X_fit, y_fit
        )
        found = error(model.predict(X_held), y_held)
        out.append({"changed": changed, "error": found, "seconds": seconds})
        progress(f"{changed or 'as they are'}: {100 * found:.2f} %, {seconds:.0f} s")
    rows = [[str(o["changed"] or "as they are"), 100 * o["error"], o["seconds"]] for o in out]
    table(f"{TUNED_BALLS} balls on {TUNED_ON} rows", ["changed", "held-out %", "seconds"], rows)
    return out


def pieces(
    X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray, args: argparse.Namespace
) -> dict[str, Any]:
    """Fit all sizes, and measure errors and prediction times."""
    pool = Pieces(random_state=args.seed, **POOL, **KINDS["hard" if args.hard else "soft"])

    def told(state: Any) -> None:
        last = state.last
        if last.size % 10 == 0:
            progress(f"{last.size} balls, loss {last.loss:.4f}, {last.seconds:.0f} s")

    model = ShareBoostClassifier(
        args.balls, pool=pool, checkpoint=args.checkpoint, callbacks=[told], **FIT
    ).fit(X, y)
    sizes = sorted({s for s in SHOWN if s < model.n_atoms_} | {model.n_atoms_})
    train, test = [], []
    for size in sizes:
        predictor = model.at(size).predictor_
        train.append(error(predictor.predict(X), y))
        test.append(error(predictor.predict(X_test), y_test))
    predictor = model.predictor_
    return {
        "settings": {**POOL, **KINDS["hard" if args.hard else "soft"], **FIT},
        "balls": model.n_atoms_,
        "sizes": sizes,
        "train": train,
        "test": test,
        "loss": model.path_.losses[sizes],
        "share": predictor.map.share,
        "fit_seconds": float(model.path_.seconds[-1]),
        "cost": predictor.cost()._asdict(),
        **prediction_times(predictor.predict, X_test, 5),
    }


def support_vectors(
    X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray, seed: int
) -> dict[str, Any]:
    """Fit the Gaussian SVM, with settings chosen on the held-out part of the training rows."""
    from sklearn.svm import SVC

    _, chosen = choose_svm(*parts(X, y, seed), **GRID)
    C, gamma, wrong = (chosen[key] for key in ("C", "gamma", "validation error"))
    progress(f"SVM: C {C:g}, gamma {gamma:g}, held out {100 * wrong:.2f} %")
    seconds, model = timed(SVC(C=C, gamma=gamma, cache_size=500).fit, X, y)
    return {
        "tried": chosen["tried"],
        "C": C,
        "gamma": gamma,
        "test": error(model.predict(X_test), y_test),
        "support_vectors": int(model.n_support_.sum()),
        "fit_seconds": seconds,
        **prediction_times(model.predict, X_test, 1),
    }


def prediction_times(predict: Any, X: np.ndarray, repeats: int) -> dict[str, float]:
    """Return the seconds of a batch of all rows and of a single row."""
    rows = iter(np.resize(np.arange(len(X)), 220))
    for _ in range(20):
        predict(X[[next(rows)]])
    return {
        "batch_seconds": median_time(lambda: predict(X), repeats),
        "row_seconds": median_time(lambda: predict(X[[next(rows)]]), 200),
    }


def compare(results: dict[str, Any]) -> None:
    """Print errors and prediction times side by side."""
    ours = results["pieces"]
    columns = zip(ours["sizes"], ours["train"], ours["test"], strict=True)
    rows = [[size, 100 * train, 100 * test] for size, train, test in columns]
    table("Error against the number of balls", ["balls", "train %", "test %"], rows)
    show_prediction({**ours, "test": ours["test"][-1]}, results["svm"])
    results["verdict"] = verdict("test error, %", 100 * ours["test"][-1], 1.6, False)


def show_prediction(ours: dict[str, Any], svm: dict[str, Any]) -> None:
    """Print error, size and prediction times of a fit of balls and of the SVM."""
    sizes = {"pieces": (ours, ours["balls"]), "SVM": (svm, svm["support_vectors"])}
    table(
        "Prediction",
        ["", "test %", "balls or vectors", "all test rows, s", "one row, µs"],
        [
            [name, 100 * r["test"], size, r["batch_seconds"], 1e6 * r["row_seconds"]]
            for name, (r, size) in sizes.items()
        ],
    )


def draw(results: dict[str, Any]) -> Any:
    """Draw figure 4: error against the number of balls."""
    ours, svm = results["pieces"], results["svm"]
    sheet, (ax,) = figure(1, 5.6, 3.8)
    frame(ax, "MNIST, 50 principal components", "balls", "error (%)")
    for part, colour in (("test", ORANGE), ("train", BLUE)):
        errors = 100 * np.array(ours[part])
        ax.plot(ours["sizes"], errors, color=colour, label=f"pieces, {part}", linewidth=1.8)
    name = f"SVM, {svm['support_vectors']:,} support vectors"
    ax.axhline(100 * svm["test"], color=GREEN, linestyle="--", linewidth=1.2, label=name)
    ax.plot([BALLS], [100 * PAPER], marker="D", color=INK, linestyle="", label="paper, about")
    ax.set(ylim=(0, 8), xlim=(0, BALLS + 8))
    ax.legend(frameon=False, labelcolor=INK, fontsize="small")
    return sheet


if __name__ == "__main__":
    main()
