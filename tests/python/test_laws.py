"""`plot law`: known points of the curves, the response of p to a step, and refused figures."""

from __future__ import annotations

import csv
import math
import re
from pathlib import Path

import numpy as np
import pytest

from aqmlab import aqm_show, plot_law
from aqmlab.errors import UsageError
from aqmlab.laws import Bench, law_curves, law_responses, parse_settings

RED = {"min_th": "5p", "max_th": "15p", "max_p": 0.1, "limit": "100p"}
CHAPTERS = Path(__file__).parents[2] / "docs" / "disciplines"


def curve(name, settings, averages=None):
    (only,) = law_curves(name, settings, averages=averages)
    return only


def test_red_at_known_points():
    just_below = math.nextafter(15.0, 0.0)
    red = curve("red", RED, [0, 4.9, 5, 10, just_below, 15, 30])
    assert red.p == pytest.approx([0, 0, 0, 0.05, 0.1, 1, 1])
    assert red.unit == "packets"
    # Floyd 2000: p rises from max_p at max_th to 1 at twice max_th.
    gentle = curve("red", {**RED, "gentle": True}, [10, 15, 22.5, 30, 40])
    assert gentle.p == pytest.approx([0.05, 0.1, 0.55, 1, 1])


def test_the_axis_shows_both_sides_of_the_jump_and_where_it_ends():
    red = curve("red", RED)
    at = red.avg.tolist().index(15.0)
    assert red.p[at - 1 : at + 1] == pytest.approx([0.1, 1])
    assert red.avg[0] == 0
    assert red.avg[-1] > 15
    assert np.all(np.diff(red.avg) > 0)
    assert np.all(np.diff(red.p) >= 0)


def test_adaptive_kin_begin_with_the_max_p_that_was_given():
    for name, settings in (("ared", {**RED, "gentle": False}), ("scred", RED)):
        at_ten = [curve(name, {**settings, "max_p": max_p}, [10]).p[0] for max_p in (0.04, 0.08)]
        assert at_ten == pytest.approx([0.02, 0.04]), name


def test_presets_have_a_line_each_and_their_own_unit():
    lines = {line.label: line for line in law_curves("red", presets=True)}
    assert {label: line.unit for label, line in lines.items()} == {
        "RED, paper": "packets",
        "RED, ns2": "bytes",
        "RED, linux": "bytes",
    }
    # tc's max_p is 0.02, which is the probability just below the jump. The kernel rounds its rise per byte
    # down to a whole number of units of 2^-32, of which there are more than 1000 here.
    linux = lines["RED, linux"].p
    assert 0.02 * (1 - 1e-3) < max(linux[linux < 1]) <= 0.02


@pytest.fixture(scope="module")
def pi():
    (response,) = law_responses("pi", {"q_ref": "50p", "limit": "400p"})
    return response


def test_pi_rises_all_the_while_that_a_growing_queue_is_above_q_ref(pi):
    above = int(np.argmax(pi.backlog_packets >= 50))
    top = int(np.argmax(pi.backlog_packets))
    assert 0 < above < top
    assert np.all(np.diff(pi.p[above : top + 1]) > 0)
    # The probability does not change before the load does, except for the initial effect of q_old.
    assert pi.t_s[above] > 10
    assert max(pi.p[pi.t_s <= 10]) < 1e-3


def test_pi_integrates_the_distance_from_q_ref_with_its_published_gains(pi):
    """At a constant queue a sample adds (a - b) (q - q_ref): Hollot et al. 2001, 160 samples per second."""
    full = (pi.t_s > 20) & (pi.t_s < 40)
    slope = np.polyfit(pi.t_s[full], pi.p[full], 1)[0]
    distance = np.mean(pi.backlog_packets[full]) - 50
    assert slope == pytest.approx(160 * (1.822e-5 - 1.816e-5) * distance, rel=0.01)


def test_rem_rises_under_overload_and_falls_after_it():
    (rem,) = law_responses("rem", {"q_ref": "10p", "limit": "60p"})
    during, after = (rem.t_s > 11) & (rem.t_s < 40), rem.t_s > 41
    assert np.all(np.diff(rem.p[during]) > 0)
    assert np.all(np.diff(rem.p[after]) <= 0)
    assert rem.p[after][-1] < rem.p[during][-1]


def test_blue_finds_the_probability_that_the_overload_takes():
    """A load of 1.25 is controlled by dropping a fifth; steps of d1 overshoot this only slightly."""
    bench = Bench(load=0.8, step_load=1.25, duration_s=120.0)
    (blue,) = law_responses("blue", {"limit": "60p", "d1": 0.005, "d2": 0.0005}, bench=bench)
    during = (blue.t_s > 50) & (blue.t_s < 80)
    assert np.mean(blue.p[during]) == pytest.approx(0.2, abs=0.03)
    assert np.all(blue.p[blue.t_s < 20] == 0)


@pytest.mark.parametrize("name", ["pie", "pi2", "dualpi2"])
def test_controllers_of_the_delay_find_the_probability_that_the_overload_takes(name):
    """A load of 1.2 is controlled by dropping a sixth, with the square of p' for PI2 and DualPI2."""
    (found,) = law_responses(name)
    during = (found.t_s > 15) & (found.t_s < 40)
    assert np.mean(found.p[during]) == pytest.approx(1 / 6, abs=0.02)
    assert np.all(found.p[found.t_s < 10] == 0)
    # The target is 15 ms, or 20 ms for PI2: 13 or 17 packets of 1500 B at 10 Mbit/s.
    target = {"pie": 12.5, "pi2": 16.7, "dualpi2": 12.5}[name]
    assert np.mean(found.backlog_packets[during]) == pytest.approx(target, abs=4)


def test_the_same_seed_gives_the_same_response_and_another_seed_another():
    bench = Bench(duration_s=20.0)
    one, two, other = (law_responses("blue", {"d1": 0.05}, seed=s, bench=bench)[0] for s in (1, 1, 2))
    assert np.array_equal(one.backlog_packets, two.backlog_packets)
    assert not np.array_equal(one.backlog_packets, other.backlog_packets)


@pytest.mark.parametrize("name", ["red", "pi"])
@pytest.mark.parametrize(("ending", "magic"), [("pdf", b"%PDF"), ("svg", b"<?xml"), ("png", b"\x89PNG")])
def test_figures_are_the_same_bytes_twice(name, ending, magic, tmp_path):
    bench = Bench(duration_s=12.0)
    files = [plot_law(name, None, tmp_path / f"{i}.{ending}", presets=True, bench=bench) for i in (1, 2)]
    first, second = (file.read_bytes() for file in files)
    assert first.startswith(magic)
    assert first == second


def test_axes_have_units(tmp_path):
    curves = plot_law("red", None, tmp_path / "red.svg", presets=True).read_text()
    responses = plot_law("rem", None, tmp_path / "rem.svg", bench=Bench(duration_s=6.0)).read_text()
    for text, labels in (
        (curves, ["[packets]", "[kB]", "probability"]),
        (responses, ["time [s]", "[packets]"]),
    ):
        assert all(label in text for label in labels)


def test_csv_has_what_the_figure_shows(aqmlab_cli, tmp_path):
    words = ["--set", "min_th=5p", "--set", "max_th=15p", "--set", "gentle=true", "--set", "max_p = 0.1"]
    ended = aqmlab_cli("plot", "law", "red", *words, "--out", tmp_path / "red.csv")
    assert (ended.returncode, ended.stdout) == (0, f"{tmp_path}/red.csv\n")
    rows = list(csv.DictReader((tmp_path / "red.csv").read_text().splitlines()))
    points = {float(row["avg"]): float(row["p"]) for row in rows}
    assert (points[15.0], points[30.0]) == pytest.approx((0.1, 1.0))
    assert {row["unit"] for row in rows} == {"packets"}


def test_values_of_set_are_toml_or_text():
    words = ["min_th=5p", "w_q=0.002", "ecn=true", "preset=ns2", 'idle="paper"']
    assert parse_settings(words) == {
        "min_th": "5p",
        "w_q": 0.002,
        "ecn": True,
        "preset": "ns2",
        "idle": "paper",
    }


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["rde"], 2, "there is no discipline `rde`; the disciplines are `red`"),
        (
            ["fred"],
            2,
            "`fred` has no law of this kind to draw; laws against average queue: `red`, `ared`",
        ),
        (["red", "--set", "mint=5p"], 2, 'red: unknown key "mint"; did you mean "min_th"?'),
        (["red", "--set", "min_th=30p", "--set", "max_th=10p"], 2, "min_th `30p` exceeds max_th `10p`"),
        (["red", "--set", "max_p=2"], 2, "max_p"),
        (["pi", "--set", "w=0"], 2, "w"),
        (["rem", "--set", "phi=1"], 2, "phi"),
        (["red", "--set", "max_p"], 2, "`max_p` is not a setting"),
        (["red", "--set", "max_p=0.1", "--set", "max_p=0.2"], 2, "`max_p` is set twice"),
        (["pi", "--load", "1.5"], 2, "is not a step"),
        (["pi", "--duration", "0s"], 2, "is not a valid duration"),
        (["pi", "--seed", "-1"], 2, "the seed `-1`"),
        (["pi", "--rate", "10"], 2, "`10` has no unit; write a rate"),
        (["red", "-o", "{tmp}/x.gif"], 2, "its name must end with one of .pdf, .svg, .png, .csv"),
        (["red", "-o", "/proc/x.csv"], 3, "cannot write"),
        ([], 2, "Missing argument"),
    ],
)
def test_what_cannot_be_drawn_is_said(aqmlab_cli, tmp_path, monkeypatch, words, code, message):
    monkeypatch.chdir(tmp_path)
    ended = aqmlab_cli("plot", "law", *(word.format(tmp=tmp_path) for word in words))
    assert (ended.returncode, ended.stdout) == (code, ""), ended.stderr
    assert message in ended.stderr
    assert "<dict>" not in ended.stderr
    assert "Traceback" not in ended.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_path_may_follow_options_and_is_no_command(aqmlab_cli, experiment, tmp_path):
    ended = aqmlab_cli("plot", "-o", tmp_path / "a.svg", experiment.path, "series")
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "a.svg").is_file()


@pytest.mark.parametrize("chapter", ["red", "pi", "rem", "blue"])
def test_the_figure_of_a_chapter_is_there_and_its_command_works(chapter, aqmlab_cli, tmp_path):
    text = (CHAPTERS / f"{chapter}.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^ {4}aqmlab (plot law .*) -o docs/images/(law-.*\.svg)$", text, re.MULTILINE)
    words, file = command
    assert f"](../images/{file})" in text
    image = (CHAPTERS.parent / "images" / file).read_text(encoding="utf-8")
    assert f"{aqm_show(chapter)['title']}: law" in image
    ended = aqmlab_cli(*words.split(), "-o", tmp_path / file)
    assert ended.returncode == 0, ended.stderr
    # Text stays text: a figure contains the same words with every version of matplotlib.
    drawn, kept = (
        re.findall(r">([^<>]*[a-z][^<>]*)</text>", t) for t in ((tmp_path / file).read_text(), image)
    )
    assert drawn == kept


def test_a_wrong_call_from_python_is_a_usage_error():
    with pytest.raises(UsageError, match="no law of this kind"):
        law_responses("red")
    with pytest.raises(UsageError, match="no law of this kind"):
        law_curves("pi")


def test_a_law_of_unstable_gains_is_drawn_with_a_warning(aqmlab_cli, tmp_path):
    gains = [f"--set={word}" for word in ("a=0.1", "b=0.05", "flows=2", "rtt=100ms")]
    words = ("plot", "law", "pi", "--duration", "6s", "--out", tmp_path / "pi.csv")
    warned = aqmlab_cli(*words, *gains)
    assert warned.returncode == 0
    assert warned.stderr.startswith("warning: the gains of PI at `bottleneck` are unstable for 2 flows")
    assert warned.stderr.count("warning") == 1
    assert aqmlab_cli(*words).stderr == "", "that the step exceeds the link is meant"


def test_a_warning_about_a_preset_names_it(aqmlab_cli, tmp_path):
    ended = aqmlab_cli("plot", "law", "red", "--presets", "--set=ecn=true", "--out", tmp_path / "red.csv")
    assert ended.stderr.splitlines() == [
        f'warning: arm "RED, {preset}": the queue of `bottleneck` marks packets, '
        "but no flow that crosses it uses ECN"
        for preset in ("paper", "ns2", "linux")
    ]
