"""How the comparison with mixed norms reads its curves."""

from share_vs_mixed_norm import at_most, choose, neighbours


def test_the_answer_for_a_size_is_the_largest_model_that_fits():
    models = [(2, 0.5), (7, 0.3), (4, 0.4)]
    assert [at_most(n, models) for n in (1, 2, 6, 7, 99)] == [None, 0.5, 0.4, 0.3, 0.3]


def test_every_size_has_its_neighbours():
    assert neighbours([1, 2, 5]) == [[1, 2], [1, 2, 5], [2, 5]]


def test_of_models_of_one_size_validation_decides():
    """Two λ with 89 features each: the one that is better on the validation rows is taken."""
    settings = {"λ 0": [(89, 0.037)], "λ 1": [(89, 0.028)], "λ 2": [(95, 0.020)]}
    watched = {"λ 0": [(88, 0.036)], "λ 1": [(90, 0.030)], "λ 2": [(94, 0.010)]}
    assert choose(90, [75, 90, 100], watched, settings) == "λ 1"
    assert choose(120, [100, 120], watched, settings) == "λ 2"
    assert choose(50, [40, 50, 63], watched, settings) is None


def test_settings_without_a_validation_model_are_not_chosen():
    assert choose(9, [9], {"a": [], "b": [(3, 0.2)]}, {"a": [(3, 0.1)], "b": [(3, 0.3)]}) == "b"
