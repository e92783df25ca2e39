import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from laconic import Predictor, ShareBoostClassifier
from laconic.boost.measures import Operations
from laconic.model import windows
from laconic.model.masks import mask_weights
from laconic.model.patch_responses import BoxLimits
from laconic.model.patches import Patch, PatchesMap
from laconic.model.windows import WindowMaximum
from laconic.numeric.threads import Threads
from laconic.pools import Patches
from laconic.pools.parts import bind_parts
from laconic.pools.templates import draw, learn_templates, mask_centres, windows_of
from laconic.rows.limits import Limits

SHAPE = (9, 12)


def images(n=60, shape=SHAPE, seed=0):
    """Noise with a bright bar, lying in class 0, standing in class 1, both in class 2."""
    rng = np.random.default_rng(seed)
    X = 0.2 * rng.random((n, *shape))
    y = np.arange(n) % 3
    for image, label in zip(X, y, strict=True):
        r, c = rng.integers(1, shape[0] - 2), rng.integers(1, shape[1] - 2)
        if label != 1:
            image[r, 1:-1] += 0.8
        if label != 0:
            image[1:-1, c] += 0.8
    return X.reshape(n, -1), y


def pool(**settings):
    common = {"shape": SHAPE, "n_templates": 12, "template_size": 3, "mask_grid": (2, 3)}
    return Patches(**{**common, "mask_sigma": 1.5, **settings})


def naive(map, X):
    """Every atom's value from its definition, loop by loop."""
    out = np.zeros((len(X), len(map.template)))
    templates = map.templates()
    for i, image in enumerate(X.reshape(-1, *map.shape)):
        for a, atom in enumerate(map.atoms()):
            template = templates[map.template[a]].astype(np.float64)
            s, best = atom.size, 0.0
            for y in range(map.shape[0] - s + 1):
                for x in range(map.shape[1] - s + 1):
                    dy, dx = y + (s - 1) / 2 - atom.row, x + (s - 1) / 2 - atom.column
                    squared = dy**2 + dx**2
                    if squared <= (2 * atom.sigma) ** 2:
                        mask = np.exp(-squared / (2 * atom.sigma**2))
                        best = max(best, mask * np.sum(template * image[y : y + s, x : x + s]))
            out[i, a] = best
    return out


def bound(settings=None, X=None, n_jobs=2, weight=None):
    X = images()[0] if X is None else X
    weight = np.full(X.shape[0], 1 / X.shape[0]) if weight is None else weight
    with Threads(n_jobs) as threads:
        return pool(**(settings or {})).bind(X, weight, threads)


def templates_of(X, shape, size, n_templates, min_contrast):
    random = np.random.RandomState(0)
    drawn = draw(len(X), shape, size, n_templates, random)
    windows = windows_of(X, 0, drawn, shape, size)
    return learn_templates([windows], size, n_templates, min_contrast, random)


def sums(pool, residual):
    [(first, found)] = pool.gradients(residual)
    assert first == 0
    assert found.dtype == np.float64
    return found


# -- values ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("sigma", [0.5, 1.5, (1.0, np.inf)])
@pytest.mark.parametrize("size", [1, 3, (2, 5)])
def test_values_are_those_of_the_definition(size, sigma):
    X, _ = images(7)
    p = pool(template_size=size, mask_sigma=sigma, n_templates=4, min_contrast=0.0)
    if size == 1:
        with pytest.raises(ValueError, match="flat"):  # one pixel less its mean is zero
            p.fit(X)
        return
    map = p.fit(X).map_
    np.testing.assert_allclose(map.columns(X), naive(map, X), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("cached", [1, 100, 1 << 17])
def test_values_do_not_depend_on_how_they_are_computed(cached):
    """Few or many templates at a time, all masks together or each by itself."""
    X, _ = images(5)
    map = pool(template_size=(3, 4), mask_sigma=1.0).fit(X).map_
    map = map.take([7 * t % 72 for t in range(12)] + list(range(80, 144, 7)))
    expected = naive(map, X)
    for copy in (0.0, 1e9):  # copying is free: each mask alone; or dear: all of a size together
        fresh = WindowMaximum(**map.windows.arrays(), limits=BoxLimits(copy=copy, cached=cached))
        np.testing.assert_allclose(fresh.columns(X), expected, rtol=1e-5, atol=1e-6)
        assert (len(fresh.boxes()) == 2) == (copy > 0)
    atoms = np.arange(12)
    for banded, few in ((False, 0), (True, 0), (False, 12)):
        fresh = WindowMaximum(**map.windows.arrays(), limits=BoxLimits(cached=cached, few=few))
        out = np.full((5, len(map.template)), np.nan, dtype=np.float32)
        fresh.box(atoms, banded).compute(X.astype(np.float32).reshape(5, *SHAPE), out)
        np.testing.assert_allclose(out[:, :12], expected[:, :12], rtol=1e-5, atol=1e-6)
        assert np.isnan(out[:, 12:]).all()


def test_threads_look_for_the_boxes_once(monkeypatch):
    made, make = [], windows.make_box
    monkeypatch.setattr(windows, "make_box", lambda *args: made.append(1) or make(*args))
    X, _ = images(600)
    counts = []
    for n_jobs in (1, 4):
        made.clear()
        with Threads(n_jobs) as threads:
            pool().bind(X, np.full(600, 1 / 600), threads)
        counts.append(len(made))
    assert counts[0] == counts[1] > 0


@pytest.mark.parametrize("atoms", [5, 72])
def test_an_image_has_the_same_values_alone_and_among_others(atoms):
    X, _ = images(150)
    map = pool().fit(X).map_
    map = map.take(range(atoms))
    alone = np.vstack([map.columns(X[i : i + 1]) for i in range(len(X))])
    np.testing.assert_array_equal(map.columns(X), alone)
    np.testing.assert_array_equal(map.columns(sparse.csr_matrix(X)), alone)
    np.testing.assert_array_equal(map.columns(X.astype(np.float32)), alone)


def test_an_image_that_is_not_finite_has_no_values():
    X, _ = images(3)
    map = pool().fit(X).map_
    X[1, 5] = np.nan
    assert np.isnan(map.columns(X)).all(axis=1).tolist() == [False, True, False]


def test_shifted_image_shifted_mask():
    """A mask that moves with the image sees the same."""
    rng = np.random.default_rng(1)
    wide = np.zeros((9, 14))
    wide[2:7, 4:9] = rng.random((5, 5))
    template = rng.standard_normal((3, 3)).astype(np.float32)
    values = []
    for shift in (0, 2):
        map = PatchesMap([9, 14], [0], [3], template.ravel(), [0], [[4.0, 5.0 + shift]], [1.0])
        values.append(map.columns(np.roll(wide, shift, axis=1).reshape(1, -1)))
    np.testing.assert_array_equal(*values)


def test_masks_lie_on_a_grid_and_are_cut():
    assert mask_centres((28, 28), 7, (4, 4))[[0, -1]].tolist() == [[5.25, 5.25], [21.75, 21.75]]
    mask = mask_weights((28, 28), 7, 13.5, 13.5, 2.0)
    assert mask.shape == (22, 22)
    y, x = np.indices(mask.shape) + 3 - 13.5
    np.testing.assert_array_equal(mask > 0, y**2 + x**2 <= 16.0)
    np.testing.assert_allclose(mask[10, 10], np.exp(-0.5 / 8), rtol=1e-6)
    assert (mask_weights((9, 5), 3, 4.0, 2.0, np.inf) == 1).all()


# -- templates -------------------------------------------------------------------------------------


def test_templates_have_zero_mean_and_unit_norm():
    X, _ = images(200)
    templates = templates_of(X, SHAPE, 3, 10, 0.3)
    assert templates.shape == (10, 9)
    np.testing.assert_allclose(templates.mean(axis=1), 0, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(templates, axis=1), 1, rtol=1e-5)


def test_fewer_different_windows_than_templates():
    X = np.zeros((4, 30))
    X[:, 14] = 1.0  # a dot: nine windows of 3x3 see it, each elsewhere
    assert len(templates_of(X, (5, 6), 3, 100, 0.0)) == 9


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_same_seed_same_pool_on_any_number_of_threads(n_jobs):
    one, other = bound(), bound(n_jobs=n_jobs)
    np.testing.assert_array_equal(one._stored, other._stored)
    np.testing.assert_array_equal(one._map.values, other._map.values)
    residual = np.random.default_rng(0).standard_normal((60, 3)).astype(np.float32)
    np.testing.assert_array_equal(sums(one, residual), sums(other, residual))
    assert not np.array_equal(one._map.values, bound({"random_state": 1})._map.values)


# -- the pool --------------------------------------------------------------------------------------


@pytest.mark.parametrize("cuts", [(20,), (1, 30, 31)])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"n_templates": 2},  # not every window is drawn
        {"template_size": (3, 2), "scale": "std", "storage": "float16"},
        {"n_templates": 2, "scale": None, "wrap": sparse.csc_matrix},
    ],
)
def test_parts_have_the_templates_values_and_scales_of_the_whole(settings, cuts):
    settings = dict(settings)
    X = settings.pop("wrap", np.asarray)(images()[0])
    weight = np.random.default_rng(0).random(60)
    weight /= weight.sum()
    one = pool(**settings).bind(X, weight, Threads(1))
    parts = bind_parts(pool(**settings), Limits(cuts=cuts).parts(X, weight), Threads(1))
    every = range(one.n_atoms)
    for part in parts:
        assert [part.atom(i) for i in every] == [one.atom(i) for i in every]
        templates = one.extract(every).templates()
        for found, expected in zip(part.extract(every).templates(), templates, strict=True):
            np.testing.assert_array_equal(found, expected)
        np.testing.assert_allclose(part.scales(every), one.scales(every), rtol=1e-4)
    stored = np.vstack([part._stored for part in parts])
    np.testing.assert_array_equal(stored, one._stored)


@pytest.mark.parametrize("state", [None, "instance"])
def test_one_draw_serves_all_parts(state):
    """Of a state that is used up, as in one memory, and without any."""
    X = images()[0]
    states = [np.random.RandomState(3) if state else None for _ in range(2)]
    parts = Limits(cuts=(20, 21)).parts(X, np.full(60, 1 / 60))
    found = []
    for random_state in states:
        settings = pool(n_templates=2, random_state=random_state)
        bounds = bind_parts(settings, parts, Threads(1))
        found.append(bounds[0].extract(range(12)).templates()[0])
        assert all(np.array_equal(b.extract(range(12)).templates()[0], found[-1]) for b in bounds)
    assert np.array_equal(*found) == (state is not None)
    if state:
        alone = np.random.RandomState(3)
        pool(n_templates=2, random_state=alone).bind(X, np.full(60, 1 / 60), Threads(1))
        assert states[0].randint(2**31) == alone.randint(2**31)


@pytest.mark.parametrize("scale", ["max", "std", None])
@pytest.mark.parametrize(
    ("storage", "rounding"), [("uint8", 1 / 510), ("float16", 2**-11), ("float32", 1e-6)]
)
def test_sums_are_those_of_the_explicit_matrix(storage, rounding, scale):
    rng = np.random.default_rng(0)
    X, _ = images(90)
    weight = rng.uniform(0.5, 2.0, 90)
    weight /= weight.sum()
    b = bound({"storage": storage, "scale": scale}, X, weight=weight)
    exact = naive(b._map, X)
    every = range(b.n_atoms)
    if scale == "max":
        np.testing.assert_allclose(exact.max(axis=0) * b.scales(every), 1, rtol=0.02)
    if scale == "std":
        deviation = np.sqrt(weight @ (exact - weight @ exact) ** 2)
        np.testing.assert_allclose(b.scales(every) * deviation, 1, rtol=0.05)
    P = exact * b.scales(every)
    np.testing.assert_allclose(b.columns(list(every)), P, rtol=1e-5, atol=1e-6)
    residual = rng.standard_normal((90, 3)).astype(np.float32)
    largest = rounding * 1.01 * b._unit * b.scales(every) + 1e-6
    slack = largest[:, None] * np.abs(residual).sum(axis=0)
    assert (np.abs(sums(b, residual) - P.T @ residual) <= slack + 1e-5).all()
    squares = weight @ P**2
    assert (
        np.abs(b.squares(weight) - squares) <= 2 * largest * np.sqrt(squares) + largest**2
    ).all()


def test_stored_values_are_near_the_exact_ones():
    X, _ = images()
    b = bound(X=-3.0 * X)  # negative pixels too
    restored = b._stored * (b._unit / 255)
    assert (np.abs(restored - b._map.columns(-3.0 * X)) <= b._unit * (1 + 1e-4) / 510).all()


@pytest.mark.parametrize("wrap", [sparse.csr_matrix, sparse.csc_matrix, np.asfortranarray])
def test_storage_of_the_images_does_not_matter(wrap):
    X, _ = images()
    np.testing.assert_array_equal(bound(X=wrap(X))._stored, bound(X=X)._stored)


def test_atoms_and_numbers():
    b = bound({"template_size": (3, 4)})
    for number in (0, 5, 77, b.n_atoms - 1):
        atom = b.atom(number)
        assert isinstance(atom, Patch)
        assert b.index(atom) == number
        assert b.matching(atom).tolist() == [number]
        assert b.extract([number]).atoms() == [atom]
    for other in (b.atom(0)._replace(template=1000), b.atom(0)._replace(row=0.1), "patch"):
        with pytest.raises(ValueError, match="not an atom"):
            b.index(other)
    corner = [n for n in range(b.n_atoms) if 0 in b.atom(n).reads]
    assert 0 < len(corner) < b.n_atoms
    assert b.matching(0).tolist() == corner


def test_reads_are_the_pixels_that_matter():
    X, _ = images(1)
    map = pool(mask_sigma=1.0).fit(images()[0]).map_
    for atom, number in zip(map.atoms()[:6], range(6), strict=True):
        one = map.take([number])
        assert one.features().tolist() == list(atom.reads)
        changed = X.copy()
        changed[:, np.setdiff1d(np.arange(108), atom.reads)] = 7.0
        np.testing.assert_array_equal(one.columns(changed), one.columns(X))


def test_costs_are_positions_times_size_and_masks():
    b = bound({"template_size": (3, 4), "mask_sigma": (1.0, 2.0)})
    operations = b.operations()
    for n in (0, 7, b.n_atoms - 1):
        atom = b.atom(n)
        assert operations[n] == (atom.mask() > 0).sum() * (atom.size**2 + 1)
        assert b.extract([n]).operations() == operations[n]
        assert b.costs(np.arange(1.0, 109.0))[n] == sum(pixel + 1 for pixel in atom.reads)
    # Positions that masks of one template share are computed once.
    union = (b.atom(0).mask() > 0) | (b.atom(1).mask() > 0)
    masks = (b.atom(0).mask() > 0).sum() + (b.atom(1).mask() > 0).sum()
    assert b.extract([0, 1]).operations() == union.sum() * 9 + masks


def test_an_atom_costs_what_it_adds():
    b = bound({"template_size": (3, 4), "mask_sigma": (1.0, 2.0)})
    rng = np.random.default_rng(0)
    chosen: list[int] = []
    for _ in range(4):
        added, before = b.operations(chosen), b.extract(chosen).operations()
        naive = [b.extract([*chosen, n]).operations() - before for n in range(b.n_atoms)]
        np.testing.assert_array_equal(added, naive)
        assert added.min() > 0
        chosen += rng.choice(b.n_atoms, 3, replace=False).tolist()
    numbers = rng.permutation(chosen).tolist()
    assert Operations(b).of(numbers) == Operations(b).of(chosen)


# -- the estimator ---------------------------------------------------------------------------------


def test_end_to_end(tmp_path, assert_identical, capsys):
    X, y = images(300)
    model = ShareBoostClassifier(6, pool=pool(), checkpoint=tmp_path / "state").fit(X, y)
    assert model.score(*images(300, seed=1)) > 0.95
    # The loss of the path is that of the predictor: training columns are not rounded.
    margins = model.predictor_.scores(X)
    margins = margins - margins[np.arange(300), y][:, None] + (np.arange(3) != y[:, None])
    loss = np.mean(np.log(np.exp(margins).sum(axis=1)))
    np.testing.assert_allclose(loss, model.path_[6].loss, rtol=1e-4)
    # Save and load.
    model.predictor_.save(tmp_path / "model")
    loaded = Predictor.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.scores(X), model.predictor_.scores(X))
    assert loaded.names() == model.predictor_.names()
    assert loaded.cost() == model.predictor_.cost()
    np.testing.assert_allclose(loaded.scores(X)[3], loaded.scores(X[3:4])[0], rtol=1e-12)
    # Resume: the first rounds from the file.
    longer = ShareBoostClassifier(8, pool=pool(), checkpoint=tmp_path / "state").fit(X, y)
    assert_identical(longer, ShareBoostClassifier(8, pool=pool(), n_jobs=1).fit(X, y))
    # Words.
    model.describe()
    shown = capsys.readouterr().out
    assert shown.startswith("6 patches · ")
    assert "near (" in shown
    assert len(set(model.get_feature_names_out())) == 6
    assert model.transform(X).shape == (300, 6)
    importances = model.feature_importances_
    assert importances.shape == (108,)
    np.testing.assert_allclose(importances.sum(), 1)


def test_cheap_patches_first():
    X, y = images(300)
    dear, cheap = (
        ShareBoostClassifier(6, pool=pool(mask_sigma=(1.0, 3.0)), costs=costs).fit(X, y)
        for costs in (None, "operations")
    )
    assert cheap.predictor_.map.operations() < dear.predictor_.map.operations()
    capped = ShareBoostClassifier(
        6, pool=pool(mask_sigma=(1.0, 3.0)), costs="operations", max_cost=800
    ).fit(X, y)
    assert 0 < capped.predictor_.map.operations() == capped.path_.costs[-1] <= 800
    with pytest.raises(ValueError, match="needs a pool whose atoms differ"):
        ShareBoostClassifier(2, costs="operations").fit(X, y)


def test_weights_and_nested_parameters():
    X, y = images(90)
    weight = np.random.default_rng(0).integers(0, 3, 90)
    kept = np.repeat(np.arange(90), weight)
    fixed = pool(n_templates=10_000, template_size=2)  # every window: rows twice change nothing
    one = ShareBoostClassifier(4, pool=clone(fixed), alpha=1e-3).fit(X, y, weight)
    two = ShareBoostClassifier(4, pool=clone(fixed), alpha=1e-3).fit(X[kept], y[kept])
    assert {a[1:] for a in one.atoms_} == {a[1:] for a in two.atoms_}
    np.testing.assert_allclose(one.path_.losses, two.path_.losses, rtol=1e-3)
    model = ShareBoostClassifier(2, pool=pool())
    assert model.get_params()["pool__mask_sigma"] == 1.5
    model.set_params(pool__template_size=4).fit(X, y)
    assert {a.size for a in model.atoms_} == {4}


# -- a transformer ---------------------------------------------------------------------------------


def test_transformer():
    X, y = images(60)
    p = pool().fit(X)
    assert p.transform(X).shape == (60, 72)
    assert p.transform(X).dtype == np.float32
    assert len(set(p.get_feature_names_out())) == 72
    made = make_pipeline(pool(), MinMaxScaler(), ShareBoostClassifier(5)).fit(X, y)
    assert made.score(X, y) > 0.9


def test_one_spoiled_pixel_leaves_the_templates():
    X, _ = load_digits(return_X_y=True)
    X = X[:300]
    settings = {"n_templates": 20, "template_size": 3, "mask_grid": 2, "mask_sigma": 1.5}
    clean = Patches(**settings).fit(X).map_
    X = X.copy()
    X[3, 20] = 1000.0  # of pixels from 0 to 16
    assert len(Patches(**settings).fit(X).map_.size) == len(clean.size) == 20


def test_images_must_be_rows_of_pixels():
    X, y = images()
    model = ShareBoostClassifier(2, pool=pool()).fit(X, y)
    stack = X.reshape(-1, 9, 12)
    with pytest.raises(ValueError, match=r"images.reshape\(len\(images\), -1\)"):
        ShareBoostClassifier(2, pool=pool()).fit(stack, y)
    with pytest.raises(ValueError, match=r"X.reshape\(-1, 108\)"):
        model.predictor_.predict(stack[0])


# -- bad input -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"shape": None}, r"108 features, which is not a square image; give shape"),
        ({"shape": (9, 11)}, r"99 pixels, but X has 108"),
        ({"shape": (9.0, 12)}, "shape must be a positive integer or a pair"),
        ({"template_size": 10}, "10 does not fit into images of 9x12"),
        ({"template_size": 0}, "positive integers"),
        ({"template_size": (3, 3)}, "each size once"),
        ({"mask_grid": 0}, "mask_grid must be a positive integer or a pair"),
        ({"mask_grid": (3, 50)}, "mask_grid 3x50 has more cells than a template"),
        ({"mask_sigma": 0.1}, "at least 0.5"),
        ({"mask_sigma": np.nan}, "at least 0.5"),
        ({"mask_sigma": (2, 2)}, "each width once"),
        ({"n_templates": 0}, "n_templates must be a positive integer"),
        ({"n_templates": True}, "n_templates must be a positive integer"),
        ({"min_contrast": 2}, "min_contrast must be from 0 to 1"),
        ({"storage": "int4"}, "storage must be one of uint8, float16, float32"),
        ({"scale": "min"}, "scale must be"),
    ],
)
def test_settings_that_make_no_sense(settings, message):
    X, y = images()
    with pytest.raises(ValueError, match=message):
        ShareBoostClassifier(2, pool=pool(**settings)).fit(X, y)


def test_flat_images():
    with pytest.raises(ValueError, match="flat"):
        pool().fit(np.ones((5, 108)))


def test_images_of_another_shape_are_refused():
    map = pool().fit(images()[0]).map_
    for columns in (54, 216):
        with pytest.raises(ValueError, match="images have 9x12 pixels"):
            map.columns(np.zeros((2, columns)))


def test_a_map_whose_parts_do_not_fit_is_refused():
    X, _ = images()
    arrays = pool().fit(X).map_.arrays()
    for name, wrong in {
        "shape": np.array([2, 2]),
        "size": np.full(12, 4),
        "values": arrays["values"][:-1],
        "template": np.full(72, 12),
        "centre": np.full((72, 2), 1e3),
        "sigma": np.zeros(72),
        "number": np.arange(3),
    }.items():
        with pytest.raises(ValueError, match="do not fit together"):
            PatchesMap(**{**arrays, name: wrong})


def test_only_windows_leave_a_part():
    """A survey for every size: how windows of one are clustered decides what is drawn next."""
    X, _ = images()
    weight = np.full(60, 1 / 60)
    seen = []

    class Watched(Patches):
        def survey(self, X, weight, place, threads):
            seen.append(super().survey(X, weight, place, threads))
            return seen[-1]

    settings = {"n_templates": 1, "template_size": (3, 2, 4), "mask_grid": 2}
    parts = Limits(cuts=(10, 11)).parts(X, weight)
    bounds = bind_parts(Watched(SHAPE, **settings), parts, Threads(1))
    sizes = [[len(part.windows.pixels) for part in seen[i : i + 3]] for i in (0, 3, 6)]
    assert [sum(size) for size in sizes] == [400] * 3
    assert [part.windows.pixels.shape[1] for part in seen] == [9] * 3 + [4] * 3 + [16] * 3
    one = Patches(SHAPE, **settings).bind(X, weight, Threads(1))
    assert [bounds[1].atom(i) for i in range(12)] == [one.atom(i) for i in range(12)]
    found, expected = (b.extract(range(12)).templates() for b in (bounds[2], one))
    assert all(np.array_equal(*pair) for pair in zip(found, expected, strict=True))
