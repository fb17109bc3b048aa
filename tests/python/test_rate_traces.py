"""Rates over time from files of other programs, with numbers computed by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from aqmlab.cli import main
from aqmlab.errors import UsageError
from aqmlab.rate_traces import FORMATS, trace_import

UCC = "Timestamp,Longitude,Latitude,Speed,CellID,NetworkMode,RSRP,DL_bitrate,UL_bitrate,State\n"
FCC = (
    "unit_id,dtime,target,address,fetch_time,bytes_total,bytes_sec,bytes_sec_interval,warmup_time,warmup_bytes,"
    "sequence,threads,successes,failures\n"
)


def fcc_row(unit, test, at_us, interval, sequence):
    return f"{unit},{test},mlab1,10.0.0.1,{at_us},0,0,{interval},0,0,{sequence},3,1,0\n"


IPERF3 = {
    "intervals": [
        {
            "sum": {"seconds": seconds, "bits_per_second": bps, "omitted": omitted},
            "sum_bidir_reverse": {"seconds": seconds, "bits_per_second": bps / 10, "omitted": omitted},
        }
        for seconds, bps, omitted in [(1.0, 9e9, True), (1.0, 4e6, False), (0.5, 2e6, False)]
    ]
}
TEXTS = {
    # 2 chances in the first tenth of a second, none in the second, 3 in the last 50 ms.
    "mahimahi": "10\n99\n201\n240\n250\n",
    "mobile": "1453121790686 39287 51.03 3.73 250000 1000\n1453121791687 40288 51.03 3.73 125000 500\n",
    "ucc": UCC
    + "2019.12.14_10.16.30,0,0,0,1,LTE,-90,8000,100,D\n"
    + "2019.12.14_10.16.30,0,0,0,1,LTE,-90,4000,300,D\n"
    + "2019.12.14_10.16.31,0,0,0,1,LTE,-90,0,0,I\n"
    + "2019.12.14_10.16.32,0,0,0,1,LTE,-90,-,200,D\n"
    + "2019.12.14_10.16.33,0,0,0,1,LTE,-90,2000,200,D\n"
    + "2019.12.14_10.17.33,0,0,0,1,LTE,-90,1000,200,D\n",
    "fcc": FCC
    + fcc_row(17, "2020-09-01 01:00:00", 5000000, 1000000, 0)
    + fcc_row(17, "2020-09-01 01:00:00", 10000000, 500000, 1)
    + fcc_row(18, "2020-09-01 01:00:00", 5000000, 1, 0)
    + fcc_row(17, "2020-09-01 03:00:00", 4000000, 250000, 0),
    "iperf3": json.dumps(IPERF3),
}
LEVELS = {
    "mahimahi": [(0.1, 240e3), (0.1, 0.0), (0.05, 720e3)],
    "mobile": [(1.5, 2e6)],  # equal levels are one
    "ucc": [(3.0, 6e6), (5.0, 2e6), (1.0, 1e6)],
    "fcc": [(5.0, 8e6), (5.0, 4e6), (4.0, 2e6)],
    "iperf3": [(1.0, 4e6), (0.5, 2e6)],
}
assert set(TEXTS) == set(FORMATS)


@pytest.fixture
def written(tmp_path):
    def write(text, name="trace"):
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return write


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("change", ["", "crlf", "bom", "blank lines"])
def test_levels_are_those_of_the_file(written, form, change):
    text = TEXTS[form]
    if change == "crlf" and form != "iperf3":
        text = text.replace("\n", "\r\n")
    text = {"bom": "\ufeff" + text, "blank lines": text + "\n\n"}.get(change, text)
    path = written(text)
    for named in (form, None):
        found = trace_import(path, named)
        assert len(found.levels) == len(LEVELS[form])
        for level, wanted in zip(found.levels, LEVELS[form], strict=True):
            assert (level.lasts_s, level.rate_bps) == pytest.approx(wanted)
        assert found.assumed
        assert found.mean_bps == pytest.approx(
            sum(lasts * rate for lasts, rate in LEVELS[form]) / sum(lasts for lasts, _ in LEVELS[form])
        )


def test_what_is_assumed_is_said(written):
    said = "\n".join(trace_import(written(TEXTS["ucc"])).assumed)
    for part in (
        "1 rows in which nothing was transferred",
        "1 rows have no value",
        "1 gaps of more than 5 s",
    ):
        assert part in said
    assert "1 seconds have several values" in said
    assert "of 2 units the first" in "\n".join(trace_import(written(TEXTS["fcc"])).assumed)
    assert "1 intervals that iperf3 omitted" in "\n".join(trace_import(written(TEXTS["iperf3"])).assumed)
    late = TEXTS["mobile"] + "1453121795687 44288 51.03 3.73 125000 500\n"
    assert "the times of 2 of 3 differ" in "\n".join(trace_import(written(late)).assumed)


def test_directions_bins_and_units(written):
    up = trace_import(written(TEXTS["ucc"]), direction="up")
    assert [level.rate_bps for level in up.levels] == [200e3]
    up = trace_import(written(TEXTS["iperf3"]), direction="up")
    assert [level.rate_bps for level in up.levels] == pytest.approx([4e5, 2e5])
    whole = trace_import(written(TEXTS["mahimahi"]), bin_s=1.0)
    assert [(level.lasts_s, level.rate_bps) for level in whole.levels] == [(0.25, 5 * 12000 / 0.25)]
    other = trace_import(written(TEXTS["fcc"]), unit="18")
    assert [(level.lasts_s, level.rate_bps) for level in other.levels] == [(5.0, 8.0)]
    unnamed = TEXTS["fcc"].removeprefix(FCC)
    assert trace_import(written(unnamed)).levels == trace_import(written(TEXTS["fcc"])).levels


@pytest.mark.parametrize("form", FORMATS)
def test_the_rows_say_how_long_the_last_level_lasts(written, form):
    """In a scenario, the last row lasts as long as the one before it."""
    found = trace_import(written(TEXTS[form]))
    rows = found.rows()
    (before_s, _), (last_s, _) = rows[-2:]
    assert last_s + (last_s - before_s) == pytest.approx(found.lasts_s)
    ends = [at_s for at_s, _ in rows[1:]] + [found.lasts_s]
    total = sum((end - at_s) * rate for (at_s, rate), end in zip(rows, ends, strict=True))
    assert total == pytest.approx(found.mean_bps * found.lasts_s)


@pytest.mark.parametrize(
    ("form", "text", "message"),
    [
        (None, "", "is empty"),
        (None, "a b c\n", "has none of the formats `mahimahi`"),
        (None, "time_s,rate_mbps\n0,5\n", "is what scenarios read already: write `rate = { kind"),
        (None, b"\xff\xfe\x00", "is not text"),
        ("mahimahi", "10\n5\n", "line 2: 5 ms is before 10 ms"),
        ("mahimahi", "10\nx\n", "line 2: `x` is not a whole number"),
        ("mahimahi", "0\n", "must not be 0"),
        ("mobile", "1 10 0 0 5 1000\n1 5 0 0 5 1000\n", "row 2: 5 ms is before 10 ms"),
        ("mobile", "1 10 0 0 5 0\n", "row 1: the row took 0 ms"),
        ("mobile", "1 10 0 0 5\n", "row 1: 5 columns instead of 6"),
        ("mobile", "1 10 0 0 -5 1000\n", "row 1: the number of bytes `-5` is not a number of at least 0"),
        ("mobile", "1 10 0 0 0 1000\n", "the rate is zero all the time"),
        ("ucc", UCC + "yesterday,0,0,0,1,LTE,-90,8000,100,D\n", "row 2: Timestamp `yesterday`"),
        ("ucc", UCC + "2019.12.14_10.16.30,0,0,0,1,LTE,-90,8000,100,I\n", "no row has a value of DL_bitrate"),
        (
            "ucc",
            UCC
            + "2019.12.14_10.16.30,0,0,0,1,LTE,-90,8000,100,D\n"
            + "2019.12.14_10.16.29,0,0,0,1,LTE,-90,8000,100,D\n",
            "times go back",
        ),
        ("fcc", FCC + fcc_row(1, "t", 0, 5, 0), "row 2: fetch_time 0 is not after 0 us"),
        ("iperf3", '{"intervals": [{}]}', "an interval has no 'sum'"),
        ("iperf3", '{"intervals": []}', "has no intervals; did the test fail?"),
        ("iperf3", '{"intervals": ', "is not JSON"),
    ],
)
def test_what_is_wrong_is_said_with_its_row(written, form, text, message):
    with pytest.raises(UsageError, match="trace") as error:
        trace_import(written(text), form)
    assert message in str(error.value)


def test_unknown_words_are_refused(written):
    with pytest.raises(UsageError, match="format `mahi` is none of `mahimahi`, `mobile`"):
        trace_import(written(TEXTS["fcc"]), "mahi")
    with pytest.raises(UsageError, match="direction `left` is none of `down`, `up`"):
        trace_import(written(TEXTS["fcc"]), direction="left")


def test_a_missing_unit_names_others(written):
    with pytest.raises(UsageError, match="there is no unit `5`; the first ones are 17, 18"):
        trace_import(written(TEXTS["fcc"]), unit="5")


def test_the_command_writes_a_file_and_never_overwrites_one(written, tmp_path, capsys, monkeypatch):
    out = tmp_path / "rates.csv"
    words = ["aqmlab", "trace-import", str(written(TEXTS["fcc"])), "-o", str(out)]
    monkeypatch.setattr("sys.argv", words)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert "3 levels from 2Mbit to 8Mbit, 4857.143kbit on average, 14 s" in said
    assert "assumed: a test used the whole rate" in said
    assert out.read_text().splitlines() == [
        "time_s,rate_bps",
        "0.000000000,8000000",
        "5.000000000,4000000",
        "10.000000000,2000000",
        "12.000000000,2000000",
    ]
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "exists already" in capsys.readouterr().err


TRACES = Path("/usr/share/mahimahi/traces")


@pytest.mark.skipif(not TRACES.is_dir(), reason="mahimahi-traces is not installed")
def test_mahimahis_own_traces_are_read():
    found = sorted(path for path in TRACES.iterdir() if path.suffix in (".down", ".up"))
    assert found
    for path in found:
        assert trace_import(path).mean_bps > 0
