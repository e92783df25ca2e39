"""Measure the code of exported headers on every chip, for `laconic.export.footprint`.

Random models of each kind of atom are linked for each chip, small and large ones, with all kinds of
inputs. The code of a model is what it adds to a program, less its tables. The largest code of each
kind is kept, with a margin, because other models may differ a little. Models of several kinds are
not used for that. They check that the sum over kinds is enough.

    python benchmarks/code_bytes.py --out src/laconic/export/code_bytes.json
"""

from __future__ import annotations

import json
import math
import sys
from collections import defaultdict
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from _common import ROOT, arguments, progress, provenance

sys.path.insert(0, str(ROOT / "tests"))
from export.random_models import cases, random_problem
from laconic.export.chips import CHIPS, FLAGS, compiler_version, is_installed, measure
from laconic.export.footprint import Target, code_parts, part_bytes
from laconic.export.table_bytes import table_bytes

KINDS = (
    "gather", "filled", "multiply", "at_most", "compare", "categories", "stumps", "hinge",
    "look_up", "balls", "soft", "windows", "regions", "nested", "nothing",
)  # fmt: skip
# Added to the largest code, in bytes and as a part of it.
MARGIN_BYTES, MARGIN = 72, 0.05
# Larger tables do not fit a chip, or need too long to compile.
LARGEST = {**dict.fromkeys(CHIPS, 200_000), "avr": 20_000}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--models", type=int, default=8, help="models of each kind and inputs")
    parser.add_argument("--out", type=Path, help="file for the bytes of code")
    args = parser.parse_args()
    headers = list(single_kinds(args.seed, args.models))
    mixed = [case.header for case in cases(args.seed, 8 * args.models) if case.header.integers]
    chips = {}
    for chip in CHIPS.values():
        if not is_installed(chip):
            sys.exit(f"{chip.name} needs {', '.join(chip.packages)}; run make compilers first")
        largest: dict[str, int] = defaultdict(int)
        for header in headers:
            if header.table_bytes < LARGEST[chip.name]:
                part = _parts(header)[-1]  # holes are measured together with what is in them
                code = measure(str(header), chip, header.name).flash - header.table_bytes
                largest[part] = max(largest[part], code)
        kept = rising({k: math.ceil(v * (1 + MARGIN)) + MARGIN_BYTES for k, v in largest.items()})
        over = [beyond(header, chip.name, kept) for header in mixed]
        progress(f"{chip.name}: {len(kept)} parts; room left in other models: {-max(over)} bytes")
        if max(over) > 0:
            sys.exit(f"a model on {chip.name} takes {max(over)} bytes more than promised")
        flags = [flag for flag in (*FLAGS, *chip.flags) if not Path(flag).is_absolute()]
        chips[chip.name] = {
            "compiler": compiler_version(chip), "flags": " ".join(flags), "bytes": kept,
        }  # fmt: skip
    if args.out:
        result = {**provenance(args, ()), "chips": chips}
        args.out.write_text(json.dumps(result, indent=1) + "\n")


def single_kinds(seed: int, n_models: int) -> Iterator[Any]:
    """Yield headers of models with one kind of atoms: all kinds, inputs and bits."""
    settings = product(KINDS, ("float", "uint8", "int8", "int16"), (8, 16, None), range(n_models))
    for number, (kind, given, bits, turn) in enumerate(settings):
        if bits is None and given != "float":
            continue
        rng = np.random.default_rng([seed, number])
        large = turn % 3 == 2
        problem = random_problem(rng, kind, large, given)
        predictor = problem.predictor
        if bits is not None:
            predictor = predictor.quantise(problem.rows, bits=bits, inputs=given)
        yield predictor.to_c(f"m{number}")


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
    promised = tables + sum(part_bytes(kept, part) for part in _parts(header))
    return measure(str(header), chip, header.name).flash - promised


if __name__ == "__main__":
    main()
