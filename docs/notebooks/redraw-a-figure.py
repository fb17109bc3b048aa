# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
#   kernelspec:
#     name: python3
#     display_name: Python 3
# ---

# %% [markdown]
# # Redraw a figure of a paper
#
# Figures 1 and 2 of the paper on BLUE (Feng, Kandlur, Saha and Shin, 2001) explain the difference
# between two queues that mark packets. RED reacts to its average backlog: its marks come late and
# in bursts, and the arrivals oscillate. BLUE reacts to overflow and idleness: its probability
# settles, and its marks are steady. The folder `papers/blue` has an experiment with 600 sources as a
# scenario; this notebook runs it with one seed and 200 sources, and draws three seconds of both
# queues. (600 sources fill the link even with the smallest window, and RED marks them all.)

# %%
import sys
import tomllib
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import aqmlab

here = Path.cwd()
papers = (folder / "papers" / "blue" for folder in (here, *here.parents))
paper = next((folder for folder in papers if folder.is_dir()), None)
if paper is None:
    print("run this inside a clone of the repository: `papers/blue` is needed", file=sys.stderr)
    raise SystemExit(2)
scenario = tomllib.loads((paper / "marks.toml").read_text(encoding="utf-8"))
scenario["traffic"][0]["count"] = 200
results = aqmlab.run(scenario, runs=1, report=False)
results

# %% [markdown]
# ## From the recording to curves
#
# `queues` has a row per sample: the backlog, and what has arrived, left and been marked since the
# previous sample.

# %%
FROM_S, UNTIL_S = 52.0, 55.0


def curves(arm):
    """Return the time [s], backlog [kB], arrivals [Mbit/s] and marks per second of an arm."""
    columns = "t_ns, backlog_bytes, arrivals_bytes, marked_packets"
    when = f"t_ns > {FROM_S * 1e9:.0f} AND t_ns <= {UNTIL_S * 1e9:.0f}"
    within = f"WHERE queue = 'bottleneck' AND {when} ORDER BY t_ns"
    table = results.tables.arrays("queues", columns, within, results.runs_of(arm))
    step_s = np.diff(table["t_ns"]).min() / 1e9
    return (
        table["t_ns"] / 1e9,
        table["backlog_bytes"] / 1e3,
        8 * table["arrivals_bytes"] / step_s / 1e6,
        table["marked_packets"] / step_s,
    )


shown = {arm: curves(arm) for arm in ("RED", "BLUE")}

# %% [markdown]
# ## The figure

# %%
labels = ["backlog [kB]", "arrivals [Mbit/s]", "marks per second"]
fig, axes = plt.subplots(3, 2, sharex=True, sharey="row", figsize=(7, 5), layout="constrained")
for column, (arm, (time_s, *rows)) in zip(axes.T, shown.items(), strict=True):
    column[0].set_title(f"{arm}, 200 sources")
    for axis, values, label in zip(column, rows, labels, strict=True):
        axis.plot(time_s, values, linewidth=0.8)
        axis.set_ylabel(label if arm == "RED" else "")
    column[-1].set_xlabel("time [s]")
figure = results.path / "blue-figures-1-and-2.svg"
fig.savefig(figure)
plt.close(fig)

# %% [markdown]
# ## The numbers behind it
#
# The paper says that arrivals oscillate under RED and are steady under BLUE. The coefficient of
# variation of the arrivals, in samples of 20 ms, measures this. One seed is an illustration, not a
# result: `aqmlab paper reproduce blue` scores all findings of the paper with 20 seeds.

# %%
swing = {arm: float(np.std(rows[2]) / np.mean(rows[2])) for arm, rows in shown.items()}
for arm, value in swing.items():
    print(f"{arm:4} arrivals vary by {100 * value:.0f} % of their mean")
