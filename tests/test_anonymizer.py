from __future__ import annotations

import datetime
import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2
from sklearn.cluster import KMeans
from sklearn.utils.estimator_checks import parametrize_with_checks

import shoal
from shoal import compilation
from shoal.errors import CheckError, InputError

EXACT = [("permute", None), ("gaussian", "rank"), ("gaussian", "transport")]
WAYS = [("centroid", None), ("resample", None), *EXACT, ("gaussian", "cdf")]


def counts(table, columns):
    return table.select(columns).group_by(columns).len().sort(columns)


# ---------------------------------------------------------------- any table


@st.composite
def random_tables(draw):
    n = draw(st.integers(4, 50))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    makers = {
        "int": lambda: pl.Series(rng.integers(0, draw(st.sampled_from([1, 3, 100])), n)),
        "float": lambda: pl.Series(rng.standard_normal(n)),
        "text": lambda: pl.Series(rng.choice(["007", "01", "x"], n)),
        "bool": lambda: pl.Series(rng.random(n) < 0.5),
        "date": lambda: pl.Series(
            [datetime.date(2020, 1, 1) + datetime.timedelta(int(d)) for d in rng.integers(0, 40, n)]
        ),
        "enum": lambda: pl.Series(rng.choice(["lo", "hi"], n), dtype=pl.Enum(["lo", "mid", "hi"])),
    }
    names = draw(st.lists(st.sampled_from(sorted(makers)), min_size=1, max_size=4, unique=True))
    columns = {}
    for name in names:
        series = makers[name]()
        if draw(st.booleans()):
            series = series.set(pl.Series(np.append(rng.random(n - 1) < 0.2, False)), None)
        columns[name] = series
    table = pl.DataFrame(columns).with_columns(record=pl.Series(np.arange(n)))
    return table, names, draw(st.integers(2, n))


@settings(max_examples=80)
@given(case=random_tables(), way=st.sampled_from(WAYS), smoothed=st.booleans())
def test_any_table_any_method(case, way, smoothed):
    table, names, k = case
    smoothed = smoothed and way[0] != "centroid"
    release = shoal.anonymize(
        table,
        quasi_identifiers=names,
        sensitive=["record"],
        k=k,
        method=way[0],
        recovery=way[1],
        release_values="smoothed" if smoothed else "observed",
        allow_leaks=["record"],
    )
    assert release.certificate["clusters"]["smallest"] >= k
    assert sorted(release.table["record"]) == table["record"].to_list()
    assert release.table.columns == table.columns
    assert 0 <= release.certificate["measured"]["histogram_intersection"] <= 1
    continuous = any(table[name].n_unique() > 32 for name in names)
    if way[0] != "centroid":
        assert release.table.schema == table.schema
    if way in EXACT and not (smoothed and continuous):
        assert counts(release.table, names).equals(counts(table, names))
        assert release.certificate["measured"]["histogram_intersection"] == 1.0


@pytest.mark.parametrize("way", EXACT)
def test_pairs_of_quasi_identifiers_and_weight_are_kept_with_every_count(way):
    table = shoal.datasets.load_cohort(1000)
    names = ["sex", "age", "education", "income", "weight"]
    release = shoal.anonymize(
        table,
        quasi_identifiers=names[:4],
        weight="weight",
        sensitive=["cost"],
        others="drop",
        k=7,
        method=way[0],
        recovery=way[1],
    )
    assert counts(release.table, names).equals(counts(table, names))
    assert not release.table.select(names).equals(table.select(names))


# ---------------------------------------------------------------- equal in expectation


def mean_count_p_value(table, releases, truth):
    """Test that the mean count of every cell over independent releases is the true one (Hotelling, diagonal)."""
    cells = truth.drop("len")
    observed = np.array(
        [
            cells.join(counts(r, cells.columns), on=cells.columns, how="left")["len"].fill_null(0).to_numpy()
            for r in releases
        ]
    )
    spread = observed.std(axis=0, ddof=1)
    used = spread > 0
    z = (observed.mean(axis=0) - truth["len"].to_numpy())[used] / (spread[used] / np.sqrt(len(releases)))
    return chi2.sf((z**2).sum(), used.sum())


@pytest.mark.parametrize("way", [("resample", None), ("gaussian", "cdf")])
def test_averaged_over_releases_the_joint_distribution_is_the_original(way):
    rng = np.random.default_rng(5)
    age = rng.integers(0, 4, 200)
    table = pl.DataFrame(
        {"age": age, "income": np.minimum(age + rng.integers(0, 2, 200), 3), "sex": rng.choice(list("fm"), 200)}
    )
    names = table.columns
    releases = [
        shoal.anonymize(
            table,
            quasi_identifiers=names,
            k=8,
            method=way[0],
            recovery=way[1],
            clustering="greedy",  # whose clusters mix cells, so that the second half of this test can see something
            n_releases=0,
            random_state=s,
        ).table
        for s in range(400)
    ]
    truth = counts(table, names)
    assert mean_count_p_value(table, releases, truth) > 1e-3
    # The same test sees one record in 200 moved from one cell to the next.
    moved = truth["len"].to_numpy().astype(float)
    moved[0] -= 1
    moved[1] += 1
    assert mean_count_p_value(table, releases, truth.with_columns(len=pl.Series(moved))) < 1e-6


# ---------------------------------------------------------------- every kind of frame, every dtype

DAYS = [datetime.date(2020, 1, 1) + datetime.timedelta(3 * i) for i in range(60)]


def polars_table():
    i = np.arange(60)
    return pl.DataFrame(
        {
            "int8": pl.Series(i % 7, dtype=pl.Int8),
            "uint": pl.Series([None, *(i[1:] % 9).tolist()], dtype=pl.UInt32),
            "float32": pl.Series(i / 4, dtype=pl.Float32),
            "decimal": [decimal.Decimal(int(x)) / 4 for x in i % 5],
            "bool": [None, *(i[1:] % 3 == 0).tolist()],
            "code": [f"{x % 11:03d}" for x in i],
            "enum": pl.Series([["a", "b"][x % 2] for x in i], dtype=pl.Enum(["b", "unused", "a"])),
            "categorical": pl.Series([["x", None, "z"][x % 3] for x in i], dtype=pl.Categorical),
            "date": DAYS,
            "time": [datetime.time(x % 24) for x in i],
            "zoned": pl.Series([datetime.datetime(2020, 1, 1 + x % 28, 5) for x in i]).dt.replace_time_zone(
                "Europe/Berlin"
            ),
            "nanoseconds": pl.Series([datetime.datetime(2020, 1, 1 + x % 28) for x in i], dtype=pl.Datetime("ns")),
            "duration": [datetime.timedelta(hours=int(x)) for x in i],
        }
    )


def pandas_table():
    i = np.arange(60)
    return pd.DataFrame(
        {
            "int16": (i % 7).astype("int16"),
            "nullable": pd.array([None, *(i[1:] % 9)], dtype="Int64"),
            "arrow": pd.array([None, *(i[1:] % 9)], dtype="int64[pyarrow]"),
            "float": np.where(i % 5 == 0, np.nan, i / 4),
            "bool": i % 3 == 0,
            "boolean": pd.array([None, *(i[1:] % 3 == 0)], dtype="boolean"),
            "text": [f"{x % 11:03d}" for x in i],
            "object": np.array([f"{x % 4}" for x in i], dtype=object),
            "string": pd.array([None, *[f"{x % 4}" for x in i[1:]]], dtype="string[pyarrow]"),
            "ordered": pd.Categorical([["a", "b"][x % 2] for x in i], categories=["b", "unused", "a"], ordered=True),
            "unordered": pd.Categorical([["a", "b", None][x % 3] for x in i], categories=["b", "unused", "a"]),
            "numbers": pd.Categorical([[10, 2][x % 2] for x in i], categories=[10, 2], ordered=True),
            "datetime": pd.date_range("2020-01-01", periods=60).where(i % 4 > 0),
            "zoned": pd.date_range("2020-01-01", periods=60, tz="Europe/Berlin"),
            "dates": np.array(DAYS, dtype=object),
        },
        index=pd.Index(i + 1000, name="row"),
    )


def arrow_table():
    i = np.arange(60)
    ordered = pa.DictionaryArray.from_arrays(pa.array(i % 2, pa.int8()), pa.array(["b", "a", "unused"]), ordered=True)
    return pa.table(
        {
            "int32": pa.array([None, *(i[1:] % 7).tolist()], pa.int32()),
            "text": [f"{x % 11:03d}" for x in i],
            "dictionary": pa.array([["x", None, "z"][x % 3] for x in i]).dictionary_encode(),
            "ordered": ordered,
            "date": pa.array(DAYS, pa.date32()),
            "zoned": pa.array([datetime.datetime(2020, 1, 1 + x % 28) for x in i], pa.timestamp("us", "UTC")),
            "decimal": pa.array([decimal.Decimal(int(x)) / 4 for x in i % 5], pa.decimal128(9, 2)),
        }
    ).replace_schema_metadata({"note": "CANARY-METADATA"})


TABLES = {"polars": polars_table, "pandas": pandas_table, "pyarrow": arrow_table}


def names_of(table):
    return list(table.column_names if isinstance(table, pa.Table) else table.columns)


def rows_of(table):
    """Return the rows as texts, sorted; NaN, NaT and null alike."""
    if isinstance(table, pd.DataFrame):
        rows = table.to_dict("records")
    else:
        rows = table.to_pylist() if isinstance(table, pa.Table) else table.to_dicts()
    return sorted(str(["missing" if pd.isna(value) else value for value in row.values()]) for row in rows)


@pytest.mark.parametrize("way", [*EXACT, ("resample", None), ("gaussian", "cdf")])
@pytest.mark.parametrize("kind", TABLES)
def test_the_same_kind_of_frame_with_every_dtype_comes_back(kind, way):
    table = TABLES[kind]()
    names = names_of(table)
    release = shoal.anonymize(table, quasi_identifiers=names, k=6, method=way[0], recovery=way[1]).table
    assert type(release) is type(table)
    assert names_of(release) == names
    if kind == "pandas":
        assert release.dtypes.equals(table.dtypes)  # categories and their order included
        assert release.index.equals(pd.RangeIndex(60))
    elif kind == "pyarrow":
        assert release.schema.equals(table.schema)
        assert release.schema.metadata is None
    else:
        assert release.schema == table.schema
    if way in EXACT:
        assert rows_of(release) == rows_of(table)


@pytest.mark.parametrize("kind", TABLES)
def test_centroid_and_smoothed_of_every_dtype(kind):
    table = TABLES[kind]()
    names = names_of(table)
    centres = shoal.anonymize(table, quasi_identifiers=names, k=6, method="centroid").table
    assert len(set(rows_of(centres))) == 10
    if kind == "polars":
        assert centres.schema["int8"] == pl.Float64
        assert centres.schema["float32"] == pl.Float32
        assert centres.schema["enum"] == table.schema["enum"]
        assert centres.schema["date"] == pl.Date
        smooth = shoal.anonymize(table, quasi_identifiers=names, k=6, release_values="smoothed")
        assert smooth.table.schema == table.schema
        assert smooth.certificate["measured"]["cells"] == "continuous columns in quantile bins"
        two = shoal.anonymize(
            table, quasi_identifiers=["float32", "bool"], others="drop", k=6, release_values="smoothed", random_state=0
        )
        assert two.certificate["measured"]["histogram_intersection"] > 0.55
        assert smooth.table["float32"].is_in(table["float32"].implode()).mean() < 0.2
    if kind == "pandas":
        assert centres["nullable"].dtype == "Float64"
        assert centres["arrow"].dtype == "double[pyarrow]"
        assert centres["ordered"].dtype == table["ordered"].dtype


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint64"])
@pytest.mark.parametrize("kind", ["polars", "pandas", "pyarrow"])
def test_smoothed_integers_neither_wrap_nor_crash(dtype, kind):
    top = np.iinfo(dtype).max
    values = np.linspace(0, 1, 60) ** 2
    column = np.array([int(v * 0.999 * float(top)) for v in values], dtype=dtype)
    table = {"polars": pl.DataFrame, "pandas": pd.DataFrame, "pyarrow": pa.table}[kind]({"a": column})
    for method, values in (("permute", "smoothed"), ("centroid", "observed")):
        options = {"method": method, "release_values": values, "random_state": 0}
        release = shoal.anonymize(table, quasi_identifiers=["a"], k=6, **options).table
        new = np.asarray(release["a"]).astype(float)
        assert new.min() >= 0
        assert new.mean() == pytest.approx(column.astype(float).mean(), rel=0.1)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("kind", ["timestamp", "duration", "zoned"])
def test_smoothed_times_of_every_unit(unit, kind):
    dtype = {"timestamp": pa.timestamp(unit), "zoned": pa.timestamp(unit, "UTC"), "duration": pa.duration(unit)}[kind]
    seconds = [None, *(np.arange(1, 80) ** 2 * 1000)]
    step = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    table = pa.table({"t": pa.array([None if s is None else int(s) * step for s in seconds], pa.int64()).cast(dtype)})
    for native in (table, pl.from_arrow(table), table.to_pandas(), table.to_pandas(types_mapper=pd.ArrowDtype)):
        release = shoal.anonymize(native, quasi_identifiers=["t"], k=6, release_values="smoothed")
        assert release.certificate["columns"]["smoothed"] == ["t"]
        before, after = native["t"], release.table["t"]
        assert (before.type if isinstance(native, pa.Table) else before.dtype) == (
            after.type if isinstance(native, pa.Table) else after.dtype
        )


def test_arrow_backed_dates_with_missing_ones():
    table = pd.DataFrame({"day": pd.array([None, *DAYS[1:]], dtype=pd.ArrowDtype(pa.date32()))})
    for method in ("permute", "centroid", "gaussian"):
        release = shoal.anonymize(table, quasi_identifiers=["day"], k=6, method=method).table
        assert release["day"].dtype == table["day"].dtype
    shoal.anonymize(table.assign(age=range(60)), quasi_identifiers=["age"], sensitive=["day"], allow_leaks=["day"])


def test_levels_given_as_numbers_match_numbers():
    table = pd.DataFrame({"a": [1.0, 2.0, np.nan, 3.0] * 5})  # integers with missing ones are floats in pandas
    release = shoal.anonymize(table, quasi_identifiers=["a"], kinds={"a": [3, 1, 2]}, k=4)
    assert release.certificate["columns"]["quasi_identifiers"] == [{"name": "a", "kind": "ordinal"}]


def test_odd_columns_that_nobody_computes_with():
    n = 40
    table = pd.DataFrame({"age": range(n)})
    table["lists"] = [[i] for i in np.random.default_rng(0).permutation(n)]
    table["huge"] = pd.Series([10**400 + i % 3 for i in range(n)], dtype=object)
    table["mixed"] = pd.Series([1, "a"] * (n // 2), dtype=object)
    table["infinite"] = pd.Series([decimal.Decimal("Infinity"), decimal.Decimal(1)] * (n // 2), dtype=object)
    release = shoal.anonymize(
        table, quasi_identifiers=["age"], identifiers=["lists"], others="keep", k=4, method="permute"
    )
    assert release.table.columns.tolist() == ["age", "huge", "mixed", "infinite"]
    with pytest.raises(InputError, match="unit='lists' never|needs at least|persons"):
        shoal.anonymize(table, quasi_identifiers=["age"], unit="lists", others="drop", k=n + 1)
    views = pa.table({"a": pa.array(["x", "y"], pa.string_view())})
    with pytest.raises(InputError, match="'a' has a dtype of which no rows can be taken"):
        shoal.anonymize(views, quasi_identifiers=["a"], k=2)


def test_missing_values_come_back_missing_as_a_level():
    table = pl.DataFrame({"age": [1, None] * 20, "sex": [None, "f", "m", "f"] * 10})
    release = shoal.anonymize(table, quasi_identifiers=["age", "sex"], k=4, method="centroid")
    assert set(release.table["age"]) <= {1.0, None}
    assert release.table["age"].null_count() == 20


# ---------------------------------------------------------------- what stays and what goes


@pytest.mark.parametrize("way", WAYS)
def test_sensitive_and_kept_columns_stay_with_their_record(way, rng):
    table = pl.DataFrame(
        {
            "age": rng.integers(18, 80, 60),
            "cost": rng.standard_normal(60),
            "note": [f"note {i}" for i in range(60)],
            "tags": [[i, i] for i in range(60)],
        }
    )
    release = shoal.anonymize(
        table, quasi_identifiers=["age"], sensitive=["cost"], others="keep", k=5, method=way[0], recovery=way[1]
    )
    others = ["cost", "note", "tags"]
    assert release.table.select(others).sort("note").equals(table.select(others).sort("note"))
    assert release.certificate["columns"]["kept"] == ["note", "tags"]
    assert not release.table["note"].equals(table["note"])  # shuffled


def test_a_pandas_note_does_not_travel():
    table = pd.DataFrame({"age": range(10)})
    table.attrs["source"] = "CANARY"
    assert shoal.anonymize(table, quasi_identifiers=["age"], k=2).table.attrs == {}


def test_the_order_of_categories_does_not_betray_the_order_of_rows(rng):
    """Dictionaries in order of appearance, side by side, would tell which values came from one record."""
    areas, notes = [f"Z{i}" for i in rng.permutation(200)], [f"d{i}" for i in rng.permutation(200)]
    arrow = pa.table({"area": pa.array(areas).dictionary_encode(), "note": pa.array(notes).dictionary_encode()})
    backed = pd.DataFrame({name: arrow[name].to_pandas(types_mapper=pd.ArrowDtype) for name in ("area", "note")})
    categories = {name: pd.Categorical(v, categories=v) for name, v in (("area", areas), ("note", notes))}
    for table in (arrow, backed, pd.DataFrame(categories)):
        release = shoal.anonymize(table, quasi_identifiers=["area"], sensitive=["note"], k=20).table
        for name in ("area", "note"):
            column = release[name]
            if isinstance(column, pa.ChunkedArray):
                kept = column.chunk(0).dictionary.to_pylist()
            elif isinstance(column.dtype, pd.CategoricalDtype):
                kept = column.cat.categories.to_list()
            else:
                kept = column.array.__arrow_array__().combine_chunks().dictionary.to_pylist()
            assert kept == sorted(areas if name == "area" else notes)
        if isinstance(table, pa.Table):
            assert release.schema.equals(table.schema)
            assert sorted(release["note"].to_pylist()) == sorted(notes)
        else:
            assert release.dtypes.equals(table.dtypes)
            assert sorted(release["note"]) == sorted(notes)


@pytest.mark.parametrize("way", EXACT)
def test_no_buffer_keeps_the_original_order(way, tmp_path, rng):
    """A polars text is a view into a buffer; where rows are taken, the buffer stays as it was, also in Arrow files."""
    import pickle

    from shoal.io.reading import read_table
    from shoal.io.serialising import table_to_bytes

    n = 300
    towns = [f"Sankt Gallen district {i:04d}" for i in rng.permutation(n)]
    notes = [f"chronic condition number {i:06d}" for i in rng.permutation(n)]
    table = pl.DataFrame(
        {"town": towns, "note": notes, "list": [[note] for note in notes], "age": rng.integers(18, 90, n)}
    )
    table.write_ipc(tmp_path / "t.arrow")
    for source in (table, read_table(str(tmp_path / "t.arrow"))):
        release = shoal.anonymize(
            source, quasi_identifiers=["town", "age"], others="keep", k=5, method=way[0], recovery=way[1]
        ).table
        for data in (table_to_bytes(release, "arrow"), pickle.dumps(release)):
            for values in (towns, notes):
                places = [data.find(value.encode()) for value in values]
                assert min(places) >= 0
                assert abs(np.corrcoef(places, np.arange(n))[0, 1]) < 6 / np.sqrt(n)
        assert release.schema == table.schema


def test_nested_columns_travel_untouched_or_not_at_all():
    """Lists of text are built anew; where that would cost precision (nanoseconds beside text) nothing is released."""
    n = 30
    inner = pa.list_(pa.dictionary(pa.int32(), pa.string()))
    arrow = pa.table({"age": range(n), "tags": pa.array([[f"t{(7 * i) % n}", "all"] for i in range(n)], inner)})
    times = pl.Series([[1_000_000_007 + i] for i in range(n)], dtype=pl.List(pl.Datetime("ns")))
    frame = pl.DataFrame({"age": range(n), "tags": [[f"a rather long tag {i}"] for i in range(n)], "times": times})
    for table in (arrow, frame):
        release = shoal.anonymize(table, quasi_identifiers=["age"], others="keep", k=3, allow_leaks=["tags"]).table
        assert sorted(map(str, release["tags"].to_pylist() if table is arrow else release["tags"])) == sorted(
            map(str, table["tags"].to_pylist() if table is arrow else table["tags"])
        )
        if table is frame:
            assert sorted(release["times"].explode().cast(pl.Int64)) == [1_000_000_007 + i for i in range(n)]
    both = frame.with_columns(pair=pl.struct("times", "tags")).drop("times", "tags")
    with pytest.raises(CheckError, match="'pair' cannot be built anew without a change"):
        shoal.anonymize(both, quasi_identifiers=["age"], others="keep", k=3, allow_leaks=["pair"])


def test_notes_on_columns_do_not_travel():
    field = pa.field("age", pa.int64(), metadata={"note": "CANARY"})
    table = pa.table([pa.array(range(20))], schema=pa.schema([field], metadata={"note": "CANARY"}))
    assert shoal.anonymize(table, quasi_identifiers=["age"], k=2).table.schema.field("age").metadata is None
    frame = pd.DataFrame({"age": range(20)})
    frame.columns.name = "CANARY"
    assert shoal.anonymize(frame, quasi_identifiers=["age"], k=2).table.columns.name is None


def test_values_do_not_show_in_errors_about_dtypes(tmp_path):
    levels = ["CANARY0", "CANARY1"]
    table = pl.DataFrame({"w": pl.Series(levels * 10, dtype=pl.Enum(levels)), "age": range(20)})
    cases = [
        lambda: shoal.anonymize(table, quasi_identifiers=["age"], weight="w", k=2),
        lambda: shoal.anonymize(table, quasi_identifiers=["age", "w"], kinds={"w": "datetime"}, k=2),
        lambda: shoal.Anonymizer(k=2).fit([["CANARY"], ["CANARY"]]),
        lambda: shoal.clustering.KMemberClustering(2).fit([["CANARY"], ["CANARY"]]),
        lambda: shoal.recovery.rank_recover([["CANARY"]], [["CANARY"]]),
        lambda: shoal.anonymize(pl.DataFrame({"CANARY": [1], "79": [2]}), quasi_identifiers=["age"]),
    ]
    mixed = pd.DataFrame({"age": range(20), "y": pd.Series([1, "CANARY"] * 10, dtype=object)})
    release = shoal.anonymize(mixed, quasi_identifiers=["age"], sensitive=["y"], k=2)
    cases.append(lambda: release.write(tmp_path / "r.parquet"))
    for case in cases:
        with pytest.raises(InputError) as error:
            case()
        assert "CANARY" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------- randomness


def test_two_runs_differ_and_seeded_runs_are_equal_on_any_thread_count(monkeypatch):
    table = shoal.datasets.load_cohort(10_000)  # several blocks for transport and for cdf
    roles = {
        "quasi_identifiers": ["sex", "age", "education"],
        "sensitive": ["cost"],
        "weight": "weight",
        "others": "drop",
    }
    for method, recovery in WAYS:
        options = roles | {"method": method, "recovery": recovery, "n_releases": 2}
        a, b = shoal.anonymize(table, **options), shoal.anonymize(table, **options)
        assert not a.table.equals(b.table)
        assert a.certificate["status"] == "for release"
        monkeypatch.setattr(compilation, "count_threads", lambda n_jobs: 1)
        one = shoal.anonymize(table, **options, random_state=7)
        monkeypatch.setattr(compilation, "count_threads", lambda n_jobs: 5)
        five = shoal.anonymize(table, **options, random_state=7)
        monkeypatch.undo()
        assert one.table.equals(five.table)
        assert one.certificate == five.certificate
        assert one.certificate["status"] == "not for release: made with a fixed random_state"


def test_the_default_generator_is_keyed_by_the_operating_system(monkeypatch):
    import secrets

    from randomgen import ChaCha

    from shoal.randomness import make_generator

    asked = []
    real = secrets.randbits
    monkeypatch.setattr(secrets, "randbits", lambda bits: asked.append(bits) or real(bits))
    generator = make_generator()
    assert isinstance(generator.bit_generator, ChaCha)
    assert asked == [256]
    assert make_generator(5).random() == np.random.default_rng(5).random()
    given = np.random.default_rng(1)
    assert make_generator(given) is given
    with pytest.raises(InputError, match="random_state must be None"):
        make_generator("seed")


# ---------------------------------------------------------------- clustering and settings


def test_an_estimator_can_cluster_if_no_cluster_is_under_k(rng):
    blobs = np.vstack([rng.standard_normal((30, 2)), rng.standard_normal((30, 2)) + 50])
    table = pl.DataFrame({"x": blobs[:, 0], "y": blobs[:, 1]})
    release = shoal.anonymize(table, quasi_identifiers=["x", "y"], k=20, clustering=KMeans(2, random_state=0))
    assert release.certificate["clustering"] == "KMeans"
    assert release.certificate["clusters"]["number"] == 2
    with pytest.raises(CheckError, match="under k=20"):
        shoal.anonymize(table, quasi_identifiers=["x", "y"], k=20, clustering=KMeans(10, random_state=0))

    class Fixed:
        def __init__(self, labels):
            self.given = np.array(labels)

        def fit(self, X):
            self.labels_ = self.given
            return self

    with pytest.raises(CheckError, match="without a cluster"):
        shoal.anonymize(table, quasi_identifiers=["x", "y"], k=20, clustering=Fixed([0] * 59 + [-1]))
    for labels in ([0], [0.0] * 59 + [float("nan")], ["a"] * 60):
        with pytest.raises(InputError, match="not 60 whole numbers"):
            shoal.anonymize(table, quasi_identifiers=["x", "y"], k=20, clustering=Fixed(labels))


def test_response_weight_pulls_clusters_towards_equal_responses(rng):
    table = pl.DataFrame(
        {"age": rng.standard_normal(200), "y": rng.standard_normal(200), "z": rng.choice(list("ab"), 200)}
    )

    def spread(w):
        model = shoal.Anonymizer(k=10, response_weight=w, random_state=0)
        model.fit_transform(table.select("age"), table["y"].to_numpy())
        return np.mean([table["y"].to_numpy()[model.labels_ == c].var() for c in range(model.n_clusters_)])

    assert spread(4.0) < 0.7 * spread(0.0)
    release = shoal.anonymize(table, quasi_identifiers=["age"], sensitive=["y", "z"], response_weight=1.0)
    assert "replay of the clustering" in [item["what"] for item in release.certificate["not_covered"]]


def test_a_failed_check_releases_nothing(monkeypatch):
    table = pl.DataFrame({"age": range(20)})
    monkeypatch.setattr("shoal.dither.permute_members", lambda labels, rng: np.zeros(len(labels), dtype=np.int64))
    with pytest.raises(CheckError, match="not a permutation of the original rows; nothing is released"):
        shoal.anonymize(table, quasi_identifiers=["age"], k=5, method="permute")


def test_a_table_that_lost_its_counts_on_the_way_out_is_not_released(monkeypatch):
    """Whatever goes wrong between the decision and the table, the table itself is measured."""
    from shoal import hiding

    real = hiding.restore
    monkeypatch.setattr(hiding, "restore", lambda series, source, *a, **k: real(series, np.zeros_like(source), *a, **k))
    with pytest.raises(CheckError, match="does not have the joint counts of the original; nothing is released"):
        shoal.anonymize(pl.DataFrame({"age": range(20)}), quasi_identifiers=["age"], k=5)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"k": 1}, "k=1 must be a whole number of at least 2"),
        ({"k": 31}, "k=31 needs at least 31 rows, but the table has 30 rows; lower k or pool tables"),
        ({"method": "gausian"}, "did you mean 'gaussian'"),
        ({"method": "permute", "recovery": "rank"}, "goes with method='gaussian' only"),
        ({"recovery": "ranks"}, "did you mean 'rank'"),
        ({"release_values": "real"}, "release_values='real' is not known"),
        ({"clustering": "gredy"}, "did you mean 'greedy'"),
        ({"clustering": 3}, "name of an algorithm or an estimator"),
        ({"method": "centroid", "release_values": "smoothed"}, "does not go with method='centroid'"),
        ({"allow_leaks": None}, "allow_leaks must be a list"),
        ({"kinds": 3}, "kinds must map columns to kinds"),
        ({"kinds": {"age": 3}}, "must be a kind or a list of levels"),
        ({"kinds": {"age": [["x"]]}}, "must be a kind or a list of levels"),
        ({"loading": 1e308}, "at most 1e"),
        ({"loading": "1"}, "loading='1' must be a positive number"),
        ({"quasi_identifiers": None}, "quasi_identifiers is empty"),
        ({"quasi_identifiers": 3}, "quasi_identifiers must be a list of column names, but it is a int"),
        ({"allow_leaks": "age"}, "allow_leaks must be a list of column names"),
        ({"response_weight": 1.0}, "needs a numeric or ordinal sensitive column"),
        ({"loading": 0.0}, "loading=0.0 must be a positive number"),
        ({"response_weight": -1.0}, "response_weight=-1.0 must be a non-negative number"),
        ({"response_weight": float("nan")}, "must be a non-negative number"),
    ],
)
def test_bad_settings(options, text):
    with pytest.raises(InputError, match=text):
        shoal.anonymize(pl.DataFrame({"age": range(30)}), **({"quasi_identifiers": ["age"], "k": 5} | options))


@pytest.mark.parametrize(
    ("table", "text"),
    [
        (pl.DataFrame({"age": []}), "no rows"),
        (pd.DataFrame([[1, 2]], columns=["age", "age"]), "each occurring once"),
        (pd.DataFrame([[1, 2]]), "must be texts"),
        (pl.LazyFrame({"age": [1]}), "collect a lazy frame first"),
        (np.ones((3, 2)), "pandas, polars or pyarrow table, but it is a ndarray"),
    ],
)
def test_bad_tables(table, text):
    with pytest.raises(InputError, match=text):
        shoal.anonymize(table, quasi_identifiers=["age"])


def test_text_cannot_be_smoothed():
    table = pl.DataFrame({"code": [f"{i}" for i in range(100)]})
    with pytest.raises(InputError, match="needs a dtype of numbers or dates, but 'code'"):
        shoal.anonymize(table, quasi_identifiers=["code"], kinds={"code": "numeric"}, release_values="smoothed")


def test_cdf_refuses_tables_of_levels_too_large_for_memory(monkeypatch):
    monkeypatch.setattr("shoal.hiding._LARGEST_TABLE", 10)
    with pytest.raises(InputError, match="use recovery='transport'"):
        shoal.anonymize(pl.DataFrame({"a": list("abcd") * 5}), quasi_identifiers=["a"], k=5, recovery="cdf")


# ---------------------------------------------------------------- the estimator


@parametrize_with_checks(
    [shoal.Anonymizer(k=2, random_state=0), shoal.Anonymizer(k=3, method="permute", random_state=0)]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("way", WAYS)
def test_estimator_keeps_the_row_order_and_the_kind_of_table(way, rng):
    X = rng.integers(0, 5, (80, 3)).astype(float)
    X[0, 0] = np.nan
    model = shoal.Anonymizer(k=8, method=way[0], recovery=way[1], random_state=1)
    weights = rng.random(80) + 1
    hidden = model.fit_transform(X, sample_weight=weights)
    assert hidden.shape == X.shape
    assert model.cluster_sizes_.min() >= 8
    assert model.n_clusters_ == len(model.cluster_sizes_) == len(np.unique(model.labels_))
    if way[0] == "centroid":
        for c in range(model.n_clusters_):
            members = model.labels_ == c
            np.testing.assert_allclose(hidden[members, 1], X[members, 1].mean())
            np.testing.assert_allclose(model.sample_weight_[members], weights[members].mean())
    else:
        np.testing.assert_array_equal(hidden, X[model.source_index_])
        np.testing.assert_array_equal(model.sample_weight_, weights[model.source_index_])
    frame = pd.DataFrame(X, columns=["a", "b", "c"], index=range(100, 180))
    again = shoal.Anonymizer(k=8, method=way[0], recovery=way[1], random_state=1).fit_transform(
        frame, sample_weight=weights
    )
    assert again.index.equals(frame.index)
    np.testing.assert_array_equal(again.to_numpy(), hidden)


def test_estimator_errors(rng):
    X = rng.standard_normal((20, 2))
    with pytest.raises(InputError, match="needs y"):
        shoal.Anonymizer(k=5, response_weight=1.0).fit(X)
    with pytest.raises(InputError, match="infinite"):
        shoal.Anonymizer(k=5, response_weight=1.0).fit(X, np.append(np.ones(19), np.inf))
    for y in (np.ones(7), np.ones(40), ["a"] * 20):
        with pytest.raises(InputError, match="y must be 20 numbers"):
            shoal.Anonymizer(k=5, response_weight=1.0).fit(X, y)
    with pytest.raises(InputError, match="sample_weight must be 20 numbers"):
        shoal.Anonymizer(k=5).fit(X, sample_weight=[1.0])
    assert not hasattr(shoal.Anonymizer(), "transform")


# ---------------------------------------------------------------- progress


def test_progress_is_reported_by_stage():
    seen = []
    shoal.anonymize(
        pl.DataFrame({"age": range(700)}),
        quasi_identifiers=["age"],
        k=5,
        progress=lambda stage, share: seen.append((stage, share)),
    )
    order = ["clustering", "recovery", "attackers"]
    assert [stage for stage, _ in seen] == sorted((stage for stage, _ in seen), key=order.index)
    assert {(stage, 1.0) for stage in order} <= set(seen)


def test_a_bar_appears_only_when_it_takes_long(monkeypatch, capsys):
    table = pl.DataFrame({"age": range(700)})
    monkeypatch.setattr("shoal.progress.PATIENCE", 600.0)
    shoal.anonymize(table, quasi_identifiers=["age"], k=5, progress=True)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("shoal.progress.PATIENCE", 0.0)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    shoal.anonymize(table, quasi_identifiers=["age"], k=5, progress=True)
    assert "recovery" in capsys.readouterr().err
