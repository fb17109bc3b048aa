"""Pages as rendered by Chromium."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")

FROM_THE_PAGE = 101845102
"""The annotation of a page's own requests in Chromium's network log (blink_resource_loader)."""


def browse(file, folder, width=1280, scheme="light"):
    """The page's DOM, its console lines, and the URLs that it requested."""
    log = folder / "net.json"
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"]
    command += ["--disable-background-networking", "--disable-component-update", "--disable-default-apps"]
    command += [
        f"--user-data-dir={folder / 'profile'}",
        f"--window-size={width},2400",
        f"--log-net-log={log}",
    ]
    command += ["--enable-logging=stderr", "--virtual-time-budget=8000", "--dump-dom"]
    command += [f"--blink-settings=preferredColorScheme={0 if scheme == 'dark' else 1}", f"file://{file}"]
    ended = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    console = [line for line in ended.stderr.splitlines() if "CONSOLE" in line]
    requests = re.findall(
        r'\{[^{}]*"traffic_annotation":(\d+),"url":"([^"]+)"', log.read_text(encoding="utf-8")
    )
    fetched = {url for annotation, url in requests if int(annotation) == FROM_THE_PAGE}
    return ended.stdout, console, fetched


def data_of(page):
    """The data from which the page's scripts draw figures."""
    return json.loads(re.search(r'id="report-data">(.*?)</script>', page, flags=re.S)[1])


def ask(page, script, folder, width=1280):
    """The value of a JavaScript expression after the page's charts are drawn; can wait for a condition."""
    # The page's own policy would forbid the test's script.
    open_page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
    asking = f"""<script>
    const show = (value) => {{ const pre = document.createElement("pre"); pre.id = "answer";
      pre.textContent = JSON.stringify(value); document.body.append(pre); }};
    aqmlab.ready.then(async () => show(await ({script}))).catch((error) => show(String(error.stack)));
    </script></body>"""
    file = folder / "asked.html"
    file.write_text(open_page.replace("</body>", asking), encoding="utf-8")
    dom, console, _ = browse(file, folder, width)
    found = re.search(r'<pre id="answer">(.*?)</pre>', dom, flags=re.S)
    assert found, console
    return json.loads(html.unescape(found[1]))
