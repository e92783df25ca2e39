"""Does it do harm to store the values of patches in one or two bytes?

The same fit runs with values stored as uint8, float16 and float32. Measured are the number of
patches that are the same before the first difference, the number that are shared in all, and the
error on other digits of the training set.

Run: python benchmarks/patch_storage.py [--rows 4000] [--atoms 60] [--json FILE]
"""

from __future__ import annotations

from typing import Any

from _common import arguments, error, load, progress, save, table
from patches import digits

STORAGES = ("float32", "float16", "uint8")


def main() -> None:
    from laconic import ShareBoostClassifier
    from laconic.pools import Patches

    parser = arguments(__doc__)
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--held", type=int, default=20_000, help="number of digits for the error")
    parser.add_argument("--atoms", type=int, default=60)
    parser.add_argument("--templates", type=int, default=150)
    args = parser.parse_args()
    data = load(args.data, "mnist")
    X, y = digits(data["X_train"]), data["y_train"]
    new = slice(-args.held, None)
    results: dict[str, Any] = {}
    exact: list[int] = []
    for storage in STORAGES:
        pool = Patches(n_templates=args.templates, storage=storage, random_state=args.seed)
        model = ShareBoostClassifier(args.atoms, pool=pool, alpha=1e-5)
        model.fit(X[: args.rows], y[: args.rows])
        numbers = list(model.path_.entries[-1].numbers)
        exact = exact or numbers
        alike = [a == b for a, b in zip(numbers, exact, strict=True)]
        results[storage] = {
            "first alike": alike.index(False) if False in alike else len(alike),
            "shared": len(set(numbers) & set(exact)),
            "error": {
                size: error(model.at(size).predict(X[new]), y[new])
                for size in (args.atoms // 3, 2 * args.atoms // 3, args.atoms)
            },
        }
        progress(f"{storage} done")
    sizes = [f"error at {size}" for size in results["uint8"]["error"]]
    table(
        f"{args.rows} digits, {16 * args.templates} candidates, against float32",
        ["stored as", "first patches alike", "shared", *sizes],
        [[s, r["first alike"], r["shared"], *r["error"].values()] for s, r in results.items()],
    )
    save(args.json, args, [], results)


if __name__ == "__main__":
    main()
