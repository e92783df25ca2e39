"""Appendix C's examples: the counts that the paper promises, at sizes that take no time."""

import numpy as np
import pytest
from share_synthetic import BLOCKS, binary, first_example, second_example


def test_binary_numbers_every_class():
    codes = binary(8)
    assert codes.shape == (8, 3)
    assert set(np.unique(codes)) == {-1.0, 1.0}
    assert len(np.unique(codes, axis=0)) == 8


@pytest.mark.filterwarnings("ignore:The number of unique classes")
@pytest.mark.parametrize("k", [16, 64])
def test_first_example(k):
    used = first_example(k)
    assert used["ShareBoost"] == np.log2(k)
    assert used["l1"] == k  # solved, and what the closed form says
    assert used["l1 solved"]


@pytest.mark.parametrize("k", [8, 32])
def test_second_example(k):
    used = second_example(k, seed=1)
    assert used["ShareBoost"] == np.log2(k)
    assert used["mixed norm"] == BLOCKS * np.log2(k)
