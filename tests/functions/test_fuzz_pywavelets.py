"""Random calls, compared with those of PyWavelets; ``tools/fuzz_pywavelets.py`` runs as many as one likes."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

import undula
from cases import THOROUGH

_spec = importlib.util.spec_from_file_location(
    "fuzz_pywavelets", Path(__file__).parents[2] / "tools" / "fuzz_pywavelets.py"
)
assert _spec is not None
assert _spec.loader is not None
fuzz = sys.modules["fuzz_pywavelets"] = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(fuzz)


@pytest.mark.thorough
def test_calls_agree_with_pywavelets() -> None:
    calls, meant, wrong = fuzz.run(20000 if THOROUGH else 400, seed=2026)
    assert not wrong, "\n".join(wrong)
    assert set(calls) == {name for name in fuzz.CASES if hasattr(undula, name)}
    assert 0 < sum(meant.values()) < 0.4 * sum(calls.values())


def test_differences_are_seen() -> None:
    x = np.ones(4)
    assert not list(fuzz.differences([x, {"d": x}], [x, {"d": x}], 1.0))
    for other in (x[:3], x.astype("f4"), 1.001 * x, 1.0):
        assert list(fuzz.differences([x, {"d": other}], [x, {"d": x}], 1.0))
    assert list(fuzz.differences((x,), [x], 1.0))
    assert list(fuzz.differences({"a": x}, {"d": x}, 1.0))
    raised, returned = fuzz.Outcome(error=undula.ArgumentError("no")), fuzz.Outcome(x)
    arguments = ((x, "haar"), {})
    assert fuzz.verdict("dwt", arguments, raised, returned)
    assert fuzz.verdict("dwt", arguments, returned, raised)
    assert fuzz.verdict("dwt", arguments, fuzz.Outcome(error=ValueError("no")), raised)
    assert not fuzz.verdict("dwt", arguments, raised, fuzz.Outcome(error=ValueError("no")))
    assert not fuzz.why("dwt", arguments, raised, returned)
