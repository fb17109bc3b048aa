"""The tables of docs/performance.md, from results."""

GOALS = {
    "recovery": "SACK, with and without RACK-TLP and PRR, costs at most 1.3 times NewReno per delivered segment",
    "hops": "at most 350 per packet-hop and 2,100 per segment with its ACK at 100 and 1000 flows",
    "memory": "at most 640 bytes per flow",
}


RECORDINGS = {
    "off": "",
    "10ms": "; queues recorded every 10 ms, flows every 500 ms",
    "10ms-queues": "; queues recorded every 10 ms",
    "10ms-all": "; queues and flows recorded every 10 ms",
}


def table(head: list[str], rows: list[list[object]]) -> str:
    """A Markdown table; the first column is text, the others are numbers."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines) + "\n"


def thousands(value: float) -> str:
    return f"{value:,.0f}"


def with_prefix(items: dict, prefix: str) -> list[tuple[list[str], dict]]:
    """The items whose names begin with `prefix`, each with the remaining parts of its name."""
    found = [(name.split("/"), figures) for name, figures in items.items() if name.split("/")[0] == prefix]
    return [(parts[1:], figures) for parts, figures in found if "skipped" not in figures]


def about_table(about: dict) -> str:
    rows = [[key, about[key]] for key in ("date", "commit", "machine", "compiler", "build")]
    counting = {"perf": "perf stat, user space", "callgrind": "valgrind --tool=callgrind"}[about["counter"]]
    return table(["", ""], [*rows, ["instructions", counting], ["load at the end", about["load"]]]).replace(
        "---:", "---"
    )


def hops_table(items: dict) -> str:
    head = [
        "scene",
        "instructions per hop",
        "per segment with ACK",
        "CPU ns per hop",
        "events per hop",
        "hops/s simulated",
        "dropped",
    ]
    rows = []
    for kind, label in (
        ("hops", "{0}, {1} flows"),
        ("hops-fast", "{0}, {1} flows, {2} Gbit/s"),
        ("series", "{0}, {1} flows, two bottlenecks"),
    ):
        for parts, f in with_prefix(items, kind):
            discipline, flows, record = parts
            label_text = label.format(discipline, thousands(int(flows)), int(flows) // 10_000)
            share = f"{100 * f['dropped'] / max(1, f['dropped'] + f['delivered']):.1f} %"
            rate = thousands(f["packet_hops"] / f["simulated_s"])
            rows.append(
                [
                    f"{label_text}{RECORDINGS[record]}",
                    thousands(f["per_hop"]),
                    thousands(f["per_segment"]),
                    f["cpu_ns_per_hop"],
                    f["events_per_hop"],
                    rate,
                    share,
                ]
            )
    return table(head, rows)


def recovery_table(items: dict) -> str:
    """The cost of a delivered segment by variant of TCP, including retransmissions and dropped packets."""
    rows = []
    for (variant, loss), f in with_prefix(items, "recovery"):
        newreno = items.get(f"recovery/newreno/{loss}")
        if newreno:
            share = f"{100 * f['dropped'] / max(1, f['dropped'] + f['delivered']):.1f} %"
            ratio = f"{f['per_segment'] / newreno['per_segment']:.2f}"
            rows.append([f"{loss}: {variant}", share, thousands(f["per_segment"]), ratio])
    head = ["loss: TCP", "dropped", "instructions per delivered segment with its ACK", "ratio to NewReno"]
    return table(head, rows) if rows else "Not measured.\n"


def changing_table(items: dict) -> str:
    """The cost of a packet-hop while the bottleneck's rate changes."""
    rows = []
    constant = items.get("changing/constant")
    for (course,), f in with_prefix(items, "changing"):
        ratio = f"{f['per_hop'] / constant['per_hop']:.2f}" if constant else ""
        rows.append([course, thousands(f["per_hop"]), ratio, f["events_per_hop"]])
    head = ["the bottleneck's rate", "instructions per hop", "ratio to a constant rate", "events per hop"]
    return table(head, rows) if rows else "Not measured.\n"


def recording_table(items: dict) -> str:
    rows = []
    for parts, with_samples in with_prefix(items, "hops"):
        discipline, flows, record = parts
        off = items.get(f"hops/{discipline}/{flows}/off")
        if record != "off" and off:
            rows.append(
                [
                    f"{discipline}, {thousands(int(flows))} flows{RECORDINGS[record]}",
                    f"{with_samples['per_hop'] / off['per_hop'] - 1:+.1%}",
                ]
            )
    return table(["scene", "instructions with recording"], rows)


def scale_table(items: dict) -> str:
    rows = []
    for (discipline, flows, record), many in [*with_prefix(items, "hops"), *with_prefix(items, "hops-fast")]:
        few = items.get(f"hops/{discipline}/1000/off")
        if few and record == "off" and int(flows) > 1000:
            rate = many["packet_hops"] / many["simulated_s"] / (few["packet_hops"] / few["simulated_s"])
            label = f"{discipline}, {thousands(int(flows))} flows, {rate:.1f} times the hops per second"
            ratios = (many[key] / few[key] for key in ("per_hop", "cpu_ns_per_hop"))
            rows.append([label, *(f"{ratio:.2f}" for ratio in ratios)])
    return table(["scene", "instructions relative to those with 1000 flows", "CPU time"], rows)


def discipline_table(items: dict) -> str:
    rows = []
    for parts, f in with_prefix(items, "discipline"):
        *name, backlog = parts
        rows.append(
            ["/".join(name), thousands(int(backlog)), thousands(f["instructions"]), f"{f['marked']:.1%}"]
        )
    return table(["discipline", "backlog", "instructions per packet", "marked"], rows)


def memory_table(items: dict) -> str:
    rows = []
    for what, f in items.get("memory", {}).items():
        megabytes = (f"{f[key] / 1e6:.1f} MB" for key in ("rss_10k", "rss_100k"))
        rows.append([what, thousands(f["established_100k"]), *megabytes, f"**{f['bytes_per_flow']:.0f}**"])
    columns = ["100,000 flows", "established", "resident with 10,000", "with 100,000", "bytes per flow"]
    return table(columns, rows) if rows else "Not measured.\n"


def peers_table(items: dict) -> str:
    names = {"ns2": "ns-2.35", "ns3": "ns-3 (Debian)"}
    rows = []
    for kind, what in (("ratio", "event loop"), ("ratio-with-setup", "whole process, set-up included")):
        for (peer, discipline, flows), f in with_prefix(items, kind):
            rows.append(
                [
                    f"{names[peer]}, {discipline}, {thousands(int(flows))} flows, {what}",
                    f"**{f['median']}**",
                    f"{f['least']} to {f['most']}",
                    f["pairs"],
                    f["ours_cpu_s"],
                    f["theirs_cpu_s"],
                ]
            )
    for (peer, queue), f in with_prefix(items, "ratio-lot"):
        what = f"{names[peer]}, parking lot with PackMime-HTTP, {queue}, {f['simulated_s']} s, whole process"
        rows.append(
            [
                what,
                f"**{f['median']}**",
                f"{f['least']} to {f['most']}",
                f["pairs"],
                f["ours_cpu_s"],
                f["theirs_cpu_s"],
            ]
        )
    ratios = table(["peer", "their CPU time / ours", "range", "pairs", "ours, s", "theirs, s"], rows)
    counts = [
        [f"{names[peer]}, {discipline}, {thousands(int(flows))} flows", thousands(f["per_hop"])]
        for (peer, discipline, flows), f in with_prefix(items, "instructions")
    ]
    if ours := items.get("hops/red/100/off"):
        counts.insert(0, ["aqmlab, red, 100 flows", thousands(ours["per_hop"])])
    return f"{ratios}\n{table(['event loop', 'instructions per packet-hop'], counts)}"


def work_table(items: dict) -> str:
    rows = []
    for (peer, discipline, flows), f in with_prefix(items, "work"):
        for key in ("packet_hops", "delivered", "dropped"):
            ours, theirs = (f[side][key] / f["simulated_s"] for side in ("ours", "theirs"))
            change = f"{theirs / ours - 1:+.1%}" if ours else ""
            rows.append(
                [
                    f"{peer}, {discipline}, {flows} flows: {key.replace('_', '-')} per simulated second",
                    thousands(ours),
                    thousands(theirs),
                    change,
                ]
            )
    return table(["work", "ours", "theirs", "difference"], rows)


def hotspots_table(items: dict) -> str:
    found = items.get("hotspots/red/100", {})
    rows = [[f"`{symbol}`", f"{share:.1f} %"] for symbol, share in found.items() if symbol != "skipped"]
    return table(["function, with what is inlined into it", "instructions"], rows)


def start_table(items: dict) -> str:
    rows = []
    # An older file of the same build may hold fewer figures.
    if "empty_report_cpu_s" in (start := items.get("start-up", {})):
        rows.append(["`aqmlab --help`, CPU time", f"{start['help_cpu_s']} s"])
        rows.append(["a minimal run, CPU time", f"{start['empty_run_cpu_s']} s"])
        rows.append(["the same run with its report, CPU time", f"{start['empty_report_cpu_s']} s"])
    if "median" in (seeds := items.get("two-seeds", {})):
        rows.append(
            [
                "two seeds on two processors, wall time relative to one seed",
                f"{seeds['median']} ({seeds['least']} to {seeds['most']})",
            ]
        )
    if "allocations" in (steady := items.get("allocations/red/100", {})):
        rows.append(
            [
                f"allocations in {thousands(steady['packet_hops'])} packet-hops when steady",
                steady["allocations"],
            ]
        )
    return table(["", ""], rows)


def markdown(about: dict, items: dict) -> str:
    """All tables, with their headings."""
    sections = [
        ("What was measured", about_table(about)),
        (f"Event loop (goal: {GOALS['hops']})", hops_table(items)),
        ("Many flows (goal: a hop costs at most 3 times as much as with 1000)", scale_table(items)),
        (f"Variants of TCP (goal: {GOALS['recovery']})", recovery_table(items)),
        ("Rates that change (RED, 100 flows)", changing_table(items)),
        ("Recording (goal: at most +10 %)", recording_table(items)),
        ("Each discipline alone (goal: DropTail at most 120, RED at most 220)", discipline_table(items)),
        (f"Memory (goal: {GOALS['memory']})", memory_table(items)),
        (
            "Peers (goals: ns-2 at least 6, with set-up at least 25, on the parking lot 60; Debian's ns-3 at least 200)",
            peers_table(items),
        ),
        ("Do the peers do the same work?", work_table(items)),
        ("Where the instructions go (RED, 100 flows, set-up included)", hotspots_table(items)),
        ("Start-up and processors (goals: 0.25 s, 0.4 s, 1.15)", start_table(items)),
    ]
    return "\n".join(f"### {title}\n\n{text}" for title, text in sections)
