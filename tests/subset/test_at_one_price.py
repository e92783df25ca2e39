"""Local search from where one stands, at one price."""

import numpy as np
import pytest
from subset_problems import LOSS, brute_force, every_value, few_groups, make

from laconic import TotalQBoostClassifier
from laconic.subset import Fit
from laconic.subset.at_one_price import descend
from laconic.subset.price import Price
from laconic.subset.problem import SubsetProblem


@pytest.mark.parametrize("loss", LOSS)
@pytest.mark.parametrize("price", [3e-4, 3e-3, 2e-2])
def test_never_worse_than_its_start_nor_better_than_brute_force(loss, price):
    for seed in range(4):
        problem = make(seed, loss, n_columns=8)
        best = brute_force(problem, price)
        for start in ((), (0, 3), tuple(range(8))):
            fit = problem.fit(start)
            found = descend(problem, Price(price, 8), fit)
            objective = found.value + price * len(found.support)
            assert objective <= fit.value + price * len(start) + 1e-12
            assert objective >= best - 1e-10


def test_hit_rate_is_high():
    hits = [
        np.isclose(
            (fit := descend(p, Price(3e-3, 9), p.fit(()))).value + 3e-3 * len(fit.support),
            brute_force(p, 3e-3),
            rtol=1e-6,
        )
        for p in map(make, range(20))
    ]
    print(f"descent from nothing finds the best support in {np.mean(hits):.0%} of 20 problems")
    assert np.mean(hits) >= 0.7


def test_a_cap_is_met_by_dropping():
    problem = make(0)
    fit = descend(problem, Price(0.0, 3), problem.fit(tuple(range(9))))
    assert len(fit.support) <= 3
    assert fit.value >= brute_force(problem, 0.0, 3) - 1e-10


def test_only_fresh_columns_are_tried_while_nothing_moves():
    problem = make(1)
    still = descend(problem, Price(3e-3, 9), problem.fit(()))
    assert descend(problem, Price(3e-3, 9), still, fresh=[]).support == still.support
    assert descend(problem, Price(3e-3, 9), problem.fit(()), fresh=[]).support == ()


class Misjudged:
    """Columns whose loss adds up, and a quadratic model that takes the dear ones for cheap."""

    n_columns = 6
    worth = np.array([50.0, 40.0, 30.0, 0.4, 0.5, 20.0])
    expected = np.array([0.1, 0.2, 0.3, 0.6, 0.7, 20.0])

    def fit(self, support, start=None):
        return Fit(tuple(support), np.empty(0), 200.0 - self.worth[list(support)].sum())

    def with_column(self, fit, column, target=np.inf):
        return self.fit(sorted((*fit.support, column)))

    def without(self, fit, column, target=np.inf):
        return self.fit([c for c in fit.support if c != column])

    def gains(self, fit):
        return np.where(np.isin(np.arange(6), fit.support), -np.inf, self.worth)

    def losses_of_dropping(self, fit):
        return self.expected[list(fit.support)]


def test_a_column_that_the_model_misjudges_does_not_hide_the_others():
    problem = Misjudged()
    found = descend(problem, Price(1.0, 6), problem.fit(range(6)))
    assert found.support == (0, 1, 2, 5)


def test_no_atom_of_a_boosted_model_costs_more_than_it_saves():
    rng = np.random.default_rng(173)
    X = rng.integers(0, 4, size=(40, 3)).astype(float)
    z = X[:, 0] + X[:, 1] * (X[:, 2] > 1) + rng.normal(size=40)
    y, price, l1 = z > np.quantile(z, 0.5), 0.02, 3e-3
    weight = rng.integers(1, 4, 40).astype(float)
    model = TotalQBoostClassifier(6, price=price, l1=l1, loss="exponential")
    model.fit(X, y, sample_weight=weight)
    made = model.generated_
    columns = np.stack([np.where(X[:, a.feature] <= a.value, 1, -1) for a in made], 1)
    labels = np.where(y, 1.0, -1.0)
    problem = SubsetProblem(
        columns.astype(np.int8), labels, weight / weight.sum(), "exponential", l1,
        nonnegative=False, intercept=True,
    )  # fmt: skip
    fit = problem.fit(tuple(sorted(made.index(atom) for atom in model.atoms_)))
    assert fit.value + price * model.n_atoms_ == pytest.approx(model.objective_, rel=1e-6)
    for column in fit.support:
        assert problem.without(fit, column).value - fit.value > price


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("start", [(), (0,), (3, 5)])
def test_a_dear_column_gives_way_to_a_cheap_one(seed, start):
    """Costs of 1 to 50: never better than brute force over priced supports, seldom worse."""
    problem = make(seed, n_columns=7)
    costs = np.random.default_rng(seed).choice([1.0, 2.0, 50.0], 7)
    price = Price(2e-3, 7, lambda support: float(costs[list(support)].sum()))
    values = every_value(problem)
    paid = [price.of(tuple(j for j in range(7) if s >> j & 1)) for s in range(len(values))]
    best = float((values + paid).min())
    found = descend(problem, price, problem.fit(start))
    objective = found.value + price.of(found.support)
    assert best - 1e-10 <= objective <= problem.fit(start).value + price.of(start) + 1e-12
    assert objective <= best * 1.05


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("most", [1, 2])
def test_limits_are_kept_from_any_start(seed, most):
    problem, limit = make(seed, nonnegative=False), few_groups(most, seed)
    for start in ((), tuple(range(9))):
        fit = descend(problem, Price(1e-3, 5, within=limit), problem.fit(start))
        assert limit(fit.support)
        assert len(fit.support) <= 5
        assert fit.value + 1e-3 * len(fit.support) <= problem.fit(()).value
