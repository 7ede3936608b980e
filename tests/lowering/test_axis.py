"""The operator along an axis: its inverse, adjoint, undecimated form and windows, against PyWavelets."""

from dataclasses import replace

import numpy as np
import pytest
import pywt
from hypothesis import given
from hypothesis import strategies as st

import undula
from undula.lowering.axis import AxisOp
from undula.lowering.borders import LWT_MODES, MODES
from undula.lowering.choose import LiftingLimits, axis_op

NAMES = ("haar", "db2", "db4", "bior4.4", "bior2.2", "rbio3.1", "coif1", "sym5")
FEW, MANY = LiftingLimits(4, 12, neighbours=True), LiftingLimits(12, 24, neighbours=False)
DOUBLE = np.dtype(np.float64)

wavelets = st.sampled_from(NAMES).map(undula.Wavelet)
lengths = st.integers(1, 30)
dwt_ops = st.builds(AxisOp, wavelets, st.sampled_from(MODES), lengths)
lwt_ops = st.builds(
    lambda wavelet, mode, length: axis_op(wavelet, mode, length, True, DOUBLE, FEW).inverse().inverse(),
    wavelets,
    st.sampled_from(LWT_MODES),
    lengths,
)
swt_ops = st.builds(AxisOp.undecimated, dwt_ops, st.integers(1, 3))
all_ops = st.one_of(dwt_ops, lwt_ops, swt_ops)


def by_filters(op: AxisOp) -> AxisOp:
    """NumPy computes an operator by filters, whatever engines prefer."""
    return op if op.method == "steps" else op.filtered()


@given(dwt_ops)
def test_analysis_is_that_of_pywavelets(op: AxisOp) -> None:
    x = np.random.default_rng(op.length).standard_normal((2, op.length))
    for mine, theirs in zip(op(x), pywt.dwt(x, op.wavelet.name, op.mode), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-9)


@given(lwt_ops)
def test_lwt_is_that_of_the_engine(op: AxisOp) -> None:
    x = np.random.default_rng(op.length).standard_normal(op.length)
    for mine, theirs in zip(op(x), undula.lwt(x, op.wavelet, mode=op.mode), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-9)


@given(all_ops)
def test_inverse_undoes_an_operator(op: AxisOp) -> None:
    x = np.random.default_rng(op.length).standard_normal(op.length)
    (again,) = op.inverse()(*op(x))
    np.testing.assert_allclose(again, x, atol=1e-8)


@given(all_ops, st.booleans())
def test_adjoint_is_the_transposed_matrix(op: AxisOp, back: bool) -> None:
    op = replace(op, back=back)
    np.testing.assert_allclose(op.adjoint().matrix(), op.matrix().T, atol=1e-12)
    assert op.adjoint().adjoint() == by_filters(op)
    assert op.adjoint().inverse() == op.inverse().adjoint()


@given(wavelets, st.integers(1, 6), st.integers(0, 2))
def test_undecimated_operator_is_the_stationary_transform(
    wavelet: undula.Wavelet, count: int, level: int
) -> None:
    length = count * 2 ** (level + 1)
    x = np.random.default_rng(length).standard_normal(length)
    op = AxisOp(wavelet, "periodization", length).undecimated(2**level)
    (theirs,) = pywt.swt(x, wavelet.name, 1, start_level=level)
    for mine, band in zip(op(x), theirs, strict=True):
        np.testing.assert_allclose(mine, band, atol=1e-9)


@given(st.one_of(dwt_ops, swt_ops), st.booleans(), st.data())
def test_windows_read_what_their_results_depend_on(op: AxisOp, back: bool, data: st.DataObject) -> None:
    op = replace(op, back=back)
    sizes = op.counts if back else (op.length,)
    results = op.length if back else op.counts[0]
    start = data.draw(st.integers(0, results - 1))
    window = op.window(start, data.draw(st.integers(start + 1, results)))
    matrix = op.matrix()
    rows = (
        [matrix[start : window.stop]] if back else [matrix[k + start : k + window.stop] for k in (0, results)]
    )
    used = np.flatnonzero(np.abs(np.concatenate(rows)).max(axis=0) > 1e-14)
    begins = np.cumsum([0, *sizes])
    sources = [
        range(begins[n] + a, begins[n] + b) for n, parts in enumerate(window.sources) for a, b in parts
    ]
    assert set(used.tolist()) <= {k for part in sources for k in part}
    for (begin, end), size in zip(window.ranges, sizes, strict=True):
        if 0 <= begin and end <= size:  # Away from the ends, nothing is read in vain.
            assert end - begin <= 2 * (window.stop - start) + op.wavelet.dec_len * op.dilation + 1


def test_windows_of_periodic_lines_read_both_ends() -> None:
    op = AxisOp(undula.Wavelet("db2"), "periodic", 100)
    assert op.window(0, 2).sources == (((0, 4), (98, 100)),)
    assert op.window(10, 12).sources == (((18, 24),),)


@pytest.mark.parametrize("limits", [FEW, MANY], ids=["few", "many"])
@given(wavelet=wavelets, mode=st.sampled_from(MODES), length=st.integers(2, 40))
def test_methods_are_the_same_operator(
    limits: LiftingLimits, wavelet: undula.Wavelet, mode: str, length: int
) -> None:
    op = axis_op(wavelet, mode, length, False, DOUBLE, limits)
    x = np.random.default_rng(length).standard_normal(length)
    lifted = _polyphase(op, x)
    for mine, theirs in zip(lifted, pywt.dwt(x, wavelet.name, mode), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-8)


def _polyphase(op: AxisOp, x: np.ndarray) -> list[np.ndarray]:
    """Run the polyphase form on a line that is extended far enough."""
    margin = 4 * (sum(op.reach) + abs(op.first) + 4)
    index, factors = op.beyond(np.arange(-margin, op.length + margin + op.length % 2))
    line = factors[:, 0] * x[index[:, 0]]
    for number in (1, 2):
        line += factors[:, number] * (x[index[:, 2 * number - 1]] - x[index[:, 2 * number]])
    parts = [line[0::2].copy(), line[1::2].copy()]
    for step in op.steps:
        for tap in step.taps:
            parts[step.target] += tap.factor * np.roll(parts[tap.component], -tap.offset)
    if op.filters:
        parts = [
            sum(tap.factor * np.roll(parts[tap.component], -tap.offset) for tap in taps)
            for taps in op.filters
        ]
    begin = margin // 2
    return [
        way.scale * parts[way.component][begin + way.shift :][:count]
        for way, count in zip(op.exits, op.counts, strict=True)
    ]


def test_operators_refuse_what_they_cannot_do() -> None:
    op = AxisOp(undula.Wavelet("haar"), "symmetric", 8)
    with pytest.raises(undula.ArgumentError, match="not for an adjoint"):
        op.adjoint().window(0, 1)
    with pytest.raises(undula.ArgumentError, match="start < stop, got 3 and 3"):
        op.window(3, 3)
    with pytest.raises(undula.ArgumentError, match="not linear"):
        axis_op(undula.Wavelet("haar"), "symmetric", 8, True, np.dtype(np.int32), FEW)(np.zeros(8))
