"""Arguments of the two methods of ``laconic fit``, and the estimator that they ask for."""

from __future__ import annotations

import argparse
from typing import Any

from laconic.cli.headers import CHIPS, add_number_arguments
from laconic.data.errors import UserError
from laconic.registry import POOLS

# Listed here so that --help needs no heavy import. A test compares them with the library's own.
LOSSES = ("margin", "log")
BINARY_LOSSES = ("exponential", "logistic", "squared_hinge")
SEARCHES = ("local", "exact", "tabu", "anneal")
RULES = ("gradient", "projection", "step", "column", "refit")


def add_arguments(fit: argparse.ArgumentParser) -> None:
    """Add the arguments that say what is learned, and how."""
    fit.add_argument(
        "--method", choices=("share", "totalq", "compact"),
        help="ShareBoost; TotalQBoost, which puts a price on each atom; or compact, which tries "
        "all kinds of atoms and takes the best model that fits --max-bytes (default: compact if "
        "--max-bytes is given and no option that compact does not have, else share)",
    )  # fmt: skip
    fit.add_argument(
        "--max-atoms", type=int, metavar="N",
        help="largest number of atoms (default: 20 for share, no limit for totalq, 100 for "
        "compact)",
    )  # fmt: skip
    fit.add_argument(
        "--pool", type=_pool, metavar="NAME[,NAME...]",
        help=f"kinds of atoms in the model: {', '.join(POOLS)}, or several of them, such as "
        "columns,products (default: columns for share, stumps for totalq)",
    )  # fmt: skip
    fit.add_argument(
        "--loss", choices=(*LOSSES, *BINARY_LOSSES),
        help="loss to minimise (default: margin for share; for totalq, exponential for two classes "
        "and log for more)",
    )  # fmt: skip
    _add_budgets(fit.add_argument_group("budgets"))
    share = fit.add_argument_group("options of --method share")
    share.add_argument("--rule", choices=RULES, help="how to choose atoms (default: gradient)")
    share.add_argument(
        "--alpha", type=_alpha, metavar="NUMBER",
        help="strength of the penalty (default: auto, which is weaker for more rows)",
    )  # fmt: skip
    total = fit.add_argument_group("options of --method totalq")
    total.add_argument(
        "--price", type=float, help="price of one atom in units of the mean loss (default: 1e-3)"
    )
    total.add_argument("--l1", type=float, help="strength of the l1 penalty (default: 1e-6)")
    total.add_argument(
        "--max-rounds", type=int, metavar="N", help="most atoms to try (default: 100)"
    )
    total.add_argument(
        "--hot-start", type=int, metavar="N",
        help="atoms to take before any is dropped (default: 0)",
    )  # fmt: skip
    total.add_argument(
        "--search", choices=SEARCHES, help="how to choose the atoms to keep (default: local)"
    )


def _add_budgets(budgets: argparse._ArgumentGroup) -> None:
    """Add the arguments that say what a model costs, and what it may cost."""
    budgets.add_argument(
        "--cost", action="append", default=[], metavar="COLUMN=NUMBER",
        help="cost of reading a column (default: 1; repeatable). COLUMN+COLUMN=NUMBER is the cost "
        "of a sensor that brings several columns",
    )  # fmt: skip
    budgets.add_argument(
        "--max-cost", type=float, metavar="NUMBER", help="largest total cost of the model"
    )
    budgets.add_argument(
        "--max-features", type=int, metavar="N", help="most columns that the model may read"
    )
    budgets.add_argument(
        "--max-operations", type=float, metavar="N", help="most operations for one row"
    )
    budgets.add_argument(
        "--max-bytes", type=int, metavar="N", help="most bytes of the exported model on a chip"
    )
    budgets.add_argument(
        "--chip", choices=CHIPS,
        help="chip for --max-bytes, and on which to measure --export (default: cortex-m0 for "
        "compact, else c99)",
    )  # fmt: skip
    budgets.add_argument(
        "--time-limit", type=float, metavar="SECONDS",
        help="end the search of --method compact early, with the best model found by then",
    )  # fmt: skip
    add_number_arguments(budgets)


def _pool(text: str) -> str | list[str]:
    """Read the name of a pool, or several names."""
    names = text.split(",")
    for name in names:
        if name not in POOLS:
            raise argparse.ArgumentTypeError(
                f"invalid choice: {name!r} (choose from {', '.join(POOLS)}, or several of them "
                "with commas between)"
            )
    if len(set(names)) < len(names):
        raise argparse.ArgumentTypeError(f"must name each pool once, not {text!r}")
    return names if len(names) > 1 else text


def _alpha(text: str) -> float | str:
    """Read a number, or ``auto`` for the library's own choice."""
    try:
        return text if text == "auto" else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number or auto, not {text!r}") from None


# Options that only some methods have, and these methods.
_OWN = {
    **dict.fromkeys(("rule", "alpha"), ("share",)),
    **dict.fromkeys(("price", "l1", "max_rounds", "hot_start", "search"), ("totalq",)),
    **dict.fromkeys(("pool", "include", "early_stopping", "tune"), ("share", "totalq")),
    "refine": ("share", "compact"),
    "time_limit": ("compact",),
}


def settle(args: argparse.Namespace) -> None:
    """Refuse options of other methods, and fill in the method's defaults."""
    given = [name for name in _OWN if getattr(args, name) not in (None, False, [])]
    if args.method is None:
        fits = args.max_bytes is not None and all("compact" in _OWN[name] for name in given)
        args.method = "compact" if fits else "share"
    for name in given:
        if args.method not in _OWN[name]:
            methods = " or ".join(_OWN[name])
            itself = " A search tunes by itself." if name == "tune" else ""
            raise UserError(
                f"--{name.replace('_', '-')} works only with --method {methods}.{itself}"
            )
    if args.method != "totalq" and args.loss in BINARY_LOSSES:
        raise UserError(f"--loss {args.loss} works only with --method totalq.")
    shipped = args.max_bytes is not None or args.export or args.method == "compact"
    for name in ("chip", "bits", "inputs"):
        if getattr(args, name) and not shipped:
            raise UserError(f"--{name} is for --max-bytes and --export. Give one of them, too.")
    if args.bits == 32 and args.inputs not in (None, "float"):
        raise UserError(f"--bits 32 computes with floats. Leave out --inputs {args.inputs}.")
    if args.scoring and not args.cv and args.method != "compact":
        raise UserError("--scoring names the score that --cv compares. Give --cv too.")
    if args.cv and args.price is not None:
        raise UserError("--cv chooses the price. Leave out --price or --cv.")
    if args.tune:
        _check_tunable(args)
    # A search looks at the table before it chooses pools, so it takes all that stumps take.
    args.pool = args.pool or ("columns" if args.method == "share" else "stumps")
    if args.method == "share" and args.max_atoms is None:
        args.max_atoms = 20


def _check_tunable(args: argparse.Namespace) -> None:
    """Refuse pools whose atoms have no parameters."""
    from laconic.pools import make_pool

    def tunable(name: str | list[str]) -> bool:
        return bool(getattr(make_pool(name, None, None, []), "tunable", False))

    known = " or --pool ".join(filter(tunable, POOLS))
    if args.pool is None:
        search = " Or leave out --tune: a search by --max-bytes tunes by itself."
        raise UserError(
            f"--tune needs atoms with parameters. Add --pool {known}."
            f"{'' if args.max_bytes is None else search}"
        )
    if not tunable(args.pool):
        given = args.pool if isinstance(args.pool, str) else ",".join(args.pool)
        raise UserError(
            f"--tune changes the parameters of atoms, and those of --pool {given} cannot be tuned. "
            f"Use --pool {known}, or leave out --tune."
        )


def _given(args: argparse.Namespace, *names: str) -> dict[str, Any]:
    """Return the settings that were given. The estimator has defaults for the others."""
    return {name: getattr(args, name) for name in names if getattr(args, name) is not None}


def make_model(args: argparse.Namespace, seed: int) -> Any:
    """Return the unfitted estimator that the arguments ask for."""
    makers = {"share": _share, "totalq": _totalq, "compact": _compact}
    return makers[args.method](args, seed)


def _compact(args: argparse.Namespace, seed: int) -> Any:
    from laconic.compact.classifier import CompactClassifier

    names = ("max_bytes", "chip", "inputs", "max_atoms", "loss", "cv", "bits")
    return CompactClassifier(
        **{"inputs": "float", **_given(args, *names)},
        costs=args.cost or None,
        max_cost=args.max_cost,
        max_features=args.max_features,
        max_operations=args.max_operations,
        refine=args.refine,
        scoring=args.scoring,
        time_limit=args.time_limit,
        class_weight="balanced" if args.balanced else None,
        checkpoint=args.checkpoint,
        random_state=seed,
        verbose=1,
    )


def _share(args: argparse.Namespace, seed: int) -> Any:
    from laconic.estimators.share import ShareBoostClassifier

    given = _given(args, "loss", "rule", "alpha")
    return ShareBoostClassifier(
        args.max_atoms, refine=args.refine, **_of_the_loop(args, seed), **given
    )


def _target(args: argparse.Namespace) -> Any:
    """Return the chip and the numbers that bytes are counted for."""
    from laconic.export.footprint import Target

    bits = None if args.bits == 32 else args.bits or 8
    return Target(args.chip or CHIPS[0], bits, args.inputs or "float")


def _of_the_loop(args: argparse.Namespace, seed: int) -> dict[str, Any]:
    """Return the settings that both methods take."""
    return {
        "pool": args.pool,
        "include": args.include or None,
        "costs": args.cost or None,
        "max_cost": args.max_cost,
        "max_features": args.max_features,
        "max_operations": args.max_operations,
        "max_bytes": args.max_bytes,
        "chip": _target(args),
        "class_weight": "balanced" if args.balanced else None,
        "cv": args.cv,
        "scoring": args.scoring,
        "early_stopping": args.early_stopping,
        "tune": args.tune,
        "checkpoint": args.checkpoint,
        "random_state": seed,
        "verbose": 1,
    }


def _totalq(args: argparse.Namespace, seed: int) -> Any:
    from laconic.estimators.priced import PRICES
    from laconic.estimators.totalq import TotalQBoostClassifier

    names = ("max_atoms", "loss", "price", "l1", "max_rounds", "hot_start", "search")
    given = _of_the_loop(args, seed) | _given(args, *names)
    if args.cv:
        given["price"] = PRICES
    return TotalQBoostClassifier(**given)
