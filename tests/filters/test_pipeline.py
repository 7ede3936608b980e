"""Pipelines as values, in JSON, on all backends, and traced."""

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pywt
from hypothesis import given, settings
from hypothesis import strategies as st

import undula
from cases import parametrize_some
from undula.filters import (
    METHODS,
    PLACES,
    RULES,
    Blur,
    Contrast,
    FilterStage,
    Gain,
    Laplace,
    Pipeline,
    Shrink,
    Trace,
    Unsharp,
)
from undula.filters.base import Pyramid
from undula.filters.operations import OPERATIONS
from undula.filters.words import parse_stage

IMAGE = pywt.data.camera()[100:228, 100:230].astype(np.uint8)

positive = st.floats(0.01, 50)
levels = st.none() | st.lists(st.integers(1, 5), min_size=1, max_size=3)
keys = st.lists(st.sampled_from(["ad", "da", "dd"]), min_size=1, max_size=3)
thresholds = positive | st.lists(positive, min_size=1, max_size=3)
by_band = st.lists(
    st.fixed_dictionaries({"ad": positive, "da": positive, "dd": positive}), min_size=1, max_size=3
)


@st.composite
def shrinks(draw: Any) -> FilterStage:
    method = draw(st.sampled_from(METHODS))
    return Shrink(
        method,
        draw(st.sampled_from(RULES)),
        draw(thresholds | by_band) if method == "given" else None,
        draw(st.none() | positive),
        draw(positive),
        draw(st.sampled_from(["white", "bands"])),
        draw(levels),
        draw(st.none() | keys),
        draw(st.integers(0, 5)),
        draw(st.floats(1, 4)),
    )


@st.composite
def spatial(draw: Any) -> FilterStage:
    at = draw(st.sampled_from(PLACES))
    keywords = {"at": at}
    if at in ("approximation", "details"):
        keywords["levels"] = draw(levels)
    kind = draw(st.sampled_from(["blur", "unsharp", "laplace"]))
    if kind == "blur":
        return Blur(draw(st.floats(0, 3)), **keywords)
    if kind == "unsharp":
        return Unsharp(draw(st.floats(0.1, 3)), draw(positive), **keywords)
    return Laplace(draw(st.floats(0, 1)), draw(st.sampled_from(["cross", "diagonal"])), **keywords)


stages = (
    shrinks()
    | spatial()
    | st.builds(Gain, thresholds)
    | st.builds(Contrast, st.floats(0, 1), st.floats(1, 9))
)


@given(
    st.sampled_from(["haar", "db2", "bior4.4", "cdf97", "sym5"]),
    st.none() | st.integers(0, 6),
    st.lists(stages, max_size=4),
    st.sampled_from(undula.MODES),
    st.booleans() | st.integers(2, 9),
    st.sampled_from([None, "intensity", "amplitude"]),
    st.none() | positive,
)
@settings(max_examples=200)
def test_json_round_trip(
    wavelet: str,
    level: int | None,
    chosen: list[FilterStage],
    mode: str,
    invariant: bool,
    speckle: str | None,
    looks: float | None,
) -> None:
    looks = looks if speckle else None
    pipeline = Pipeline(wavelet, level, chosen, mode=mode, invariant=invariant, speckle=speckle, looks=looks)
    again = Pipeline.from_json(pipeline.to_json())
    assert again == pipeline
    assert hash(again) == hash(pipeline)
    assert str(again) == str(pipeline)


def test_saving_and_loading(tmp_path: Path) -> None:
    pipeline = Pipeline("cdf97", 3, [Shrink("given", "hard", [30, 20, 10]), "gain"])
    pipeline.save(tmp_path / "pipeline.json")
    assert Pipeline.load(tmp_path / "pipeline.json") == pipeline
    assert "hard" in str(pipeline)
    assert Pipeline("db2", 2, "contrast").stages == (Contrast(),)
    assert Pipeline("db2", 2, [{"stage": "blur", "sigma": 2}]).stages == (Blur(2),)


def test_numbers_of_numpy_are_converted() -> None:
    pipeline = Pipeline(
        "db2",
        np.int64(2),
        [
            Shrink("given", threshold=np.array([3.0, 2.0]), radius=np.int64(1), levels=np.array([1])),
            Shrink(strength=np.float32(0.5), sigma=np.float32(2), levels=(np.int8(2),)),
            Gain(np.array([1, 2.0])),
            Gain(np.float32(1.5)),
            Unsharp(np.float64(1), np.float32(0.5)),
        ],
        invariant=np.int64(1),
        speckle="intensity",
        looks=np.float32(4),
    )
    expected = Pipeline(
        "db2",
        2,
        [
            Shrink("given", threshold=[3.0, 2.0], radius=1, levels=[1]),
            Shrink(strength=0.5, sigma=2.0, levels=[2]),
            Gain([1.0, 2.0]),
            Gain(1.5),
            Unsharp(1.0, 0.5),
        ],
        invariant=1,
        speckle="intensity",
        looks=4.0,
    )
    assert pipeline.to_json() == expected.to_json()
    assert repr(pipeline) == repr(expected)
    assert Pipeline(invariant=np.bool_(True)).invariant is True


def test_modes_by_number_are_stored_by_name() -> None:
    numbered = Pipeline(mode=undula.Modes.periodic)  # type: ignore[arg-type]
    assert numbered == Pipeline(mode="periodic") == Pipeline(mode=" Periodic ")
    assert "periodic" in str(numbered)


def test_printed_pipelines_differ_if_their_options_do() -> None:
    options: list[dict[str, Any]] = [
        {},
        {"color": "channels"},
        {"speckle": "intensity"},
        {"speckle": "intensity", "looks": 3},
        {"speckle": "intensity", "looks": 4.5},
    ]
    assert len({str(Pipeline(**each)) for each in options}) == len(options)


def test_saving_to_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(undula.FileError, match="cannot write"):
        Pipeline().save(tmp_path / "none" / "chain.json")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"counted": 3}, "counted must be boolean"),
        ({"counted": np.ones((3, 3), bool)}, "counted must have the shape of the image"),
        ({"trace": 3}, "trace must be"),
    ],
)
def test_invalid_arguments_of_a_call(options: dict[str, Any], message: str) -> None:
    with pytest.raises(undula.UndulaError, match=message):
        Pipeline("db2", 1, ["shrink"])(IMAGE, **options)


def test_former_names_still_work() -> None:
    with pytest.warns(DeprecationWarning, match="max_gain"):
        assert Contrast(most=2.0) == Contrast(max_gain=2.0)
    with pytest.warns(DeprecationWarning, match="max_gain"):
        assert Contrast(max_gain=2.0).most == 2.0
    with pytest.warns(DeprecationWarning, match="max_gain"):
        result = undula.enhance(IMAGE, most=2.0)
    np.testing.assert_array_equal(result, undula.enhance(IMAGE, max_gain=2.0))
    with pytest.warns(DeprecationWarning, match="FilterStage"):
        assert undula.filters.Stage is FilterStage
    pyramid = Pyramid(operations=OPERATIONS, norms=[], samples=1, ndim=1, offset=0)
    with pytest.warns(DeprecationWarning, match="operations"):
        assert pyramid.arrays is OPERATIONS
    assert Pipeline("db2", 2, [{"stage": "contrast", "most": 2.0}]).stages == (Contrast(max_gain=2.0),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "JSON"),
        ("[]", "object"),
        ('{"wavelet": "db2", "levels": 3}', "level"),
        ('{"wavelet": "dbb2"}', "db2"),
        ('{"stages": [{"stage": "shrinc"}]}', "shrink"),
        ('{"stages": [{"stage": "blur", "sigam": 1}]}', "sigma"),
        ('{"stages": [{"stage": "blur", "sigma": -1}]}', "at least 0"),
        ('{"stages": [{"stage": "blur", "sigma": "1"}]}', "number"),
        ('{"stages": [{"stage": "blur", "at": "everywhere"}]}', "place"),
        ('{"stages": [{"stage": "blur", "levels": [1]}]}', "levels"),
        ('{"stages": [{"stage": "shrink", "levels": [0]}]}', "from 1"),
        ('{"stages": [{"stage": "shrink", "method": "given"}]}', "belong together"),
        ('{"stages": [{"stage": "shrink", "method": "given", "threshold": []}]}', "no level"),
        ('{"stages": [{"stage": "shrink", "method": "given", "threshold": [[["xx", 1]]]}]}', "keys"),
        ('{"stages": [{"stage": "shrink", "radius": 99}]}', "radius"),
        ('{"stages": 3}', "sequence"),
        ('{"undula": 9}', "version"),
        (None, "JSON text, got NoneType"),
        ('{"invariant": "yes"}', "number of levels"),
        ('{"invariant": -1}', "number of levels"),
    ],
)
def test_invalid_json(text: Any, message: str) -> None:
    with pytest.raises(undula.UndulaError, match=message):
        Pipeline.from_json(text)


# --- places ---------------------------------------------------------------------------------------


def test_stages_at_the_four_places() -> None:
    import scipy.ndimage

    x = IMAGE.astype("f8")
    blurred = scipy.ndimage.gaussian_filter(x, 1.5, mode="reflect")
    np.testing.assert_allclose(Pipeline("db2", 2, [Blur(1.5)])(x), blurred)

    def blur(band: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return scipy.ndimage.gaussian_filter(band, 1.5, mode="reflect")

    low, (coarse, fine) = (parts := undula.wavedec2(x, "db2", level=2))[0], parts[1:]
    expected = undula.waverec2([blur(low), coarse, fine], "db2")
    np.testing.assert_allclose(Pipeline("db2", 2, [Blur(1.5, at="last")])(x), expected)
    expected = undula.waverec2([low, coarse, tuple(map(blur, fine))], "db2")
    np.testing.assert_allclose(Pipeline("db2", 2, [Blur(1.5, at="details", levels=[1])])(x), expected)
    middle, finest = undula.dwt2(x, "db2")
    expected = undula.waverec2([*undula.wavedec2(blur(middle), "db2", level=1), finest], "db2")
    np.testing.assert_allclose(Pipeline("db2", 2, [Blur(1.5, at="approximation")])(x), expected[: x.shape[0]])
    for at in PLACES:
        spun = Pipeline("db2", 2, [Blur(1.5, at=at)], invariant=True)(x)
        assert 0.1 < np.abs(spun - x).max()


def test_thresholds_of_levels_and_bands() -> None:
    x = IMAGE.astype("f8")
    coeffs = undula.wavedecn(x, "bior4.4", level=3)
    levels_ = [{"ad": 10.0, "da": 20.0, "dd": 30.0}, 5.0]
    for level, bands in enumerate(reversed(coeffs[1:])):
        for key in bands:
            t = levels_[0][key] if level == 0 else 5.0  # type: ignore[index]
            bands[key] = undula.threshold(bands[key], t, "hard")
    result = Pipeline("bior4.4", 3, [Shrink("given", "hard", levels_)])(x)
    np.testing.assert_allclose(result, undula.waverecn(coeffs, "bior4.4"), atol=1e-10)
    with pytest.raises(undula.ArgumentError, match="no band 'da'"):
        Pipeline("db2", 2, [Shrink("given", threshold=[{"ad": 1}])])(x)
    selected = Pipeline("bior4.4", 3, [Shrink("given", "hard", 1e9, levels=[2], bands=["dd"])])(x)
    coeffs = undula.wavedecn(x, "bior4.4", level=3)
    coeffs[-2]["dd"][...] = 0
    np.testing.assert_allclose(selected, undula.waverecn(coeffs, "bior4.4"), atol=1e-10)


def test_neutral_stages_change_nothing() -> None:
    for invariant in (False, True):
        pipeline = Pipeline("db4", 3, [Gain(1.0)], invariant=invariant)
        np.testing.assert_array_equal(pipeline(IMAGE), IMAGE)
        np.testing.assert_allclose(pipeline(IMAGE.astype("f8")), IMAGE, atol=1e-9)
    before = IMAGE.copy()
    Pipeline("db4", 3, [Shrink("universal")])(IMAGE)
    np.testing.assert_array_equal(before, IMAGE)


def test_frames_are_filtered_in_order() -> None:
    pipeline = Pipeline("db2", 2, [Shrink()])
    source = iter([IMAGE, IMAGE[::-1]])
    frames = pipeline.frames(source)
    np.testing.assert_array_equal(next(frames), pipeline(IMAGE))
    np.testing.assert_array_equal(next(frames), pipeline(IMAGE[::-1]))
    taken = []

    def many() -> Any:
        for number in range(20):
            taken.append(number)
            yield np.roll(IMAGE, number, axis=0)

    result = pipeline.frames(many(), workers=3)
    for number in range(20):
        np.testing.assert_array_equal(next(result), pipeline(np.roll(IMAGE, number, axis=0)))
        assert len(taken) <= number + 5
    with pytest.raises(StopIteration):
        next(result)
    with pytest.raises(undula.ArgumentError, match="workers"):
        next(pipeline.frames([IMAGE], workers=0))


@pytest.mark.parametrize("workers", [1, 3])
def test_frames_may_share_one_buffer(workers: int) -> None:
    pipeline, buffer = Pipeline("db2", 2, [Shrink()]), np.empty_like(IMAGE)

    def frames() -> Any:
        for number in range(8):
            buffer[...] = np.roll(IMAGE, number, axis=0)
            yield buffer

    for number, frame in enumerate(pipeline.frames(frames(), workers=workers)):
        np.testing.assert_array_equal(frame, pipeline(np.roll(IMAGE, number, axis=0)))


def test_closing_frames_does_not_wait() -> None:
    """The garbage collector may close the generator, at any time and in any thread."""
    release = threading.Event()

    class FirstFrameOnly(Pipeline):
        def __call__(self, x: Any, **options: Any) -> Any:
            assert x[0, 0] == 0 or release.wait(60)
            return x

    frames = FirstFrameOnly("db2", 1, []).frames((np.full((8, 8), k) for k in range(4)), workers=2)
    assert next(frames)[0, 0] == 0
    timer = threading.Timer(10, release.set)
    timer.start()
    frames.close()
    timer.cancel()
    assert not release.is_set()
    release.set()


def test_views() -> None:
    pipeline = Pipeline("bior4.4", 3, [Shrink("universal", "hard", strength=4)], invariant=True)
    analysis, filtered, synthesis = pipeline.views(IMAGE)
    assert analysis.shape == filtered.shape == synthesis.shape == IMAGE.shape
    assert analysis.dtype == filtered.dtype == np.uint8
    np.testing.assert_array_equal(synthesis, pipeline(IMAGE))
    # Details are mid-grey where nothing is left, and the approximation is as it was.
    assert (filtered[70:, 70:] == 128).mean() > 0.9 > (analysis[70:, 70:] == 128).mean()
    np.testing.assert_array_equal(analysis[:16, :16], filtered[:16, :16])
    small = IMAGE[::8, ::8]
    assert np.corrcoef(analysis[1:15, 1:15].ravel(), small[1:15, 1:15].ravel())[0, 1] > 0.7
    colored = pipeline.views(np.stack([IMAGE] * 3, axis=-1))
    assert colored.analysis.shape == IMAGE.shape
    assert colored.synthesis.shape == (*IMAGE.shape, 3)
    with pytest.raises(undula.ArgumentError, match="2 axes"):
        pipeline.views(np.zeros((8, 8, 8)))


@pytest.mark.parametrize("invariant", [False, True])
def test_views_leave_the_background_of_scans_out(invariant: bool) -> None:
    scan = np.zeros((96, 96))
    scan[24:72, 20:70] = IMAGE[:48, :50] + 40.0
    pipeline = Pipeline("db2", 2, [Shrink(noise="bands")], speckle="log", invariant=invariant)
    np.testing.assert_array_equal(pipeline.views(scan).synthesis, pipeline(scan))


# --- on all backends ------------------------------------------------------------------------------

EVERY = [
    *(Shrink(method) for method in METHODS if method != "given"),
    *(Shrink("given", rule, 12.0) for rule in RULES),
    Shrink(noise="bands"),
    Gain([2.0, 1.5]),
    Contrast(),
    *(Blur(1.0, at=at) for at in PLACES),
    Unsharp(1.0, 0.5),
    Laplace(0.1),
    Laplace(0.1, "diagonal", at="last"),
]


@pytest.mark.parametrize("stage", EVERY, ids=str)
def test_stages_match_on_devices(stage: FilterStage, target: str) -> None:
    x = IMAGE.astype("f4")
    pipeline = Pipeline("bior4.4", 2, [stage])
    np.testing.assert_allclose(pipeline(x, backend=target), pipeline(x), atol=2e-3)


@pytest.mark.parametrize("work", [undula.denoise, undula.despeckle, undula.sharpen, undula.enhance])
def test_functions_match_on_devices(work: Any, target: str) -> None:
    x = IMAGE + np.float32(1)
    np.testing.assert_allclose(work(x, backend=target), work(x), rtol=1e-4, atol=5e-2)
    color = np.stack([IMAGE, IMAGE[::-1], IMAGE.T[:128, :1] + 0 * IMAGE], axis=-1)
    assert np.abs(work(color, backend=target).astype(int) - work(color)).max() <= 1


@parametrize_some(
    ("rule", "dtype"),
    [(rule, dtype) for rule in (*RULES, "gain") for dtype in ("f4", "f8")],
    [*((rule, "f4") for rule in (*RULES, "gain")), ("soft", "f8"), ("firm", "f8")],
)
def test_plans_apply_rules_in_the_inverse(rule: str, dtype: str, target: str) -> None:
    x = np.random.default_rng(0).standard_normal((2, 150, 133)).astype(dtype)
    limits = np.random.default_rng(1).uniform(0.1, 1, (3, 2, 3)).astype(dtype)
    limits[:, 1] += 1
    plans = [
        undula.Plan(x.shape, "bior4.4", level=3, axes=(1, 2), dtype=dtype, backend=b) for b in ("cpu", target)
    ]
    result = [plan.inverse(plan.forward(x), rule=rule, limits=limits) for plan in plans]
    np.testing.assert_allclose(result[1], result[0], atol=2e-4 if dtype == "f4" else 1e-9)
    coeffs = plans[0].forward(x)
    for level, details in enumerate(reversed(coeffs[1:])):
        for place, band in zip((1, 0, 2), details, strict=True):  # cH has the key "da".
            low, high = limits[level, :, place]
            if rule == "gain":
                band *= low
            elif rule == "firm":
                band[...] = undula.threshold_firm(band, low, high)
            else:
                band[...] = undula.threshold(band, low, rule)
    np.testing.assert_allclose(result[0], plans[0].inverse(coeffs), atol=1e-4 if dtype == "f4" else 1e-9)


def test_rules_need_limits() -> None:
    plan = undula.Plan((16, 16), "db2", level=2)
    coeffs = plan.forward(np.zeros((16, 16)))
    for options, message in (
        ({"rule": "soft"}, "belong together"),
        ({"rule": "softly", "limits": np.zeros((2, 2, 3))}, "soft"),
        ({"rule": "soft", "limits": np.zeros((1, 2, 3))}, r"\(2, 2, 3\)"),
    ):
        with pytest.raises(undula.UndulaError, match=message):
            plan.inverse(coeffs, **options)


@pytest.mark.parametrize("dtype", ["f2", "i1", "u2"])
@pytest.mark.parametrize("shape", [(33,), (1, 20), (5, 6, 7)], ids=str)
def test_blurs_along_one_axis_after_the_other(shape: tuple[int, ...], dtype: str, target: str) -> None:
    import scipy.ndimage

    x = np.random.default_rng(0).integers(10, 100, shape).astype(dtype)
    expected = scipy.ndimage.gaussian_filter(x.astype("f8"), 1.5, mode="reflect")
    blurred = Pipeline("haar", 0, [Blur(1.5)])(x, backend=target)
    np.testing.assert_allclose(blurred, expected, atol=0.06 if dtype == "f2" else 0.51)


@pytest.mark.cuda
@pytest.mark.parametrize("library", ["torch", "cupy", "jax"])
@pytest.mark.parametrize("stage", EVERY, ids=str)
def test_stages_match_on_arrays_of_other_libraries(stage: FilterStage, library: str) -> None:
    xp = pytest.importorskip({"jax": "jax.numpy"}.get(library, library))
    x = IMAGE.astype("f4")
    array = xp.asarray(x, device="cuda") if library == "torch" else xp.asarray(x)
    result = Pipeline("bior4.4", 2, [stage])(array)
    assert type(result) is type(array)
    np.testing.assert_allclose(to_numpy(result), Pipeline("bior4.4", 2, [stage])(x), atol=5e-3)


@pytest.mark.cuda
@pytest.mark.parametrize("library", ["torch", "cupy", "jax"])
@pytest.mark.parametrize("work", [undula.denoise, undula.despeckle, undula.sharpen, undula.enhance])
def test_functions_match_on_arrays_of_other_libraries(work: Any, library: str) -> None:
    xp = pytest.importorskip({"jax": "jax.numpy"}.get(library, library))
    for x in (IMAGE, np.stack([IMAGE, IMAGE[::-1], 0 * IMAGE + 9], axis=-1), IMAGE.astype("f4")):
        array = xp.asarray(x, device="cuda") if library == "torch" else xp.asarray(x)
        for options in ({}, {"sigma": 12.5}) if work is undula.denoise else ({},):
            result = to_numpy(work(array, **options))
            assert result.dtype == x.dtype
            expected, tolerance = work(x, **options).astype("f8"), 1 if x.dtype == np.uint8 else 0.05
            np.testing.assert_allclose(result.astype("f8"), expected, atol=tolerance)


@pytest.mark.cuda
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("library", ["torch", "cupy", "jax"])
def test_noise_maps_match_on_arrays_of_other_libraries(library: str, masked: bool) -> None:
    xp = pytest.importorskip({"jax": "jax.numpy"}.get(library, library))

    def device(x: np.ndarray[Any, Any]) -> Any:
        return xp.asarray(x, device="cuda") if library == "torch" else xp.asarray(x)

    noise = np.linspace(2, 30, IMAGE.size).reshape(IMAGE.shape).astype("f4")
    mask = np.indices(IMAGE.shape).sum(0) % 11 > 0
    for x in (IMAGE, IMAGE.astype("f4")):
        for options in ({"sigma": noise}, {"regions": 16}):
            theirs = {name: device(value) if name == "sigma" else value for name, value in options.items()}
            if masked:
                options, theirs = {**options, "mask": mask}, {**theirs, "mask": device(mask)}
            result = undula.denoise(device(x), **theirs)
            assert type(result) is type(device(x))
            expected = undula.denoise(x, **options).astype("f8")
            tolerance = 1 if x.dtype == np.uint8 else 0.05
            np.testing.assert_allclose(to_numpy(result).astype("f8"), expected, atol=tolerance)


@pytest.mark.cuda
@pytest.mark.parametrize("library", ["torch", "cupy", "jax"])
def test_thresholds_match_on_arrays_of_other_libraries(library: str) -> None:
    xp = pytest.importorskip({"jax": "jax.numpy"}.get(library, library))
    x = np.random.default_rng(0).standard_normal((20, 30)).astype("f4")
    array = xp.asarray(x, device="cuda") if library == "torch" else xp.asarray(x)
    for mode in ("soft", "hard", "garrote", "greater", "less"):
        result = to_numpy(undula.threshold(array, 0.5, mode, 0.25))
        np.testing.assert_allclose(result, undula.threshold(x, 0.5, mode, 0.25), atol=1e-6)
    np.testing.assert_allclose(
        to_numpy(undula.threshold_firm(array, 0.5, 1)), undula.threshold_firm(x, 0.5, 1), atol=1e-6
    )


def to_numpy(x: Any) -> np.ndarray[Any, Any]:
    return np.asarray(x.get() if hasattr(x, "get") else x.cpu() if hasattr(x, "cpu") else x)


def test_traces_record_times_coefficients_and_thresholds() -> None:
    trace = Trace(keep=True)
    pipeline = Pipeline("bior4.4", 2, [Shrink("given", "hard", [30, 20]), Gain(2.0)])
    result = pipeline(IMAGE, trace=trace)
    np.testing.assert_array_equal(result, pipeline(IMAGE))
    assert set(trace.seconds) == {"forward", "filter", "inverse", "transfer"}
    assert all(value > 0 for name, value in trace.seconds.items() if name != "transfer")
    assert trace.seconds["transfer"] == 0
    coeffs = undula.wavedecn(IMAGE.astype(np.float32), "bior4.4", level=2)
    assert trace.before is not None
    assert trace.after is not None
    for (_, before), (_, after) in ((trace.before, trace.after),):
        for level, key in ((0, "ad"), (1, "dd")):
            np.testing.assert_allclose(before[level][key][0], coeffs[-1 - level][key], atol=1e-3)
            expected = 2 * undula.threshold(coeffs[-1 - level][key], (30, 20)[level], "hard")
            np.testing.assert_allclose(after[level][key][0], expected, atol=1e-3)
    assert {place: low.tolist() for place, low in trace.limits[0].items()} == {
        (level, key): [(30.0, 20.0)[level]] for level in (0, 1) for key in ("ad", "da", "dd")
    }
    assert 1 not in trace.limits


@pytest.mark.parametrize("choice", [{"strategy": "rowcolumn"}, {"scheme": "monolithic*"}], ids=str)
@pytest.mark.parametrize(
    ("stages", "invariant"),
    [
        ([Shrink("bayes")], False),
        ([Blur(1.0, at="approximation"), Shrink("bayes")], False),
        ([Shrink("bayes")], 1),
    ],
    ids=["levels at once", "level by level", "all shifts"],
)
def test_strategies_and_schemes_do_not_change_results(
    target: str, choice: dict[str, str], stages: list[FilterStage], invariant: int
) -> None:
    pipeline = Pipeline("cdf97", 2, stages, invariant=invariant)
    result = pipeline(IMAGE.astype(np.float32), backend=f"{target}:0", **choice)
    np.testing.assert_allclose(result, pipeline(IMAGE.astype(np.float32)), atol=2e-2)
    trace = Trace()
    pipeline(IMAGE, backend=target, trace=trace, **choice)
    assert all(value > 0 for value in trace.seconds.values())
    with pytest.raises(undula.ArgumentError, match="is for backends"):
        pipeline(IMAGE, **choice)
    for name in choice:
        with pytest.raises(undula.UnknownNameError, match=f"unknown {name}"):
            pipeline(IMAGE, backend=target, **{name: "nonsense"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("contrast:0.1:2:3:4", "contrast takes at most 3"),
        ("bayes:0.5:7", "bayes takes at most 1"),
        ("diagonal:1:2", "diagonal takes at most 1"),
        ("unsharp:1:2:3", "unsharp takes at most 2"),
        ("soft:20@last", "no place"),
        ("contrast@image", "no place"),
        ("blur:2@lats", "'lats'"),
        ("blr:2", "'blur'"),
    ],
)
def test_invalid_words(text: str, message: str) -> None:
    with pytest.raises(undula.ArgumentError, match=message):
        parse_stage(text)


def test_integers_of_64_bits_are_filtered_in_float64() -> None:
    """Integers up to 2^53 stay exact; larger ones are rounded."""
    x = np.array([[2**53 - 1, 2**53 + 1, 2**62 + 1, -(2**53)]] * 4)
    result = Pipeline("haar", 0)(x)
    assert result.dtype == x.dtype
    np.testing.assert_array_equal(result, x.astype(np.float64).astype(np.int64))
