"""Fewer combinations of arguments are enough as long as any two values meet."""

from itertools import combinations, product

import pytest

import cases


@pytest.mark.parametrize("sizes", [(4, 9), (5, 3, 2), (2, 3, 4), (9, 10, 4, 2), (3, 3, 3, 3), (7, 1, 2)])
def test_any_two_values_meet(sizes: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases, "THOROUGH", False)
    monkeypatch.setattr(cases, "_left_out", [])
    axes = [[f"{axis}-{k}" for k in range(size)] for axis, size in enumerate(sizes)]
    chosen = cases.pairwise(*axes)
    complete = list(product(*axes))
    assert len(set(chosen)) == len(chosen) == len(complete) - cases.left_out()
    for row in chosen:
        assert row in complete
    for first, second in combinations(range(len(axes)), 2):
        met = {(row[first], row[second]) for row in chosen}
        assert met == set(product(axes[first], axes[second]))
    *_, less, most = sorted(sizes)
    assert less * most <= len(chosen) <= 2 * less * most


def test_nothing_is_left_out_when_thorough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases, "THOROUGH", True)
    assert cases.pairwise("ab", [1, 2], "xyz") == list(product("ab", [1, 2], "xyz"))
    assert cases.some([1, 2, 3], [2]) == [1, 2, 3]


def test_values_that_do_not_exist_are_not_chosen() -> None:
    with pytest.raises(AssertionError, match="does not exist"):
        cases.some(["haar", "db2"], ["db3"])
