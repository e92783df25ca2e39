"""Tables and models on disk, as the command line reads them: errors are for people to put right."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from io import BytesIO
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from laconic.model.files import check_can_write, same_file, whole_file

if TYPE_CHECKING:
    import argparse

    import numpy as np

    from laconic.model.predictor import Predictor

# Cells of a column of numbers that are no mistake: missing in some spelling, or truth values.
NO_TEXT = {"", "na", "nan", "n/a", "null", "none", "<na>", "#n/a", "true", "false"}
# Characters of another library's message that are worth a line.
LONGEST = 120


class UserError(Exception):
    """Something the user can put right; its message is all they need to see."""


def cause(error: Exception) -> str:
    """The first line of what another library says, with its kind where it says little."""
    said = str(error).strip().splitlines() or [""]
    few = said[0] if len(said[0]) <= LONGEST else said[0][:LONGEST] + "…"
    return few if " " in few else f"{type(error).__name__} {few}".strip()


def need(module: str, extra: str) -> Any:
    """Import what an extra of the package brings, or say how to get it."""
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError as error:
        raise UserError(f'this needs {module}: pip install "laconic[{extra}]"') from error


def check_files(outputs: Mapping[str, str | None], inputs: Mapping[str, str]) -> None:
    """Before anything is read or fitted: can each file be written, without harm to another?

    Both map what a file is to the command, such as ``--out`` or ``the table``, to its name.
    """
    named = {option: file for option, file in outputs.items() if file}
    for (one, file), (other, theirs) in combinations(named.items(), 2):
        if same_file(file, theirs):
            raise UserError(f"{one} and {other} are both {file}; name two files")
    for option, file in named.items():
        for what, theirs in inputs.items():
            if same_file(file, theirs):
                raise UserError(f"{option} {file} would overwrite {what}")
        check_can_write(file)


def why_unsaved(file: str, save: Callable[[], object]) -> str | None:
    """Save a file; if that fails, the reason, to be told when all else is shown."""
    try:
        save()
    except OSError as error:
        return f"{file} is not saved: {error.strerror or error}"
    return None


def picture_kind(file: str) -> str:
    """The kind of picture that the name of a file asks for."""
    return Path(file).suffix[1:].lower() or "png"


def check_picture(file: str) -> None:
    """Before a long fit, not after it: can a picture be written to a file of this name?"""
    need("matplotlib", "plot")
    from matplotlib.figure import Figure

    known = Figure().canvas.get_supported_filetypes()
    if picture_kind(file) not in known:
        kinds = ", ".join(sorted(known))
        raise UserError(f"{file}: pictures can be {kinds}, not {picture_kind(file)!r}")


def write_table(frame: Any, file: str) -> None:
    """Write a data frame as CSV, compressed if the name of the file says so."""
    from pandas.io.common import infer_compression

    how = infer_compression(file, "infer")
    if how in ("zip", "tar"):
        how = {"method": how, "archive_name": Path(file).stem}
    with whole_file(file) as stream:
        frame.to_csv(stream, index=False, mode="wb", compression=how)


def load_predictor(file: str) -> Predictor:
    """Read a saved predictor."""
    from laconic.model.predictor import Predictor

    return Predictor.load(file)


def _read_table(file: str, text: Iterable[str] = (), target: str | None = None) -> Any:
    """A data frame with string column names; ``text`` names columns to read as they are spelled."""
    pandas = need("pandas", "data")
    if file.endswith((".parquet", ".pq")):
        try:
            frame = pandas.read_parquet(file)
        except ImportError as error:
            raise UserError("reading parquet needs pyarrow: pip install pyarrow") from error
    else:
        try:
            frame = _read_csv(pandas, file, list(text), target)
        except ValueError as error:  # what pandas raises for a file it cannot make sense of
            raise UserError(f"{file} cannot be read as a table: {error}") from error
    frame.columns = [str(name) for name in frame.columns]
    if len(frame) == 0:
        raise UserError(f"{file} has no rows")
    return frame


def _read_csv(pandas: Any, file: str, text: Sequence[str], target: str | None) -> Any:
    """A CSV file in which NA and its like are missing among numbers, and text among text.

    Only the whole column says which it is, so columns of text that seem to have gaps are read once
    more, now with nothing missing but empty cells; so is a target that seems to have no label.
    """
    # A pipe can be read only once.
    piped = Path(file).read_bytes() if Path(file).is_fifo() else None
    sep = "\t" if file.endswith((".tsv", ".tsv.gz")) else ","

    def read(as_text: Iterable[str], **how: Any) -> Any:
        source = file if piped is None else BytesIO(piped)
        # Reading a column in one go keeps numbers and text in it from getting different types.
        types = dict.fromkeys(as_text, str)
        return pandas.read_csv(source, sep=sep, low_memory=False, dtype=types, **how)

    frame = read(text)
    gaps = frame.columns[frame.isna().any()]
    spelled = {*text, *(n for n in gaps if _is_text(frame[n]))}
    if target in gaps and frame[target].isna().all():
        spelled.add(target)
    again = [n for n in gaps if n in spelled]
    if again:
        frame[again] = read(again, keep_default_na=False, na_values=[""])[again]
    return frame


def check_present(frame: Any, names: Iterable[str], file: str) -> None:
    """Name the columns that a table does not have, and one that may be meant."""
    missing = [n for n in names if n not in frame.columns]
    if missing:
        from difflib import get_close_matches

        shown = ", ".join(map(repr, missing[:5]))
        shown += f" and {len(missing) - 5} more" if missing[5:] else ""
        near = get_close_matches(missing[0], list(frame.columns), n=1, cutoff=0.75)
        few = ", ".join(map(repr, frame.columns[:5])) + (", …" if len(frame.columns) > 5 else "")
        hint = f"; did you mean {near[0]!r}?" if near else f"; it has {few}"
        raise UserError(f"{file} has no column {shown}{hint}")


def training_table(args: argparse.Namespace) -> tuple[Any, np.ndarray]:
    """Features and labels, checked so that what is wrong is said by the names of columns."""
    import numpy as np

    from laconic.look.card import count

    pandas = need("pandas", "data")
    if args.target in args.ignore:
        raise UserError(f"column {args.target!r} cannot be both --target and --ignore")
    if args.categorical and args.pool != "stumps":
        raise UserError("--categorical needs --pool stumps, the only pool that takes categories")
    frame = _read_table(args.table, args.categorical, args.target)
    named = {*args.include, *args.cost, *args.categorical}
    check_present(frame, [args.target, *args.ignore, *named], args.table)
    if odd := {args.target, *args.ignore} & named:
        raise UserError(f"column {min(odd)!r} is not among those to learn from")
    frame[args.categorical] = frame[args.categorical].astype("category")
    labels = frame[args.target]
    if unlabelled := int(labels.isna().sum()):
        raise UserError(f"column {args.target!r} has no label in {count(unlabelled, 'row')}")
    stumps = args.pool == "stumps"
    X: dict[str, Any] = {}
    for name, column in frame.drop(columns=[args.target, *args.ignore]).items():
        if not _is_text(column):
            X[name] = _as_numbers(column, name, stumps, "; --pool stumps accepts missing values")
        elif stumps:
            X[name] = column
        else:
            raise UserError(
                f"column {name!r} holds text, which --pool {args.pool} cannot use; "
                "try --pool stumps, or leave it out with --ignore"
            )
    if not X:
        raise UserError(f"{args.table} has no column to learn from")
    # Through a list, labels get the plain type they share whatever pandas kept them in.
    return pandas.DataFrame(X), np.asarray(labels.tolist())


def labelled_table(
    file: str, target: str, ignore: Sequence[str] = (), text: Iterable[str] = ()
) -> tuple[Any, np.ndarray]:
    """Every column but those to ignore, of any kind, and the labels; ``text`` as in the file."""
    import numpy as np

    from laconic.look.card import count

    frame = _read_table(file, text, target)
    check_present(frame, [target, *ignore], file)
    labels = frame[target]
    if unlabelled := int(labels.isna().sum()):
        raise UserError(f"column {target!r} has no label in {count(unlabelled, 'row')}")
    rest = frame.drop(columns=[target, *ignore])
    if rest.shape[1] == 0:
        raise UserError(f"{file} has no column beside the labels")
    return rest, np.asarray(labels.tolist())


def rows_for(
    predictor: Predictor, file: str, keep: Sequence[str] = ()
) -> tuple[np.ndarray, dict[str, Any]]:
    """The table's rows as the predictor wants them, and the columns to keep as they are spelled.

    Only the columns that the predictor reads are needed.
    """
    import numpy as np

    names = predictor.feature_names
    reads = predictor.map.features().tolist()
    if names is None:
        frame = _read_table(file)
        check_present(frame, keep, file)
        if frame.shape[1] != predictor.n_features:
            raise UserError(
                f"the model has no feature names, so {file} must have its "
                f"{predictor.n_features} columns in order, not {frame.shape[1]}"
            )
        names = list(frame.columns)
    else:
        known = [names[f] for f in reads]
        as_spelled = {*(names[f] for f in predictor.categories), *(set(keep) - set(known))}
        frame = _read_table(file, as_spelled)
        check_present(frame, [*known, *keep], file)
    # Column by column in memory: columns that are not read are never touched.
    X = np.zeros((len(frame), predictor.n_features), order="F")
    stumps = predictor.map.kind == "stumps"
    for f in reads:
        column = frame[names[f]]
        if f in predictor.categories:
            X[:, f] = predictor.codes(f, column)
        else:
            X[:, f] = _as_numbers(column, names[f], stumps)
    return X, {name: frame[name] for name in keep}


def _is_text(column: Any) -> bool:
    """Whether the column is categorical; truth values with gaps are numbers with gaps."""
    kind = str(column.dtype)
    if kind != "object":
        return kind == "category" or kind.startswith("str")
    return not all(isinstance(value, bool) for value in column.dropna())


def _first_wrong(column: Any) -> str:
    """Where a column first holds something that is no number, no truth value and not missing."""
    for row, value in enumerate(column, start=1):
        text = str(value).strip()
        if text.lower() in NO_TEXT:
            continue
        try:
            float(text)
        except ValueError:
            return f"; row {row} has {text!r}"
    return ", and not numbers among truth values"


def _as_numbers(column: Any, name: str, missing: bool, hint: str = "") -> np.ndarray:
    """Values as floats; an error says which column cannot be read and where it first goes wrong."""
    import numpy as np

    if column.dtype.kind in "mM":
        raise UserError(f"column {name!r} holds times; turn them into numbers first")
    try:
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise UserError(f"column {name!r} must hold numbers{_first_wrong(column)}") from error
    bad = np.isinf(values) if missing else ~np.isfinite(values)
    if bad.any():
        row = int(bad.argmax())
        what = f"a missing value{{}}{hint}" if np.isnan(values[row]) else "an infinite value{}"
        raise UserError(f"column {name!r} has " + what.format(f" in row {row + 1}"))
    return values
