"""The list of tests of which a part of the cases runs by default."""

from pathlib import Path

import pytest

from in_depth import ONE_OF, mark_the_rest

TESTS = Path(__file__).parent


def test_all_of_the_list_exist():
    for name, one_of in ONE_OF.items():
        file, _, function = name.partition("::")
        assert f"def {function}(" in (TESTS / file).read_text()
        assert one_of > 1


class Case:
    def __init__(self, nodeid):
        self.nodeid, self.marks = nodeid, []

    def add_marker(self, mark):
        self.marks.append(mark.name)


@pytest.mark.parametrize("n", [1, 2, 7, 20])
def test_at_least_one_case_is_drawn_and_always_the_same(n):
    name, one_of = next(iter(ONE_OF.items()))
    found = []
    for order in (range(n), reversed(range(n))):
        cases = [Case(f"tests/{name}[{number}]") for number in order]
        mark_the_rest([*cases, Case("tests/other.py::test_x[0]")])
        found.append({case.nodeid for case in cases if not case.marks})
    assert len(found[0]) == -(-n // one_of)
    assert found[0] == found[1]
