"""Real programs behind a queue: how each is started, and the number of bytes that it says it has received.

``python tests/python/real_programs.py`` runs all of them and prints the table of ``docs/programs.md``.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import duckdb
import tomli_w

SCENARIO = {
    "title": "A queue for real programs",
    "duration": "4s",
    "topology": {
        "kind": "dumbbell",
        "rate": "20Mbit",
        "delay": "2ms",
        "queue": {"kind": "fq_codel", "limit": "1000p", "ecn": True},
        "reverse_queue": {"kind": "fq_codel", "limit": "1000p", "ecn": True},
    },
}
OBJECTS, OBJECT_BYTES = 60, 20_000
FILE_BYTES = 2_000_000
NGINX = """daemon off; master_process off; pid nginx.pid; error_log error.log;
events {{ worker_connections 256; }}
http {{ access_log off; client_body_temp_path t; proxy_temp_path t; fastcgi_temp_path t; uwsgi_temp_path t;
scgi_temp_path t; types {{ text/html html; text/javascript js; }}
server {{ listen 80; root {folder}; }} server {{ listen 81 http2; root {folder}; }} }}
"""
PAGE = """<!DOCTYPE html><title>x</title><body>{scripts}<p id="n">?</p><script>
onload = () => {{
  const all = performance.getEntriesByType("resource");
  document.getElementById("n").textContent =
    `objects=${{all.length}} bytes=${{all.reduce((sum, one) => sum + one.encodedBodySize, 0)}}`;
}};</script>"""
QUIC = """
import asyncio, os, ssl, sys
from aioquic.asyncio import QuicConnectionProtocol, connect, serve
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import StreamDataReceived
from aioquic.quic.logger import QuicFileLogger
SIZE = {size}
class Server(QuicConnectionProtocol):
    def quic_event_received(self, event):
        if isinstance(event, StreamDataReceived) and event.end_stream:
            self._quic.send_stream_data(event.stream_id, b"x" * SIZE, end_stream=True)
            self.transmit()
async def server():
    configuration = QuicConfiguration(is_client=False, alpn_protocols=["x"])
    configuration.load_cert_chain("{folder}/cert.pem", "{folder}/key.pem")
    await serve("0.0.0.0", 4433, configuration=configuration, create_protocol=Server)
    await asyncio.Event().wait()
async def client():
    log = QuicFileLogger(os.environ["AQMLAB_OUTPUT"])
    configuration = QuicConfiguration(alpn_protocols=["x"], verify_mode=ssl.CERT_NONE, quic_logger=log)
    async with connect(os.environ["AQMLAB_SERVER"], 4433, configuration=configuration) as connection:
        reader, writer = await connection.create_stream()
        writer.write_eof()
        print(len(await reader.read()))
asyncio.run(server() if sys.argv[1] == "server" else client())
"""


@dataclass(frozen=True)
class Case:
    """A program with its server.

    Attributes
    ----------
    name
        What it is, for the table.
    needs
        Programs that must be installed.
    client, server
        The commands; ``{folder}`` stands for the directory with the files of :func:`prepare`.
    told
        Returns the bytes that the client says it has received (or sent, with ``up``) from what it printed.
    protocol, port
        The flows that carry these bytes.
    most
        The largest ratio of the bytes that the router saw as new to those that the client told. With UDP, the
        router counts whole packets.
    """

    name: str
    needs: tuple[str, ...]
    client: Sequence[str]
    told: Callable[[str], int | None]
    server: str = ""
    port: int = 0
    protocol: str = "tcp"
    up: bool = False
    most: float = 1.0
    modules: tuple[str, ...] = ()
    options: Sequence[str] = field(default=())

    def missing(self) -> list[str]:
        """The programs and modules that this machine lacks."""
        lost = [name for name in self.needs if shutil.which(name) is None]
        return lost + [name for name in self.modules if find_spec(name) is None]


def _iperf3(text: str) -> int:
    end = json.loads(text)["end"]
    return int(end["sum_received"]["bytes"] if "sum_received" in end else end["sum"]["bytes"])


def _number(text: str) -> int:
    return int(re.search(r"\d+", text.strip().splitlines()[-1])[0])


def _chromium(text: str) -> int:
    found = re.search(r"objects=(\d+) bytes=(\d+)", text)
    if found is None or int(found[1]) != OBJECTS:
        raise AssertionError(f"the page has not loaded: {text[-500:]}")
    return int(found[2])


_IPERF = ["sh", "-c", 'exec iperf3 -c "$AQMLAB_SERVER" -J -t 2 "$@"', "sh"]
_CURL = [
    "sh",
    "-c",
    'exec curl -sS -o /dev/null -w "%{size_download}\\n" "$@" "http://$AQMLAB_SERVER:$0/file"',
]
_IPERF_SERVER = "iperf3 -s"
_NGINX = "nginx -p {folder} -c {folder}/nginx.conf"
# iperf3 stops counting when its time is over, and what is under way arrives nevertheless: up to a queue.
_LATE = 1.35

CASES: dict[str, Case] = {
    "iperf3": Case("iperf3, TCP", ("iperf3",), _IPERF, _iperf3, _IPERF_SERVER, 5201, up=True, most=_LATE),
    "iperf3-reverse": Case(
        "iperf3, TCP, reverse", ("iperf3",), [*_IPERF, "-R"], _iperf3, _IPERF_SERVER, 5201, most=_LATE
    ),
    "iperf3-8": Case(
        "iperf3, 8 streams",
        ("iperf3",),
        [*_IPERF, "-P", "8"],
        _iperf3,
        _IPERF_SERVER,
        5201,
        up=True,
        most=_LATE,
    ),
    "iperf3-udp": Case(
        "iperf3, UDP at 5 Mbit/s",
        ("iperf3",),
        [*_IPERF, "-u", "-b", "5M", "-l", "1000"],
        _iperf3,
        _IPERF_SERVER,
        5201,
        protocol="udp",
        up=True,
        most=1.06,
    ),
    "curl": Case(
        "curl from nginx, HTTP/1.1", ("curl", "nginx"), [*_CURL, "80"], _number, _NGINX, 80, most=1.01
    ),
    "curl-2": Case(
        "curl from nginx, HTTP/2",
        ("curl", "nginx"),
        [*_CURL, "81", "--http2-prior-knowledge"],
        _number,
        _NGINX,
        81,
        most=1.01,
    ),
    "chromium": Case(
        "Chromium, a page of 60 objects from nginx",
        ("chromium", "nginx"),
        [
            "sh",
            "-c",
            "exec chromium --headless --no-sandbox --disable-gpu --no-first-run --disable-sync"
            ' --disable-background-networking --user-data-dir="{folder}/profile" --dump-dom'
            ' "http://$AQMLAB_SERVER/page.html"',
        ],
        _chromium,
        _NGINX,
        80,
        most=1.03,
    ),
    "aioquic": Case(
        "aioquic, client and server",
        (),
        [sys.executable, "{folder}/quic.py", "client"],
        _number,
        f"{sys.executable} {{folder}}/quic.py server",
        4433,
        protocol="udp",
        most=1.15,
        modules=("aioquic", "cryptography"),
        options=(),
    ),
    "ping": Case(
        "ping, 5 echoes",
        ("ping",),
        ["sh", "-c", 'exec ping -c 5 -i 0.2 -s 100 "$AQMLAB_SERVER"'],
        # Each reply has headers of IP and ICMP, 28 bytes.
        lambda text: 128 * int(re.search(r"(\d+) received", text)[1]),
        protocol="icmp",
    ),
}


def prepare(folder: Path) -> Path:
    """Write the scenario and the files that the programs need; returns the scenario's file."""
    for name in ("t", "profile"):
        (folder / name).mkdir(exist_ok=True)
    (folder / "file").write_bytes(b"x" * FILE_BYTES)
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder), encoding="ascii")
    # A browser abandons an image that it cannot decode, but reads any script to its end.
    scripts = "".join(f'<script async src="{i}.js"></script>' for i in range(OBJECTS))
    (folder / "page.html").write_text(PAGE.format(scripts=scripts), encoding="ascii")
    for i in range(OBJECTS):
        (folder / f"{i}.js").write_text("//" + "x" * (OBJECT_BYTES - 2), encoding="ascii")
    quic = QUIC.replace("{size}", str(FILE_BYTES)).replace("{folder}", str(folder))
    (folder / "quic.py").write_text(quic, encoding="ascii")
    if find_spec("cryptography") is not None:
        _certificate(folder)
    file = folder / "queue.toml"
    file.write_text(tomli_w.dumps(SCENARIO), encoding="utf-8")
    return file


def _certificate(folder: Path) -> None:
    from datetime import UTC, datetime, timedelta

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "server")])
    day = datetime(2020, 1, 1, tzinfo=UTC)
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    made = made.serial_number(7).not_valid_before(day).not_valid_after(day + timedelta(days=36500))
    (folder / "cert.pem").write_bytes(
        made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "key.pem").write_bytes(secret)


def words(case: Case, file: Path, out: Path) -> list[str]:
    """The arguments of ``aqmlab`` that run a case."""
    folder = str(file.parent)
    fill = [word.replace("{folder}", folder) for word in case.client]
    server = ["--server", case.server.replace("{folder}", folder)] if case.server else []
    port = ["--port", str(case.port)] if case.port else []
    options = ["--no-report", "--rtt", "20ms", "-o", str(out), *case.options]
    return ["exec", str(file), *options, *server, *port, "--", *fill]


def flows_of(recording: Path) -> list[dict[str, Any]]:
    """The rows of the table ``found_flows`` of a recording."""
    (manifest,) = recording.rglob("manifest.json")
    found = duckdb.read_parquet(str(manifest.parent / "found_flows.parquet"))
    return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]


def counted(case: Case, flows: Sequence[dict[str, Any]]) -> int:
    """The new bytes that the router has seen in the flows of a case, in the direction of its data."""
    column = f"{'to_server' if case.up else 'to_client'}_new_bytes"
    of_case = [flow for flow in flows if flow["protocol"] == case.protocol]
    if case.port:
        of_case = [flow for flow in of_case if flow["server_port"] == case.port]
    return sum(flow[column] for flow in of_case)


def main() -> None:
    """Run all cases and print the table."""
    from living import run_aqmlab

    rows = [
        "| program | exit code | verdict | flows | bytes it reports | new bytes recorded | ratio |",
        "|---|---:|---|---:|---:|---:|---:|",
    ]
    for case in CASES.values():
        if case.missing():
            rows.append(f"| {case.name} | not installed: {', '.join(case.missing())} | | | | | |")
            continue
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            file = prepare(folder)
            ended = run_aqmlab("root", *words(case, file, folder / "out"), cwd=folder)
            verdict = re.search(r"(NOT FAITHFUL|faithful)", ended.stderr)
            flows = flows_of(folder / "out")
            told, new = case.told(ended.stdout), counted(case, flows)
            said = verdict[0] if verdict else "none"
            ratio = f"{new / told:.3f}" if told else ""
            rows.append(
                f"| {case.name} | {ended.returncode} | {said} | {len(flows)} | {told:,} | {new:,} | {ratio} |"
            )
    sys.stdout.write("\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
