"""Arrays of Zarr 3 and Zarr 2 through the codec, alone and beside nd-image-codecs."""

import json
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numcodecs
import numpy as np
import pytest
import zarr
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, ShardingCodec, TransposeCodec, ZstdCodec
from zarr.registry import get_codec_class

from undula.codecs import NdLift
from undula.codecs.zarr2 import NdLiftFilter, ZigZagFilter
from undula.codecs.zarr3 import CoefficientBytesCodec, NdLiftCodec, ZigZagCodec
from undula.codecs.zigzag import folded, unfolded
from undula.errors import UndulaError

ROOT = Path(__file__).parents[2]
DTYPES = "uint8 int8 uint16 int16 uint32 int32 uint64 int64".split()
CHOSEN = "undula.codecs.zarr3.NdLiftCodec"
LIFTING: list[dict[str, Any]] = [
    {"axis": "z", "dimension": 0, "kind": "lift53", "levels": 2, "group": 0},
    {"axis": "y", "dimension": 1, "kind": "haar", "levels": 1, "group": 4},
    {"axis": "x", "dimension": 2, "kind": "delta", "levels": 0, "group": 0},
]


@pytest.fixture(autouse=True)
def _chosen() -> Any:
    """Choose this implementation, as users do where there are two."""
    with zarr.config.set({"codecs.nd_lift": CHOSEN}):
        yield


def volume(dtype: str = "uint16", shape: tuple[int, ...] = (10, 17, 23)) -> Any:
    rng = np.random.default_rng(0)
    ramp = np.add.outer(np.arange(shape[0]), np.add.outer(np.arange(shape[1]), np.arange(shape[2])))
    return (ramp % 50 + rng.integers(0, 50, shape)).astype(dtype)


def stored(store: dict[str, Any], x: Any, **options: Any) -> Any:
    memory = zarr.storage.MemoryStore(store)
    options = {"filters": [NdLiftCodec(transforms=LIFTING)], "chunks": (8, 8, 8), **options}
    array = zarr.create_array(memory, shape=x.shape, dtype=x.dtype, **options)
    array[...] = x
    return zarr.open_array(memory, mode="r")


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_come_back(dtype: str) -> None:
    x = volume(dtype)
    store: dict[str, Any] = {}
    array = stored(store, x, compressors=ZstdCodec(level=1))
    np.testing.assert_array_equal(array[...], x)
    np.testing.assert_array_equal(array[3:9, 5, ::2], x[3:9, 5, ::2])
    codecs = json.loads(store["zarr.json"].to_bytes())["codecs"]
    assert codecs[0] == {"name": "nd_lift", "configuration": {"version": "0.1", "transforms": LIFTING}}
    assert [codec["name"] for codec in codecs] == ["nd_lift", "bytes", "zstd"]


def test_what_is_stored_are_the_coefficients() -> None:
    x = volume()[:8, :8, :8].copy()
    store: dict[str, Any] = {}
    stored(store, x, compressors=None)
    assert store["c/0/0/0"].to_bytes() == NdLift(LIFTING).encode(x).astype("<i4").tobytes()


def test_the_byte_order_of_coefficients_of_bytes_is_stored() -> None:
    x = volume("uint8", (8, 8, 8))
    store: dict[str, Any] = {}
    array = stored(store, x, serializer=CoefficientBytesCodec(endian="little"), compressors=None)
    codecs = json.loads(store["zarr.json"].to_bytes())["codecs"]
    assert codecs[1] == {"name": "bytes", "configuration": {"endian": "little"}}
    assert store["c/0/0/0"].to_bytes() == NdLift(LIFTING).encode(x).astype("<i4").tobytes()
    np.testing.assert_array_equal(array[...], x)


@pytest.mark.filterwarnings("ignore:Combining a `sharding_indexed` codec")
@pytest.mark.parametrize("fill", [0, 7])
@pytest.mark.parametrize("place", ["inside", "outside"])
def test_shards(fill: int, place: str) -> None:
    x = np.full((16, 16, 16), fill, np.uint16)
    x[:9, 3:5] += volume()[:9, :2, :16]
    lifting, blosc = NdLiftCodec(transforms=LIFTING), BloscCodec(cname="zstd", shuffle="bitshuffle")
    inner = [BytesCodec(), blosc, Crc32cCodec()]
    codecs = [lifting, *inner] if place == "inside" else inner
    shards = ShardingCodec(chunk_shape=(4, 8, 8), codecs=codecs)
    filters = [lifting] if place == "outside" else None
    array = stored(
        {}, x, chunks=(8, 16, 16), compressors=None, fill_value=fill, filters=filters, serializer=shards
    )
    np.testing.assert_array_equal(array[...], x)
    np.testing.assert_array_equal(array[5:13, 2:9, 15], x[5:13, 2:9, 15])


def test_partial_writes_and_missing_chunks() -> None:
    memory = zarr.storage.MemoryStore()
    lifting = NdLiftCodec(transforms=LIFTING)
    array = zarr.create_array(
        memory, shape=(10, 10, 10), chunks=(4, 4, 4), dtype="int16", fill_value=-3, filters=[lifting]
    )
    array[2:5, 3, 1:] = 1000
    expected = np.full((10, 10, 10), -3, np.int16)
    expected[2:5, 3, 1:] = 1000
    np.testing.assert_array_equal(array[...], expected)
    assert array.nchunks_initialized < array.nchunks


def test_after_a_transposition_and_in_big_endian_bytes() -> None:
    x = volume(shape=(6, 9, 5))
    filters = [TransposeCodec(order=(2, 0, 1)), NdLiftCodec(transforms=LIFTING)]
    array = stored({}, x, filters=filters, serializer=BytesCodec(endian="big"), chunks=(6, 4, 5))
    np.testing.assert_array_equal(array[...], x)


@pytest.mark.parametrize("shape", [(0, 4, 4), (1, 1, 1), (3, 1, 2)])
def test_small_arrays(shape: tuple[int, ...]) -> None:
    x = np.ones(shape, np.uint8)
    np.testing.assert_array_equal(stored({}, x, chunks=(2, 2, 2))[...], x)


@pytest.mark.parametrize(
    ("dtype", "transforms", "message"),
    [
        ("float32", LIFTING, "integers of 8 to 64 bits are needed, got float32"),
        ("bool", LIFTING, "integers of 8 to 64 bits are needed, got bool"),
        ("uint8", [{"dimension": 3, "kind": "delta"}], "dimension 3 is out of range for chunks of 3"),
    ],
)
def test_arrays_that_cannot_be_lifted(dtype: str, transforms: Any, message: str) -> None:
    with pytest.raises(UndulaError, match=message):
        zarr.create_array(
            zarr.storage.MemoryStore(),
            shape=(4, 4, 4),
            dtype=dtype,
            filters=[NdLiftCodec(transforms=transforms)],
        )


def test_metadata_that_cannot_be_read() -> None:
    store: dict[str, Any] = {}
    stored(store, volume())
    text = store["zarr.json"].to_bytes().decode()
    for old, new, message in [
        ('"version": "0.1"', '"version": "0.9"', "version '0.9' is unknown"),
        ('"kind": "haar"', '"kind": "haarlem"', "unknown kind"),
    ]:
        assert old in text
        changed = {**store, "zarr.json": type(store["zarr.json"]).from_bytes(text.replace(old, new).encode())}
        with pytest.raises(UndulaError, match=message):
            zarr.open_array(zarr.storage.MemoryStore(changed), mode="r")
    with pytest.raises(UndulaError, match="expected the codec 'nd_lift', got 'zstd'"):
        NdLiftCodec.from_dict({"name": "zstd", "configuration": {}})


def test_entry_points_lead_to_the_codecs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups = project["entry-points"]
    assert groups["zarr.codecs"] == {
        "nd_lift": "undula.codecs.zarr3:NdLiftCodec",
        "undula.zigzag": "undula.codecs.zarr3:ZigZagCodec",
    }
    assert groups["numcodecs.codecs"] == {
        NdLiftFilter.codec_id: "undula.codecs.zarr2:NdLiftFilter",
        ZigZagFilter.codec_id: "undula.codecs.zarr2:ZigZagFilter",
    }
    assert get_codec_class("nd_lift") is NdLiftCodec
    assert get_codec_class("undula.zigzag") is ZigZagCodec
    config = NdLiftFilter("<u2", (2, 2), [{"dimension": 0, "kind": "delta"}]).get_config()
    assert isinstance(numcodecs.get_codec(config), NdLiftFilter)


def test_undula_does_not_import_zarr() -> None:
    code = "import sys, undula.codecs; print({'zarr', 'numcodecs'} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "set()"


# --- Zarr 2 ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "<u2", ">u2", "int32", "uint64"])
def test_arrays_of_zarr_2_come_back(dtype: str, order: Any) -> None:
    x = volume().astype(dtype)
    chunks = (4, 8, 6)
    shape = chunks if order == "C" else chunks[::-1]
    lifting = NdLiftFilter(x.dtype, shape, LIFTING)
    memory = zarr.storage.MemoryStore()
    array = zarr.create_array(
        memory,
        shape=x.shape,
        dtype=x.dtype,
        chunks=chunks,
        zarr_format=2,
        order=order,
        filters=[lifting],
        compressors=numcodecs.Zstd(level=1),
    )
    array[...] = x
    again = zarr.open_array(memory, mode="r")
    assert again.metadata.filters == (lifting,)
    np.testing.assert_array_equal(again[...], x)


def test_the_filter_alone() -> None:
    x = volume(shape=(4, 8, 6))
    lifting = NdLiftFilter("<u2", x.shape, LIFTING)
    coefficients = lifting.encode(x)
    np.testing.assert_array_equal(coefficients.reshape(x.shape), NdLift(LIFTING).encode(x))
    out = np.empty_like(x)
    lifting.decode(coefficients.tobytes(), out=out)
    np.testing.assert_array_equal(out, x)
    assert numcodecs.get_codec(lifting.get_config()) == lifting
    with pytest.raises(UndulaError, match=r"a chunk of shape \(4, 8, 6\) has 384 bytes of uint16, got 192"):
        lifting.encode(x[:2].copy())
    with pytest.raises(UndulaError, match="shape must be integers"):
        NdLiftFilter("<u2", (4, 2.5), [])
    with pytest.raises(UndulaError, match="integers of 8 to 64 bits"):
        NdLiftFilter("<f4", (4, 2), [])


# --- zigzag ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", ">i2"])
def test_signs_are_folded(dtype: str) -> None:
    info = np.iinfo(dtype)
    x = np.array([0, -1, 1, -2, 2, 100, info.max, info.min, info.min + 1, *range(-40, 40)], dtype)
    expected = [2 * v if v >= 0 else -2 * v - 1 for v in x.tolist()]
    assert folded(x).tolist() == expected
    assert folded(x).dtype == np.dtype(dtype.replace("int", "uint").replace(">i", "u"))
    np.testing.assert_array_equal(unfolded(folded(x), x.dtype), x)
    np.testing.assert_array_equal(unfolded(folded(x[::-2]), x.dtype), x[::-2])
    lifting = ZigZagFilter(x.dtype)
    np.testing.assert_array_equal(lifting.decode(lifting.encode(x).tobytes()), x)


def test_other_dtypes_are_not_folded() -> None:
    with pytest.raises(UndulaError, match="signed integers are needed, got uint16"):
        folded(np.zeros(3, np.uint16))
    with pytest.raises(UndulaError, match="int32 is stored as uint32, got uint16"):
        unfolded(np.zeros(3, np.uint16), np.int32)
    with pytest.raises(UndulaError, match="without a configuration"):
        ZigZagCodec.from_dict({"name": "undula.zigzag", "configuration": {"bits": 3}})


@pytest.mark.parametrize("dtype", DTYPES)
def test_folded_arrays_come_back(dtype: str) -> None:
    x = volume(dtype)
    store: dict[str, Any] = {}
    filters = [NdLiftCodec(transforms=LIFTING), ZigZagCodec()]
    np.testing.assert_array_equal(stored(store, x, filters=filters, compressors=None)[...], x)
    first = NdLift(LIFTING).encode(x[:8, :8, :8])
    assert store["c/0/0/0"].to_bytes() == folded(first).tobytes()
    shards = ShardingCodec(chunk_shape=(4, 8, 8), codecs=[*filters, BytesCodec(), ZstdCodec(level=1)])
    np.testing.assert_array_equal(
        stored({}, x, filters=None, serializer=shards, compressors=None, fill_value=3)[...], x
    )


def test_folded_arrays_of_zarr_2_come_back() -> None:
    x = volume()
    memory = zarr.storage.MemoryStore()
    filters = [NdLiftFilter("<u2", (4, 8, 6), LIFTING), ZigZagFilter()]
    options: Any = {"chunks": (4, 8, 6), "zarr_format": 2, "filters": filters}
    array = zarr.create_array(memory, shape=x.shape, dtype="<u2", **options)
    array[...] = x
    np.testing.assert_array_equal(zarr.open_array(memory, mode="r")[...], x)


# --- beside nd-image-codecs ------------------------------------------------------------------------


def peer_module(name: str) -> ModuleType:
    pytest.importorskip("nd_image_codecs", reason="nd-image-codecs is not installed")
    return import_module(f"nd_image_codecs.{name}")


@pytest.mark.parametrize("dtype", DTYPES[2:])  # The other package does not read 8 bits: see NativeInt32.
def test_each_reads_what_the_other_wrote(dtype: str) -> None:
    peer = peer_module("zarr_codec")
    peer.register()
    x = volume(dtype)
    names = {CHOSEN: NdLiftCodec, "nd_image_codecs.zarr_codec.NdLiftCodec": peer.NdLiftCodec}
    written = []
    for writer in names.values():
        store: dict[str, Any] = {}
        stored(store, x, filters=[writer(transforms=LIFTING)])
        written.append({key: value.to_bytes() for key, value in store.items()})
        for name, reader in names.items():
            with zarr.config.set({"codecs.nd_lift": name}):
                array = zarr.open_array(zarr.storage.MemoryStore(store), mode="r")
                assert isinstance(array.metadata.codecs[0], reader)
                np.testing.assert_array_equal(array[...], x)
    assert written[0] == written[1]


def test_the_same_coefficients_and_the_same_refusals() -> None:
    peer = peer_module("_lift")
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(400):
        dtype = np.dtype(rng.choice(DTYPES))
        shape = tuple(rng.integers(1, 12, rng.integers(1, 4)).tolist())
        info = np.iinfo(dtype)
        shift = int(rng.integers(0, 8 * dtype.itemsize))
        x = rng.integers(info.min, info.max, shape, dtype, endpoint=True) >> shift
        transforms = [
            {
                "dimension": int(rng.integers(len(shape))),
                "kind": str(rng.choice(["delta", "haar", "lift53"])),
                "levels": int(rng.integers(1, 9)),
                "group": int(rng.choice([0, 1, 3, 5])),
            }
            for _ in range(rng.integers(0, 5))
        ]
        lift = NdLift(transforms)
        try:
            expected = peer.forward(x, transforms)
        except OverflowError:
            refused += 1
            with pytest.raises(UndulaError, match="could overflow"):
                lift.encode(x)
        else:
            np.testing.assert_array_equal(lift.encode(x), expected)
            np.testing.assert_array_equal(lift.decode(expected, dtype), x)
    assert refused > 5
