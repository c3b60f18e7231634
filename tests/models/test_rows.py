"""Tall data: the same sums over rows in memory, in files and on a cluster."""

import json
import logging
import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import dask.array as da
import dask.dataframe as dd
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dask.sizeof import sizeof

import vhmc
from tests.models import wide_table
from vhmc.models.rows import cluster as rows_on_workers
from vhmc.models.rows import parquet, source

ROOT = Path(__file__).parents[2]
DIM, NUM_ROWS = 3, 20_001
INIT = {"beta": np.zeros(DIM), "scale": 1.0}
CONSTRAINTS = {"scale": vhmc.positive}


def log_likelihood(params, rows):
    """Linear regression with unknown noise; rows are a matrix and a vector."""
    errors = (rows["y"] - rows["x"] @ params["beta"]) / params["scale"]
    return -0.5 * jnp.sum(errors**2) - len(rows["y"]) * jnp.log(params["scale"])


def by_column(params, rows):
    """The same with a column for each feature, as tables have them."""
    x = jnp.stack([rows[f"x{i}"] for i in range(DIM)], axis=1)
    return log_likelihood(params, {"x": x, "y": rows["y"]})


def log_prior(params):
    return -0.5 * jnp.sum(params["beta"] ** 2) - params["scale"]


@pytest.fixture(scope="module")
def columns():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((NUM_ROWS, DIM))
    y = x @ np.array([1.0, -0.5, 0.2]) + 0.7 * rng.standard_normal(NUM_ROWS)
    return {"x": x, "y": y, "city": np.array(["Rome"] * NUM_ROWS)}


@pytest.fixture(scope="module")
def frame(columns):
    features = {f"x{i}": columns["x"][:, i] for i in range(DIM)}
    return pd.DataFrame(features | {"y": columns["y"], "city": "Rome"})


@pytest.fixture(scope="module")
def folder(columns, tmp_path_factory):
    """Two files with row groups of odd sizes; the features are one column of lists."""
    path = tmp_path_factory.mktemp("rows")
    flat = pa.array(columns["x"].ravel())
    table = pa.table(
        {
            "x": pa.FixedSizeListArray.from_arrays(flat, DIM),
            "y": columns["y"],
            "city": columns["city"],
        }
    )
    pq.write_table(table.slice(0, 13_000), path / "a.parquet", row_group_size=1_700)
    pq.write_table(table.slice(13_000), path / "b.parquet", row_group_size=9_000)
    return path


@pytest.fixture(scope="module")
def expected(columns):
    """Energies, gradients and Hessian by `from_jax` with all rows, at a few points."""
    rows = {name: jnp.asarray(columns[name]) for name in ("x", "y")}
    target = vhmc.from_jax(
        lambda p: log_likelihood(p, rows) + log_prior(p), INIT, CONSTRAINTS
    )
    thetas = 0.3 * np.random.default_rng(1).standard_normal((5, DIM + 1))
    return thetas, target.evaluate(thetas), target.hessian(thetas[0])


def make(data, likelihood=log_likelihood, **options):
    return vhmc.from_rows(likelihood, log_prior, data, INIT, CONSTRAINTS, **options)


def assert_same(target, expected):
    thetas, answers, hessian = expected
    found = target.evaluate(thetas)
    assert list(found.reason) == [""] * len(thetas)
    np.testing.assert_allclose(found.energy, answers.energy, rtol=1e-12)
    np.testing.assert_allclose(found.grad, answers.grad, rtol=1e-10, atol=1e-8)
    assert target.num_evaluations == len(thetas)
    np.testing.assert_allclose(target.hessian(thetas[0]), hessian, rtol=1e-9, atol=1e-6)
    assert target.num_evaluations == len(thetas) + target.dim


@pytest.mark.parametrize("chunk_bytes", [10_000, 2**22])
def test_arrays_in_memory(columns, expected, chunk_bytes, monkeypatch):
    monkeypatch.setattr(source, "CHUNK_BYTES", chunk_bytes)
    assert_same(make(columns), expected)


def test_tables_in_memory(frame, expected):
    assert_same(make(frame, by_column), expected)
    assert_same(make(pa.Table.from_pandas(frame), by_column), expected)


def test_parquet_files(folder, expected, monkeypatch):
    assert_same(make(str(folder)), expected)
    monkeypatch.setattr(source, "CHUNK_BYTES", 40_000)
    assert_same(make(folder), expected)


def test_all_points_of_a_round_share_one_pass(folder, expected, monkeypatch):
    passes = []
    read = parquet.read

    def counted(*arguments):
        passes.append(arguments)
        return read(*arguments)

    monkeypatch.setattr(parquet, "read", counted)
    make(folder).evaluate(expected[0])
    assert len(passes) == 1
    assert set(passes[0][1]) == {"x", "y"}, "only columns that are asked for are read"


@pytest.mark.slow
def test_sampling_is_that_of_the_model_in_one_piece(columns):
    rows = {name: jnp.asarray(columns[name]) for name in ("x", "y")}
    whole = vhmc.from_jax(
        lambda p: log_likelihood(p, rows) + log_prior(p), INIT, CONSTRAINTS
    )
    one = vhmc.sample(whole, 300, draws=100, chains=2, num_features=20)
    other = vhmc.sample(make(columns), 300, draws=100, chains=2, num_features=20)
    # Summation order changes the rounding, and with it the steps of the search.
    for name in ("beta", "scale"):
        spread = one.draws[name].std(axis=(0, 1))
        gap = np.abs(one.draws[name].mean((0, 1)) - other.draws[name].mean((0, 1)))
        assert np.all(gap < 0.6 * spread)  # 200 draws: 6 standard errors


def holed(folder):
    path = folder / "holed.parquet"
    y = pa.array([1.0, None, 2.0])
    x = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(9)), DIM)
    pq.write_table(pa.table({"x": x, "y": y}), path)
    return path


@pytest.mark.parametrize(
    ("data", "likelihood", "message"),
    [
        (7, log_likelihood, "data must be a dict of arrays, a table, the path of"),
        ({}, log_likelihood, "the data have no rows"),
        ({"x": np.zeros((0, 3)), "y": np.zeros(0)}, log_likelihood, "have no rows"),
        (
            {"x": np.zeros((4, 3)), "y": np.zeros(5)},
            log_likelihood,
            "must have as many rows each, got x 4, y 5",
        ),
        ({"x": np.zeros((4, 3))}, log_likelihood, "asks for 'y', the data have x"),
        ({"y": np.zeros(4)}, lambda p, rows: 0.0 * p["scale"], "uses none of the data"),
        (
            {"y": np.zeros(4)},
            lambda p, rows: rows["y"] * p["scale"],
            "must return one number, the sum over its rows",
        ),
        ({"y": np.zeros(4)}, "sum", "log_likelihood must be a function"),
        (Path("nowhere"), log_likelihood, "there are no data nowhere"),
    ],
)
def test_bad_data_is_refused_in_one_sentence(
    data, likelihood, message, no_shape_checks
):
    with pytest.raises(ValueError, match=message):
        make(data, likelihood)


ASKING = {
    "get": lambda rows: rows["y"] * rows.get("w", 1.0),
    "unpacked": lambda rows: (lambda y, w, z: y * w)(**rows),
    "mapped": lambda rows: (lambda twice: twice["y"] * twice["w"] / 4)(
        jax.tree.map(lambda column: 2 * column, rows)
    ),
}


@pytest.mark.parametrize("how", ASKING)
def test_columns_are_found_however_they_are_asked_for(how):
    data = {"y": np.full(4, 1.0), "w": np.full(4, 10.0), "z": np.full(4, 5.0)}
    target = vhmc.from_rows(
        lambda p, rows: p["a"] * jnp.sum(ASKING[how](rows)),
        lambda p: 0.0 * p["a"],
        data,
        {"a": 1.0},
    )
    assert target.evaluate(np.ones((1, 1))).energy == pytest.approx(-40.0)


def test_columns_in_32_bits_are_summed_in_64():
    y = np.random.default_rng(0).uniform(size=300_000).astype("float32")
    target = vhmc.from_rows(
        lambda p, rows: p["a"] * jnp.sum(rows["y"]),
        lambda p: 0.0 * p["a"],
        {"y": y},
        {"a": 1.0},
    )
    exact = y.astype(float).sum()
    assert -target.evaluate(np.ones((1, 1))).energy[0] == pytest.approx(
        exact, rel=1e-13
    )


def test_files_may_differ_in_their_types(columns, tmp_path):
    """Lists of any kind, rows in 32 bits, an empty file: all as in the first one."""
    x = pa.FixedSizeListArray.from_arrays(pa.array(columns["x"].ravel()), DIM)
    table = pa.table({"x": x, "y": columns["y"]})
    schema = pa.schema([("y", pa.float64()), ("x", pa.list_(pa.float64()))])
    loose = table.select(["y", "x"]).cast(schema)
    pq.write_table(loose.slice(0, 9_000), tmp_path / "a.parquet")
    pq.write_table(loose.slice(0, 0), tmp_path / "b.parquet")
    pq.write_table(table.slice(9_000), tmp_path / "c.parquet")
    target, whole = make(tmp_path), make(columns)
    thetas = np.zeros((1, DIM + 1))
    np.testing.assert_allclose(
        target.evaluate(thetas).energy, whole.evaluate(thetas).energy, rtol=1e-12
    )
    pq.write_table(table.select(["x"]), tmp_path / "d.parquet")
    with pytest.raises(ValueError, match=r"d.parquet has no column y, which the other"):
        make(tmp_path)


def test_lists_of_different_lengths_are_named(tmp_path):
    lists = pa.array([[1.0, 2.0, 3.0], [1.0, 2.0]])
    path = tmp_path / "ragged.parquet"
    pq.write_table(pa.table({"x": lists, "y": [1.0, 2.0]}), path)
    with pytest.raises(ValueError, match=r"column x of .* has lists of different"):
        vhmc.sample(make(path), 100)


def test_a_collection_needs_no_cluster(columns, frame, expected):
    """Partitions of odd sizes, one of them empty."""
    assert_same(make(dask_arrays(columns)), expected)
    whole = dd.from_pandas(frame, npartitions=3)
    holed = dd.concat([whole, whole[whole["y"] > 1e9]])
    assert_same(make(holed, by_column), expected)


def test_missing_values_are_named(tmp_path):
    target = make(holed(tmp_path))
    with pytest.raises(ValueError, match=r"column y of .* has missing values"):
        vhmc.sample(target, 100)


def test_memory_stays_flat_where_files_are_larger(tmp_path):
    """A table of 240 MB is passed over twice; 100 MB are allowed for it."""
    path = tmp_path / "wide.parquet"
    subprocess.run(
        [sys.executable, "-m", "tests.models.wide_table", "write", str(path)],
        cwd=ROOT,
        check=True,
    )
    run = subprocess.run(
        [sys.executable, "-m", "tests.models.wide_table", "pass", str(path)],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    found = json.loads(run.stdout)
    assert wide_table.NUM_ROWS * wide_table.NUM_COLUMNS * 8 > 240e6
    assert found["grown by"] < 100e6, found


@pytest.fixture(scope="module")
def cluster():
    """A real scheduler and two worker processes, on loopback."""
    import dask
    from distributed import Client, LocalCluster

    kinds = "connect", "tcp"
    patient = {f"distributed.comm.timeouts.{kind}": "120s" for kind in kinds}
    with (
        warnings.catch_warnings(),
        dask.config.set(patient),  # other tests may keep the cores busy
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",  # None means 8787, which may be taken
        ) as made,
        Client(made) as client,
    ):
        yield client


def dask_frame(frame):
    return dd.from_pandas(frame, npartitions=5)


def dask_arrays(columns):
    return {
        "x": da.from_array(columns["x"], chunks=(4_000, 2)),
        "y": da.from_array(columns["y"], chunks=4_000),
    }


def test_a_cluster_gives_the_same(cluster, columns, frame, folder, expected):
    assert_same(make(columns, client=cluster), expected)
    assert_same(make(folder, client=cluster), expected)
    assert_same(make(dask_frame(frame), by_column, client=cluster), expected)
    target = make(dask_arrays(columns))  # the client of this process is found
    assert_same(target, expected)
    address = cluster.scheduler.address
    assert_same(make(columns, client=address), expected)
    assert "rows on 2 Dask workers" in repr(target)
    # Workers on one machine do not compete for its cores.
    assert set(cluster.run(os.getenv, "NPROC").values()) == {"1"}


def test_fewer_rows_than_workers(cluster, columns, frame):
    cluster.wait_for_workers(2)
    one = {name: columns[name][:1] for name in ("x", "y")}
    thetas = np.zeros((1, DIM + 1))
    wanted = make(one).evaluate(thetas).energy
    target = make(one, client=cluster)
    np.testing.assert_allclose(target.evaluate(thetas).energy, wanted)
    shards = make(columns, client=cluster)._source._shards
    sizes = [cluster.submit(sizeof, shard).result() for shard in shards]
    assert sum(sizes) >= columns["x"].nbytes + columns["y"].nbytes
    some = dd.from_pandas(frame, npartitions=2)
    some = some[some["y"] == frame["y"].iloc[0]]  # the other partition is empty
    target = make(some, by_column, client=cluster)
    np.testing.assert_allclose(target.evaluate(thetas).energy, wanted)


class Killer:
    """Ends a worker process in the middle of a run."""

    def __init__(self, client, target, at):
        self._client, self._target, self._at = client, target, at

    def __call__(self, thetas):
        if self._target.num_evaluations > self._at:
            self._at = np.inf
            pid = next(iter(self._client.run(os.getpid).values()))
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize(
    "kind",
    [
        "memory",
        pytest.param("files", marks=pytest.mark.slow),
        pytest.param("collection", marks=pytest.mark.slow),
    ],
)
def test_a_worker_killed_in_the_middle_changes_nothing(
    cluster, columns, folder, kind, caplog, monkeypatch
):
    cluster.wait_for_workers(2)
    data = {"memory": columns, "files": folder, "collection": dask_arrays(columns)}

    def run(at):
        target = make(data[kind], client=cluster)
        kill, ask = Killer(cluster, target, at), target._ask

        def killed_on_the_way(thetas):
            kill(thetas)
            return ask(thetas)

        target._ask = killed_on_the_way
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return vhmc.sample(target, 100, draws=50, chains=2, num_features=10)

    expected = run(np.inf)
    with caplog.at_level(logging.WARNING, logger="vhmc"):
        posterior = run(40)
    assert not posterior.failures
    np.testing.assert_array_equal(
        posterior.evaluation_log.energy, expected.evaluation_log.energy
    )
    np.testing.assert_array_equal(posterior.unconstrained, expected.unconstrained)
    assert any("is gone" in record.message for record in caplog.records)


def test_rows_that_cannot_be_made_again_are_a_clear_error(cluster, columns):
    import dask

    cluster.wait_for_workers(2)
    halves = [
        cluster.scatter(
            [{name: columns[name][part] for name in ("x", "y")}], hash=False
        )[0]
        for part in (slice(0, 10_000), slice(10_000, None))
    ]
    arrays = {
        name: da.concatenate(
            [
                da.from_delayed(
                    dask.delayed(lambda half, name=name: half[name])(half),
                    (size, *columns[name].shape[1:]),
                    float,
                )
                for half, size in zip(halves, (10_000, 10_001), strict=True)
            ]
        )
        for name in ("x", "y")
    }
    target = make(arrays, client=cluster)
    target.evaluate(target.start[None])
    del halves
    for pid in cluster.run(os.getpid).values():
        os.kill(pid, signal.SIGKILL)
    answer = target.evaluate(target.start[None])
    assert "rows that cannot be rebuilt" in answer.reason[0]


@pytest.mark.parametrize(
    ("client", "message"),
    [
        (7, "client must be a Dask client or the address"),
        ("tcp://127.0.0.1:9", "no Dask scheduler answers at tcp://127.0.0.1:9"),
    ],
)
def test_a_client_that_is_none(columns, client, message, monkeypatch):
    monkeypatch.setattr(rows_on_workers, "CONNECTING", "1s")
    with pytest.raises(ValueError, match=message):
        make(columns, client=client)


def test_rows_on_two_devices_of_one_host():
    """JAX's own sharding: arrays that lie on several devices, and nothing else new."""
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.models.sharded_run"],
        cwd=ROOT,
        env=os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    found = json.loads(run.stdout.splitlines()[-1])
    assert found["devices"] == 2
    assert found["rows on each"] == [2000, 2000]
    assert found["energy"] < 1e-9
    assert found["grad"] < 1e-9
    assert 0 < found["evaluations"] <= 200
