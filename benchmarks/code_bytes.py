"""Measure the code of exported headers on every chip, for `laconic.export.footprint`.

Random models of each kind of atom are linked for each chip: tiny, small and large ones, with all
kinds of inputs. The code of a model is what it adds to a program, less its tables. The largest code
of each kind is kept, with a margin, because other models may differ a little. Models of several
kinds show how much code kinds share at least. Models of many scores show what these take in
addition. Other models, of one kind and of several, check that the promise is enough.

    python benchmarks/code_bytes.py --out src/laconic/export/code_bytes.json

With --kinds, only these kinds are measured, and the others stay as they are in the file. If their
code is as before, add --keep-larger: other random models then only raise what is in the file.
"""

from __future__ import annotations

import json
import math
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from _common import ROOT, arguments, progress, provenance

sys.path.insert(0, str(ROOT / "tests"))
from export.random_models import cases, random_problem
from laconic.export.chips import CHIPS, FLAGS, compiler_version, is_installed, measure
from laconic.export.footprint import (
    FEW_SCORES,
    Target,
    code_bytes,
    code_parts,
    n_kinds,
    part_bytes,
    shared_part,
)
from laconic.export.table_bytes import table_bytes

KINDS = (
    "gather", "filled", "multiply", "stumps", "rules", "hinge", "look_up", "balls", "soft",
    "bumps", "windows", "regions", "nested", "nothing",
)  # fmt: skip
# Tests of stumps that a model may have: at most, equal, missing.
TESTS = ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2))
# Numbers of classes: of tiny models, and of models with many scores.
TINY, MANY = (2, 3, 4), (17, 26, 40)
# Added to the largest code, in bytes and as a part of it. Routines for 64 bits are large, and a
# compiler calls them for some numbers only.
MARGIN_BYTES, MARGIN = 72, {"float32": 0.05, "int32": 0.05, "int64": 0.15}
# Part of the code shared by measured models that counts as shared by all.
CERTAIN = 0.75
# How often models are tried, by their bits: the more routines they may call, the more often.
# Few models of 16 bits have scores of 32 bits.
AGAIN = {8: 1, 16: 4, None: 4}
# Larger tables do not fit a chip, or need too long to compile.
LARGEST = {**dict.fromkeys(CHIPS, 200_000), "avr": 20_000}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--models", type=int, default=8, help="models of each kind and inputs")
    parser.add_argument("--out", type=Path, help="file for the bytes of code")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS,
                        help="kinds to measure; the file must have all others")  # fmt: skip
    parser.add_argument("--keep-larger", action="store_true",
                        help="never lower what is in the file")  # fmt: skip
    args = parser.parse_args()
    stored = {} if set(args.kinds) == set(KINDS) else json.loads(args.out.read_text())
    headers = list(single_kinds(args.seed, args.models, kinds=args.kinds))
    many = list(single_kinds(args.seed, 2, MANY, args.kinds))
    mixes = list(mixed_kinds(args.seed, 3 * args.models))
    others = [case.header for case in cases(args.seed, 10 * args.models)]
    others += list(single_kinds(args.seed + 1, 2))
    chips: dict[str, Any] = {}
    for chip in CHIPS.values():
        if not is_installed(chip):
            sys.exit(f"{chip.name} needs {', '.join(chip.packages)}; run make compilers first")
        largest: dict[str, int] = defaultdict(int)
        for header in headers:
            if header.table_bytes < LARGEST[chip.name]:
                part = _parts(header)[-1]  # holes are measured together with what is in them
                code = measure(str(header), chip, header.name).flash - header.table_bytes
                largest[part] = max(largest[part], code)
        kept = rising({part: with_margin(part, code) for part, code in largest.items()})
        known = stored["chips"][chip.name]["bytes"] if stored else {}
        if args.keep_larger:
            kept = {part: max(size, known.get(part, 0)) for part, size in kept.items()}
        kept = known | kept
        kept |= shared_code(mixes, chip.name, kept)
        more = more_scores(many, chip.name, kept)
        kept |= {part: max(size, known.get(part, 0)) for part, size in more.items()}
        over = [beyond(header, chip.name, kept) for header in others]
        progress(f"{chip.name}: {len(kept)} parts; room left in other models: {-max(over)} bytes")
        if max(over) > 0:
            sys.exit(f"a model on {chip.name} takes {max(over)} bytes more than promised")
        flags = [flag for flag in (*FLAGS, *chip.flags) if not Path(flag).is_absolute()]
        chips[chip.name] = {
            "compiler": compiler_version(chip), "flags": " ".join(flags), "bytes": kept,
        }  # fmt: skip
    # Models of a rare part may all be too large for a chip. It then counts as the most of its kind.
    common = set.intersection(*(set(chip["bytes"]) for chip in chips.values()))
    for measured in chips.values():
        measured["bytes"] = {part: measured["bytes"][part] for part in sorted(common)}
    if args.out:
        before = stored.get("before", [])
        if stored:  # where the kinds that were not measured come from
            before = [*before, {k: v for k, v in stored.items() if k not in ("chips", "before")}]
        result = {**provenance(args, ()), "before": before, "chips": chips}
        args.out.write_text(json.dumps(result, indent=1) + "\n")


def single_kinds(
    seed: int, n_models: int, classes: Sequence[int] = (), kinds: Sequence[str] = KINDS
) -> Iterator[Any]:
    """Yield headers of models with one kind of atoms: these kinds, all inputs and bits.

    By default, a third of the models is tiny, a third small and a third large.
    """
    tried = [(k, tests) for k in kinds for tests in (TESTS if k == "stumps" else ((),))]
    settings = product(tried, ("float", "uint8", "int8", "int16"), (8, 16, None), range(n_models))
    for number, ((kind, tests), given, bits, turn) in enumerate(settings):
        if bits is None and given != "float":
            continue
        for again in range(AGAIN[bits]):
            rng = np.random.default_rng([seed, number, again])
            tiny, large = turn % 3 == 0, turn % 3 == 2
            n_classes = int(rng.choice(classes or TINY)) if tiny or classes else None
            size = "tiny" if tiny else "large" if large else "small"
            problem = random_problem(rng, kind, size, given, n_classes, tests)
            predictor = problem.predictor
            if bits is not None:
                predictor = predictor.quantise(problem.rows, bits=bits, inputs=given)
            yield predictor.to_c(f"m{number}_{again}")


def mixed_kinds(seed: int, n_models: int) -> Iterator[Any]:
    """Yield headers of models with several kinds of atoms, all inputs and bits."""
    settings = product(("float", "uint8", "int8", "int16"), (8, 16, None), range(n_models))
    for number, (given, bits, turn) in enumerate(settings):
        if bits is None and given != "float":
            continue
        rng = np.random.default_rng([seed, number])
        problem = random_problem(rng, "mixed", ("tiny", "small", "large")[turn % 3], given)
        predictor = problem.predictor
        if bits is not None:
            try:
                predictor = predictor.quantise(problem.rows, bits=bits, inputs=given)
            except ValueError as error:
                if "looked up in a table and also calculated with" not in str(error):
                    raise
                continue
        yield predictor.to_c(f"mixed{number}")


def shared_code(headers: list[Any], chip: str, kept: dict[str, int]) -> dict[str, int]:
    """Return the bytes by which each kind but the first counts less, by numbers and inputs.

    This is a part of the least that kinds save in a mix: the promise for its kinds apart, with
    their margins, less its code. It is at most the smallest kind.
    """
    saved: dict[str, list[float]] = defaultdict(list)
    for header in headers:
        parts = _parts(header)
        if header.table_bytes < LARGEST[chip] and n_kinds(parts) > 1:
            code = measure(str(header), chip, header.name).flash - header.table_bytes
            apart = sum(part_bytes(kept, part) for part in parts)
            saved[shared_part(parts[0])].append((apart - code) / (n_kinds(parts) - 1))
    out = {}
    for name, own in sorted(saved.items()):
        smallest = min(
            size
            for part, size in kept.items()
            if shared_part(part) == name and not part.split()[1].startswith(("shared", "many"))
        )
        out[name] = max(0, min(int(CERTAIN * min(own)), smallest))
    return out


def with_margin(part: str, code: int) -> int:
    """Return the bytes that are promised for a part, whose largest code is known."""
    return math.ceil(code * (1 + MARGIN[part.split()[0]])) + MARGIN_BYTES


def more_scores(headers: list[Any], chip: str, kept: dict[str, int]) -> dict[str, int]:
    """Return what many scores take in addition, by the type of numbers and inputs."""
    more: dict[str, int] = defaultdict(int)
    for header in headers:
        if header.table_bytes < LARGEST[chip] and header.program.n_outputs > FEW_SCORES:
            *parts, many = _parts(header)
            known = code_bytes(kept, parts)
            code = measure(str(header), chip, header.name).flash - header.table_bytes
            more[many] = max(more[many], code - known)
    return {part: extra + MARGIN_BYTES for part, extra in sorted(more.items())}


def _target(header: Any, chip: str) -> Target:
    integers = header.integers
    if integers is None:
        return Target(chip, None, "float")
    return Target(chip, integers.bits, integers.inputs.given)


def _parts(header: Any) -> list[str]:
    target = _target(header, "c99")
    return code_parts(header.program, target.bits, target.inputs)


def rising(sizes: dict[str, int]) -> dict[str, int]:
    """Return sizes that never fall from 32 to 64 bits, or if there are more kinds of questions."""
    out = dict(sorted(sizes.items()))
    for part in out:
        number, kind, *given = part.split()
        smaller = [
            other
            for other in out
            if other.split()[2:] == given
            and set(other.split()[1].split("+")) <= set(kind.split("+"))
            and (other.split()[0] == number or (other.startswith("int32") and number == "int64"))
        ]
        out[part] = max(sizes[other] for other in smaller)
    return out


def beyond(header: Any, chip: str, kept: dict[str, int]) -> int:
    """Return how many bytes more than promised a header takes."""
    if header.table_bytes >= LARGEST[chip]:
        return -1
    target = _target(header, chip)
    tables = table_bytes(header.program, target.bits, target.inputs, len(header.predictor.classes))
    promised = tables + code_bytes(kept, _parts(header))
    return measure(str(header), chip, header.name).flash - promised


if __name__ == "__main__":
    main()
