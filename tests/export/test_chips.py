"""Sizes of C headers on chips, and answers of headers that run there, against plain Python."""

from dataclasses import replace

import numpy as np
import pytest
from _chip_runs import DoesNotFit, can_run, run
from chips import REAL, Exported, compare, different
from sample_headers import SAMPLES, with_instructions, with_local_array, with_table

from laconic.export.chips import CHIPS, compiler_version, find_chip, is_installed, measure

pytestmark = pytest.mark.chips


@pytest.fixture(params=CHIPS)
def chip(request):
    """Every chip whose compiler is installed."""
    found = CHIPS[request.param]
    if not is_installed(found):
        pytest.skip(f"no compiler for {found.title}")
    return found


@pytest.fixture
def running(chip):
    """Every chip that also has an emulator, or is this machine."""
    if not can_run(chip):
        pytest.skip(f"no emulator for {chip.title}")
    return chip


@pytest.fixture
def counting(running):
    """Every chip with a counter and a painted stack."""
    if running.name == "c99":
        pytest.skip("this machine has no counter")
    return running


def test_a_chip_is_found_by_its_name():
    assert find_chip("avr").compiler == "avr-gcc"


def test_an_unknown_chip_is_refused_with_the_names_of_all_chips():
    with pytest.raises(ValueError, match=r"chip is 'z80'.*'avr', 'cortex-m0', 'cortex-m4', 'rv32'"):
        find_chip("z80")
    with pytest.raises(ValueError, match="z80"):
        measure(SAMPLES["uint8"].text, "z80")


def test_a_missing_compiler_is_named_with_its_packages():
    missing = replace(CHIPS["avr"], compiler="no-such-gcc")
    assert not is_installed(missing)
    with pytest.raises(RuntimeError, match=r"no-such-gcc.*apt-get install gcc-avr avr-libc"):
        measure(SAMPLES["uint8"].text, missing)


def test_a_compiler_that_cannot_link_is_not_enough(chip):
    alone = replace(chip, flags=(*chip.flags, "--specs=no-such-library"))
    assert not is_installed(alone)
    with pytest.raises(RuntimeError, match=r"(?s)cannot link.*apt-get install"):
        measure(SAMPLES["uint8"].text, alone)


def test_the_version_has_a_number(chip):
    assert any(character.isdigit() for character in compiler_version(chip))


def test_a_header_that_does_not_compile_is_refused_with_the_words_of_the_compiler(chip):
    with pytest.raises(ValueError, match=r"(?s)header_text.*no_such_type"):
        measure("no_such_type x;", chip)


def test_a_name_must_be_a_name_in_c(chip):
    with pytest.raises(ValueError, match="'my model'"):
        measure(SAMPLES["uint8"].text, chip, "my model")


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_model_takes_flash_but_its_constants_take_no_ram(chip, sample):
    size = measure(SAMPLES[sample].text, chip)
    assert size.flash > 0
    assert size.ram == 0


def test_flash_grows_by_the_bytes_of_a_table(chip):
    small, large = (measure(with_table(n), chip) for n in (3000, 4000))
    assert abs(large.flash - small.flash - 1000) <= (32 if chip.name == "c99" else 4)
    assert large.ram == small.ram == 0


def test_a_table_that_is_not_constant_takes_ram_and_flash(chip):
    small, large = (measure(with_table(n, "volatile int8_t", ""), chip) for n in (300, 1300))
    assert abs(large.ram - small.ram - 1000) <= 32
    assert abs(large.flash - small.flash - 1000) <= 32


def test_the_name_of_a_header_does_not_change_its_size(chip):
    text = SAMPLES["uint8"].text
    renamed = text.replace("model", "other").replace("MODEL", "OTHER")
    assert measure(renamed, chip, "other") == measure(text, chip)


def test_arithmetic_in_software_counts_where_the_chip_has_no_floats():
    chips = [CHIPS[name] for name in ("cortex-m0", "cortex-m4")]
    if not all(map(is_installed, chips)):
        pytest.skip("no compiler for Cortex-M")
    soft, hard = (measure(SAMPLES["float"].text, chip) for chip in chips)
    assert hard.flash < 300 < 1000 < soft.flash


@pytest.mark.parametrize("sample", SAMPLES)
def test_every_answer_is_that_of_python(running, sample):
    text, rows, labels, scores = SAMPLES[sample]
    answers = run(text, running, rows)
    assert answers.labels.tolist() == labels.tolist()
    assert not different(answers.scores, scores).any()


def test_each_instruction_counts_once(counting):
    none, some = (run(with_instructions(n), counting, [[1]]) for n in (0, 50))
    assert some.counts[0] - none.counts[0] == 50


def test_the_stack_grows_with_a_local_array(counting):
    texts = [with_local_array(n) for n in (64, 256)]
    painted = [run(text, counting, [[1]]).stack for text in texts]
    reported = [measure(text, counting).stack for text in texts]
    assert painted[1] - painted[0] == reported[1] - reported[0] == 192


def test_a_model_that_is_larger_than_the_chip_is_measured_but_does_not_run():
    avr = CHIPS["avr"]
    if not can_run(avr):
        pytest.skip("no compiler or emulator for AVR")
    text = with_table(32750)
    assert measure(text, avr).flash > 32750
    with pytest.raises(DoesNotFit, match="32768 bytes of flash"):
        run(text, avr, [[1]])


def test_a_stack_that_reaches_the_data_does_not_fit():
    avr = CHIPS["avr"]
    if not can_run(avr):
        pytest.skip("no compiler or emulator for AVR")
    with pytest.raises(DoesNotFit, match="stack"):
        run(with_local_array(2040), avr, [[1]])


def test_rows_that_the_input_type_cannot_hold_are_refused():
    with pytest.raises(ValueError, match="rows"):
        run(SAMPLES["uint8"].text, CHIPS["c99"], np.full((1, 16), 256))


class Text:
    """What a predictor gives: a header with a name."""

    def __init__(self, text):
        self.text = text

    def to_c(self, name):
        return self.text.replace("model", name)


def test_the_benchmark_counts_every_wrong_answer():
    chips = [CHIPS[name] for name in REAL if can_run(CHIPS[name])]
    if not chips:
        pytest.skip("no compilers and emulators")
    text, rows, labels, scores = SAMPLES["uint8"]
    other_labels, other_scores = labels.copy(), scores.copy()
    other_labels[0] += 1
    other_scores[:2, 1] += 1
    right = Exported("right", Text(text), rows, labels, scores)
    wrong = Exported("wrong", Text(text), rows, other_labels, other_scores)
    found = compare([right, wrong], chips)
    names = [chip.name for chip in chips]
    assert [case["chip"] for case in found] == names + names
    for kind, expected in {"wrong_labels": 1, "wrong_scores": 2, "wrong_rows": 2}.items():
        assert [case[kind] for case in found] == [0] * len(chips) + [expected] * len(chips)
