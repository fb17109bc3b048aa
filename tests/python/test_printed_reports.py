"""Printed reports: every cell of every table is present, and none is cut off at the edge."""

from __future__ import annotations

import re
import shutil
import subprocess
from html import unescape

import pytest

import aqmlab
from browser import CHROMIUM, needs_chromium
from conftest import SMALL
from sweeping import TINY
from test_tables_fit import NAMES, twelve_arms

needs_poppler = pytest.mark.skipif(shutil.which("pdftotext") is None, reason="poppler-utils is not installed")


def printed(report, folder):
    """The text of the page as Chromium prints it."""
    pdf = folder / "report.pdf"
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer"]
    command += [
        f"--user-data-dir={folder / 'profile'}",
        "--virtual-time-budget=8000",
        f"--print-to-pdf={pdf}",
    ]
    subprocess.run([*command, f"file://{report}"], check=True, capture_output=True, timeout=120)
    text = subprocess.run(["pdftotext", "-raw", pdf, "-"], check=True, capture_output=True, text=True).stdout
    return pdf, squeezed(text)


def squeezed(text):
    """The text without blanks, soft hyphens and square brackets: a word may continue on a cell's next
    line."""
    return re.sub(r"[\s\u00ad\u00a0\[\]]+", "", text)


def cells(report):
    """The texts of all cells of all tables."""
    page = report.read_text(encoding="utf-8")
    found = []
    for table in re.findall(r"<table.*?</table>", page, flags=re.S):
        for cell in re.findall(r"<t[dh]\b[^>]*>(.*?)</t[dh]>", table, flags=re.S):
            text = squeezed(unescape(re.sub(r"<[^>]+>", " ", cell)))
            found.append(text)
    return [text for text in found if text]


def beyond_the_edge(pdf):
    """Words that are partly outside their page."""
    command = ["pdftotext", "-bbox", pdf, "-"]
    boxes = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    out = []
    for page in re.findall(r"<page.*?</page>", boxes, flags=re.S):
        width = float(re.search(r'width="([\d.]+)"', page)[1])
        words = re.findall(r'<word xMin="([-\d.]+)".*? xMax="([-\d.]+)".*?>(.*?)</word>', page)
        out += [unescape(word) for left, right, word in words if float(left) < 0 or float(right) > width]
    return out


@pytest.fixture(scope="module")
def twelve_report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("printed")
    asked = twelve_arms(SMALL) | {
        "claim": [{"name": "one", "expect": f"goodput_bps{{arm={NAMES[0]}}} > 1000kbit", "strength": "soft"}]
    }
    return aqmlab.run(asked, output=folder / "out", jobs=2).path / "report.html"


@pytest.fixture(scope="module")
def twelve_sweep_report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("store")
    sweep = aqmlab.sweep(twelve_arms(TINY) | {"runs": 2, "claim": []}, store=folder, jobs=2)
    sweep.wait()
    return sweep.report


@needs_chromium
@needs_poppler
@pytest.mark.parametrize("which", ["twelve_report", "twelve_sweep_report"])
def test_paper_has_every_cell_of_twelve_arms(which, request, tmp_path):
    report = request.getfixturevalue(which)
    pdf, text = printed(report, tmp_path)
    wanted = cells(report)
    assert len(wanted) > 12 * 10
    assert {cell for cell in wanted if cell not in text} == set()
    assert beyond_the_edge(pdf) == []


@needs_chromium
@needs_poppler
def test_paper_has_every_cell_of_more_metrics_than_fit(twelve_report, tmp_path):
    from dataclasses import replace

    from aqmlab.metrics import all_metrics
    from aqmlab.reports import write_report

    experiment = aqmlab.load(twelve_report.parent)
    names = tuple(metric.name for metric in all_metrics() if not metric.from_samples)
    report = write_report(replace(experiment, metrics=names), tmp_path / "report.html")
    pdf, text = printed(report, tmp_path)
    wanted = cells(report)
    assert len(wanted) > 12 * 25
    assert {cell for cell in wanted if cell not in text} == set()
    assert beyond_the_edge(pdf) == []
