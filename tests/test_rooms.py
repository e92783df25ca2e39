"""The order of the rooms: nothing imports what lies above it, and no two classes share a name."""

import ast
from collections import defaultdict
from pathlib import Path

import laconic

ROOT = Path(laconic.__file__).parent
# From the ground up; rooms of one line know nothing of each other (docs/architecture.md).
ORDER = [
    ("registry", "notebook", "numeric"), ("files", "data"), ("losses", "penalties"), ("model",),
    ("export",), ("pools",), ("rows",), ("correct", "subset", "device"), ("boost",), ("tune",),
    ("clumping",),
    ("holes",), ("look", "deform", "converters"), ("beyond",), ("estimators",),
    ("compact", "report"), ("cli",),
]  # fmt: skip
# The front of the house leads to every room, when it is asked to.
FRONT = {"laconic", "laconic.__main__"}
FLOOR = {room: floor for floor, rooms in enumerate(ORDER) for room in rooms}


def _module(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(("laconic", *parts)).removesuffix(".__init__"), ast.parse(path.read_text())


MODULES = dict(map(_module, sorted(ROOT.rglob("*.py"))))


def imported(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


def room(module):
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[0] == "laconic" else None


def test_every_module_has_a_room():
    rooms = {room(name) for name in MODULES if name not in FRONT}
    assert rooms == set(FLOOR)


def test_no_room_imports_one_above_it_or_beside_it():
    wrong = []
    for name, tree in MODULES.items():
        own = room(name)
        for target in imported(tree) if name not in FRONT else ():
            other = room(target)
            if other in FLOOR and other != own and FLOOR[other] >= FLOOR[own]:
                wrong.append(f"{name} imports {target}")
    assert wrong == []


def test_no_two_classes_share_a_name():
    where = defaultdict(list)
    for name, tree in MODULES.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                where[node.name].append(name)
    assert {name: files for name, files in where.items() if len(files) > 1} == {}
