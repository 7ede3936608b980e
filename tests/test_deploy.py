"""Files for clusters: what they name exists, and the job of the containers computes what it says."""

import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import undula

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"

distributed = pytest.importorskip("distributed", reason="Dask's scheduler is not installed")
zarr = pytest.importorskip("zarr", reason="Zarr is not installed")
yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")


def test_services_name_what_exists() -> None:
    compose = yaml.safe_load((DEPLOY / "docker-compose.yml").read_text(encoding="utf-8"))
    services = compose["services"]
    assert set(services) == {"scheduler", "worker", "minio", "job"}
    build = services["scheduler"]["build"]
    context = (DEPLOY / build["context"]).resolve()
    assert context == ROOT
    copied = re.findall(r"^COPY (.+) \S+$", (context / build["dockerfile"]).read_text(encoding="utf-8"), re.M)
    missing = [name for line in copied for name in line.split() if not (context / name).exists()]
    assert copied
    assert not missing
    for service in services.values():
        for name in service.get("depends_on", {}):
            assert name in services
        for volume in service.get("volumes", []):
            assert volume.split(":")[0] in compose["volumes"]


def test_kubernetes_service_selects_its_scheduler() -> None:
    cluster = yaml.safe_load((DEPLOY / "kubernetes.yml").read_text(encoding="utf-8"))
    scheduler = cluster["spec"]["scheduler"]
    assert scheduler["service"]["selector"]["dask.org/cluster-name"] == cluster["metadata"]["name"]
    ports = {port["name"] for port in scheduler["spec"]["containers"][0]["ports"]}
    assert {port["targetPort"] for port in scheduler["service"]["ports"]} == ports


def test_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    spec = importlib.util.spec_from_file_location("deploy_job", DEPLOY / "job.py")
    assert spec is not None
    assert spec.loader is not None
    job: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(job)
    monkeypatch.setattr(job, "SHAPE", (32, 96, 64))
    monkeypatch.setattr(job, "CHUNKS", (16, 48, 64))
    bucket = f"{tmp_path}/scans"
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0"
    ) as cluster:
        monkeypatch.setattr(sys, "argv", ["job.py", cluster.scheduler_address, bucket])
        assert job.main() == 0
        assert capsys.readouterr().out.count(" MB") == 3
        assert job.main() == 0  # All is complete.
        assert not capsys.readouterr().out
    undula.keep_memory(None)  # The worker in this process has limited it.
    counts = zarr.open_array(f"{tmp_path}/scans/volume.zarr/counts")[...]
    flat = 2 * np.sqrt(counts.astype("float32") + np.float32(0.375))
    clean = (undula.denoise(flat, sigma=1.0, level=2, invariant=0) / 2) ** 2 - np.float32(0.375)
    np.testing.assert_array_equal(zarr.open_array(f"{tmp_path}/scans/clean.zarr/samples")[...], clean)
    low, coarse, fine = undula.lwtn(clean, "cdf97", level=2)
    group = zarr.open_group(f"{tmp_path}/scans/coefficients.zarr", mode="r")
    np.testing.assert_array_equal(group["low"][...], low)
    np.testing.assert_array_equal(group["level2-dda"][...], coarse["dda"])
    np.testing.assert_array_equal(group["level1-ddd"][...], fine["ddd"])
