"""Experiments: all that was asked for is there, they run, and what they write is whole."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import undula
from undula.cli import main
from undula.experiments import Chart, Outcome, Table, chosen, earlier, experiments, load, report, run, save
from undula.experiments.base import Experiment
from undula.experiments.bench import Bench, pictures
from undula.experiments.charts import svg
from undula.experiments.published import WORKS, work
from undula.experiments.report import TITLES, number, page

ROOT = Path(__file__).parents[2]
WANTED = {
    "video": "table-6.3 table-6.4 table-6.5 table-7.1 figure-5.14 figure-5.15 figure-6.1 figure-6.2"
    " figure-6.3 figure-6.4 figure-6.5 figure-6.6 figure-C.1",
    "ultrasound": "table-4.2 table-4.3 table-4.4 table-4.5 table-4.6 table-4.7 table-4.11 figure-4.1"
    " figure-4.2 figure-4.3 figure-4.4 figure-4.5 figure-4.6",
    "colour": "timing-rgba timing-yuv rmse rmsy rmse-yuv",
    "schemes": "table-2 table-3 table-4 table-6 figure-17 figure-18 figure-19",
    "tiles": "figure-7 figure-8 figure-9 figure-10 figure-11 figure-14",
    "peers": "transforms denoising",
}


def test_every_table_and_figure_has_its_experiment() -> None:
    names = [f"{own}/{item}" for own, items in WANTED.items() for item in items.split()]
    assert sorted(names) == sorted(experiments())


@pytest.mark.parametrize("name", WORKS)
def test_published_tables_are_whole(name: str) -> None:
    own = work(name)
    assert own.method.strip()
    assert own.hardware
    for item in own.items.values():
        assert item.what
        assert all(len(row) == len(item.columns) for row in item.rows), item.id


def test_published_numbers_agree_with_each_other() -> None:
    """Speed-ups that the report prints are quotients of the times that it prints."""
    for row in work("video").items["table-6.3"].rows[:-1]:
        colour, lifting, filtering, faster, less = row[2:]
        assert colour / lifting == pytest.approx(faster, rel=0.005)
        assert colour / filtering == pytest.approx(less, rel=0.005)
    rates, frames = (work("ultrasound").items[f"table-4.{k}"] for k in (2, 4))
    for n, rate, fps in zip(
        (128, 256, 512, 1024), rates.row("gpu-mono-32"), frames.row("gpu-mono-32"), strict=False
    ):
        assert n * n * fps / 1e6 == pytest.approx(rate, rel=0.01)


@pytest.mark.parametrize("name", ["schemes/table-2", "schemes/table-3", "schemes/table-4"])
def test_counts_are_equal_to_the_printed_ones(name: str) -> None:
    outcome = experiments()[name].measure(Bench("cpu", "CPU", quick=True))
    assert outcome is not None
    verdicts = [row[-1] for row in outcome.tables[0].rows]
    assert set(verdicts) <= {"equal", "not printed"}
    assert verdicts.count("equal") == len(work("schemes").items[name.partition("/")[2]].rows)


@pytest.fixture(scope="module")
def results(opencl: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small run on two devices, kept as the command line keeps it."""
    path = tmp_path_factory.mktemp("run") / "results.json"
    quick = [*chosen(["schemes/table-2", "ultrasound/table-4.11", "ultrasound/figure-4.5"])]
    told: list[str] = []
    found = run(
        quick,
        ["cpu", "opencl:0"],
        True,
        lambda name, done, total: told.append(name),
        lambda measured: save(measured, path),
    )
    assert len(told) == 2 * len(quick) + 1
    save(found, path)
    return path


def test_results_tell_machine_date_and_versions(results: Path) -> None:
    found = load(results)
    assert found["undula"] == undula.__version__
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", found["date"])
    assert {"python", "numpy"} <= set(found["versions"])
    assert list(found["devices"]) == ["cpu", "opencl:0"]
    assert set(found["results"]["ultrasound/table-4.11"]) == {"cpu", "opencl:0"}
    assert list(found["results"]["ultrasound/figure-4.5"]) == ["cpu"]
    line = found["results"]["ultrasound/table-4.11"]["cpu"]["model"][0]
    assert line["measured"] > 0
    assert line["predicted"] == pytest.approx(
        undula.Plan((512, 512), "cdf97", level=3, dtype="float32").predict().seconds, rel=0.5
    )


def test_a_second_run_keeps_what_the_first_one_found(results: Path) -> None:
    before = load(results)["results"]["ultrasound/table-4.11"]
    spent = load(results)["seconds"]
    found = run(chosen(["schemes/table-3"]), ["cpu"], True)
    save(found, results, earlier(results, quick=True))
    assert load(results)["seconds"] == pytest.approx(spent + found["seconds"], rel=0.01)
    after = load(results)["results"]
    assert after["ultrasound/table-4.11"] == before
    assert list(after) == [name for name in experiments() if name in after]
    assert "schemes/table-3" in after


def test_report_is_one_file_with_everything(results: Path) -> None:
    text = report(results)
    assert not re.search(r'(?:src|href)="(?!#|data:)', text)
    for words in ("Barriers and operations", "as published", "predicted ms", "Checks of the results"):
        assert words in text
    assert 'src="data:image/png;base64,' in text
    assert "3.15" in text  # (a number of Nielsen's)


def test_values_survive_json() -> None:
    one = Outcome(
        [Table("t", ["a", "b"], [["x", 1.5]])],
        [Chart("c", "x", "y", {"s": [(1, 2.0)]}, {"their": [("a", 3.0)]}, mark=("m", 4.0))],
        findings=["f"],
    )
    assert Outcome.from_dict(json.loads(json.dumps(one.to_dict()))) == one


@pytest.mark.parametrize("kind", ["lines", "bars", "steps"])
def test_charts_are_drawn_in_the_colour_of_the_page(kind: str) -> None:
    x: list[object] = ["a", "b", "c"] if kind == "bars" else [1, 2, 4]
    chart = Chart("t", "x", "y", {"s": [(k, float(j + 1)) for j, k in enumerate(x)]}, kind=kind)  # type: ignore[misc]
    text = svg(chart)
    assert text == svg(chart)
    assert text.startswith("<svg ")
    assert "currentColor" in text
    assert "#010203" not in text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1234.5, "1,234"),
        (0.0, "0"),
        (0.00012, "0.00012"),
        (3.14159, "3.14"),
        (99.96, "100"),
        (7, "7"),
        (20000, "20,000"),
        ("–", "–"),
    ],
)
def test_numbers_have_as_many_digits_as_mean_something(value: object, text: str) -> None:
    assert number(value) == text


def test_a_page_says_what_is_not_measured_yet() -> None:
    blocks = page(experiments()["tiles/figure-7"], [])
    assert ("text", "Not measured yet; run `undula experiments tiles/figure-7`.") in blocks.parts


def test_a_wrong_result_is_not_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums that differ end a run."""
    from undula.experiments import bench as module

    bench = Bench("cpu", "CPU", quick=True)
    right = module._details
    monkeypatch.setattr(module, "_details", lambda *args: (1.01 * right(*args)[0], "somebody who is wrong"))
    with pytest.raises(AssertionError, match="sums"):
        bench.times("64²", bench.plan((64, 64), "cdf97", 1, dtype="float32"))


def test_images_differ_and_are_the_same_every_time() -> None:
    one, two, three = pictures((2, 30, 40))
    assert one.shape == (2, 30, 40)
    assert (one != two).any()
    assert (two != three).any()
    assert (one[0] != one[1]).any()


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["experiments", "schemes/table-3", "-d", "cpu", "--quick", "-o", str(tmp_path), "--json"]) == 0
    )
    told = json.loads(capsys.readouterr().out)
    assert "9 of 9 rows" in Path(told["report"]).read_text(encoding="utf-8")
    assert main(["experiments", "--list", "colour"]) == 0
    assert "colour/rmsy" in capsys.readouterr().out
    assert main(["experiments", "colours"]) == 1
    assert "did you mean" in capsys.readouterr().err.replace("\n", " ")


def test_what_does_not_run_on_a_device_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    common = ["-d", "cpu", "--quick", "-o", str(tmp_path)]
    assert main(["experiments", "schemes/table-6", *common]) == 1
    assert "none of these experiments runs on cpu" in capsys.readouterr().err
    assert main(["experiments", "schemes/table-6", "schemes/table-4", *common, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [one.partition(" ")[0] for one in told["skipped"]] == ["schemes/table-6"]
    assert list(told["findings"]) == ["schemes/table-4"]


@pytest.mark.parametrize(
    "text", ['{"bad', "[]", '{"results": [3]}', '{"results": {"a": 1}, "devices": {}, "ceilings": {}}']
)
def test_damaged_results_are_noticed_before_anything_is_measured(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "results.json").write_text(text)
    assert main(["experiments", "schemes/table-4", "-d", "cpu", "-o", str(tmp_path)]) == 1
    assert "is damaged" in capsys.readouterr().err.replace("\n", " ")
    assert (tmp_path / "results.json").read_text() == text


def test_runs_of_different_kinds_are_not_mixed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    common = ["experiments", "schemes/table-4", "-d", "cpu", "-o", str(tmp_path)]
    assert main([*common, "--quick", "-q"]) == 0
    assert main(common) == 1
    assert "quick True, now False" in capsys.readouterr().err.replace("\n", " ")


def test_an_interrupt_leaves_a_report_of_what_was_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(bench: Bench) -> None:
        raise KeyboardInterrupt

    one = experiments()["schemes/table-4"]
    changed = {**experiments(), one.name: Experiment(one.work, one.item, one.title, interrupted, one.differs)}
    monkeypatch.setattr("undula.experiments.base.experiments", lambda: changed)
    wanted = ["schemes/table-3", "schemes/table-4"]
    assert main(["experiments", *wanted, "-d", "cpu", "--quick", "-o", str(tmp_path), "-q"]) == 130
    assert "1 result(s) saved" in capsys.readouterr().err.replace("\n", " ")
    assert "9 of 9 rows" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_pages_are_current() -> None:
    subprocess.run([sys.executable, str(ROOT / "tools" / "make_experiments.py"), "--check"], check=True)


def test_an_experiment_says_what_cannot_be_compared() -> None:
    for one in experiments().values():
        assert isinstance(one, Experiment)
        assert len(one.differs) > 60, one.name


def test_what_fails_on_a_device_stops_nothing_else() -> None:
    def fails(bench: Bench) -> Outcome:
        raise undula.KernelError("forward", "int x\nint y", "no double\nprecision")

    broken = Experiment("schemes", "broken", "A kernel that does not compile", fails, "")
    measured = run([broken, *chosen(["schemes/table-2"])], ["cpu"], quick=True)
    assert list(measured["results"]) == ["schemes/table-2"]
    (skipped,) = measured["skipped"]
    assert re.fullmatch(r"schemes/broken on CPU, .* \(its compiler fails: no double precision\)", skipped)
    with pytest.raises(undula.DeviceError, match="'opencl:99' cannot be used: "):
        run([broken], ["cpu", "opencl:99"], quick=True)


def test_no_page_claims_that_all_is_reproduced_everywhere() -> None:
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")]
    claim = re.compile(
        r"(?:every|each|all)\b[^.|]{0,40}tables?\b|publications[^.|]{0,20} on (?:every|all|each)\b"
    )
    for path in [*pages, *(ROOT / "src" / "undula" / "experiments").glob("*.py")]:
        text = " ".join(path.read_text(encoding="utf-8").split())
        for sentence in re.findall(r"[^.]*publications[^.]*", text):
            assert not claim.search(sentence), f"{path}: {sentence}"
    index = (ROOT / "docs" / "experiments" / "index.md").read_text(encoding="utf-8")
    for name in WORKS:
        counted = [e for e in experiments().values() if e.work == name]
        (row,) = re.findall(rf"^\| {re.escape(TITLES[name])} \| (\d+) \| (\d+) \| (\d+) \|", index, re.M)
        assert int(row[0]) == len(counted)
        assert int(row[1]) <= sum(e.on != "devices" for e in counted)
        assert int(row[2]) <= sum(e.on != "cpu" for e in counted)
