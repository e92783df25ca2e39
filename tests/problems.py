"""Small problems and naive implementations that several tests share."""

import numpy as np
import pandas as pd
import pytest

from laconic.clumping.margins import Margins
from laconic.clumping.neighbours import radius_graph
from laconic.clumping.problem import ClumpingProblem
from laconic.clumping.theta import Theta
from laconic.losses import LOSSES
from laconic.numeric.threads import Threads
from laconic.pools import Columns
from laconic.rows.rows import rows_in_memory


def random_problem(seed=0, m=120, d=6, k=3, noise=1.0, dtype=np.float64):
    """Draw overlapping classes, so that the unpenalised optimum is finite."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (m, d)).astype(dtype)
    W = 2 * rng.standard_normal((d, k))
    y = np.argmax(X @ W + noise * rng.gumbel(size=(m, k)), axis=1)
    y[:k] = np.arange(k)
    return X, y


def of_every_kind(m=150, seed=0):
    """Draw classes of a column, a product, a step and a ball, so that no pool is enough."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (m, 4))
    scores = np.stack([2 * X[:, 0], 5 * X[:, 1] * X[:, 2], 2.0 * (X[:, 3] > 0.3)], axis=1)
    scores[:, 2] += 2 * (np.hypot(X[:, 0], X[:, 1]) < 0.5)
    return X, np.argmax(scores + 0.3 * rng.gumbel(size=scores.shape), axis=1)


def blobs(m=400, classes=2, seed=0, flipped=0.0):
    """Draw blobs in the plane that no linear classifier separates, with some labels flipped."""
    rng = np.random.default_rng(seed)
    middles = rng.uniform(-6, 6, (5 * classes, 2))
    blob = rng.integers(len(middles), size=m)
    X = middles[blob] + 0.6 * rng.standard_normal((m, 2))
    y = blob % classes
    return X, np.where(rng.random(m) < flipped, (y + 1) % classes, y)


def seeds(few, all_of_them):
    """Return the seeds of a test. `make test` takes the first few, and `make test-long` all."""
    more = range(few, all_of_them)
    return [*range(few), *(pytest.param(seed, marks=pytest.mark.long) for seed in more)]


def saving_always(model):
    """Return the model, changed so that its fit writes every round to its checkpoint."""
    model._save_every = 0.0
    return model


def make_rows(X, y, loss="margin", weight=None, scale=None, intercept=True, groups=None, n_jobs=1,
              limits=None):  # fmt: skip
    """Return `Rows` over the columns of X, with none chosen yet."""
    weight = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=float)
    weight = weight / weight.sum()
    threads = Threads(n_jobs)
    pool = Columns(scale, groups).bind(X, weight, threads)
    k = int(y.max()) + 1
    return rows_in_memory([pool], LOSSES[loss](), y, weight, k, threads, intercept, limits)


def naive_objective(X, y, W, margin, penalty, weight=None, intercept=True, centred=True):
    """Compute Φ(W) from its definition. The first row of W is the intercept, if there is one.

    With an intercept, rows keep their columns centred.
    """
    weight = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=float)
    if intercept and centred:
        X = X - np.average(X, axis=0, weights=weight)
    B = np.column_stack([np.ones(len(y)), X]) if intercept else X
    F = B @ W
    shift = margin * (np.arange(F.shape[1]) != y[:, None])
    losses = np.log(np.exp(shift + F - F[np.arange(len(y)), y][:, None]).sum(axis=1))
    return weight @ losses / weight.sum() + penalty.value(W[int(intercept) :])


def clumping_problem(
    m=60, d=4, discount=0.5, normalize="degree", alpha=1e-2, seed=0, weight=None,
    dtype=np.float64, intercept=True, radius=1.2,
):  # fmt: skip
    """Draw noisy labels, with many errors near and far from each other."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d)).astype(dtype)
    y = np.where(X @ rng.standard_normal(d) + rng.standard_normal(m) > 0.3, 1, -1)
    theta = Theta(radius_graph(X, radius), discount, normalize, weight)
    return ClumpingProblem(Margins(X, intercept, Threads(1)), y, theta, alpha)


def shop(m=1600, seed=0):
    """Draw a frame in which a linear model is wrong about old people who buy by phone."""
    rng = np.random.default_rng(seed)
    age, income = rng.uniform(18, 90, m), rng.lognormal(10, 0.4, m)
    way = rng.choice(["web", "shop", "phone"], m, p=[0.5, 0.3, 0.2])
    bought = (income > np.median(income)).astype(int)
    flipped = (age > 60) & (way == "phone")
    frame = pd.DataFrame({"age": age, "income": income, "way": way})
    return frame, np.where(flipped, 1 - bought, bought), flipped


class KnowsIncome:
    """A classifier of the people of `shop` that uses only incomes."""

    def __init__(self, frame):
        self.middle = frame.income.median()

    def predict(self, X):
        return (X["income"] > self.middle).astype(int).to_numpy()


def flipped(y, wrong):
    """Return predictions that are wrong in these rows."""
    return np.where(wrong, 1 - y, y)


EVIL = "</script><script>alert(1)</script>"


def hostile_rows(n=2000):
    """Draw rows with all kinds of columns, some with names of the report's own or hostile text.

    Return the frame, the labels, and predictions that are wrong in two pockets.
    """
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "row": rng.integers(0, 9, n),
            "wrong": rng.choice([EVIL, '=1+1,"x"', "Zoë ☃\n2", "-5", ""], n),
            "wait": pd.to_timedelta(rng.integers(1, 99, n), "h"),
            "when": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
            "x": rng.random(n),
            "secret": rng.choice(["s3cret-a", "s3cret-b"], n),
        }
    )
    frame.loc[rng.random(n) < 0.1, ["wrong", "x"]] = None
    y = rng.choice(["no", "yes"], n)
    odd = (frame.x > 0.6).to_numpy() & (frame.wrong == EVIL).to_numpy()
    odd |= (frame.wait > pd.Timedelta("70h")).to_numpy() & (frame.row < 3).to_numpy()
    wrong = rng.random(n) < np.where(odd, 0.8, 0.03)
    return frame, y, np.where(wrong, np.where(y == "yes", "no", "yes"), y)
