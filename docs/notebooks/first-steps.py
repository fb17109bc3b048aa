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
# # First steps
#
# Two queues share the same traffic: DropTail, and Adaptive RED with a target of 20 ms. The notebook
# runs both with five seeds, reads the answer with its intervals, and draws two figures. It takes a
# few seconds.

# %%
import aqmlab

scenario = {
    "title": "Two queues at one link",
    "duration": "30s",  # simulated time of each run
    "warmup": "10s",  # not measured: flows start, averages settle
    "runs": 5,  # seeds 1 to 5
    "topology": {"kind": "dumbbell", "rate": "10Mbit", "delay": "10ms"},
    "traffic": [
        {
            "name": "ftp",
            "kind": "bulk",
            "count": 20,
            "rtt": {"uniform": ["60ms", "100ms"]},
            "start": {"uniform": ["0s", "5s"]},
        }
    ],
    "record": {"queues": "10ms", "flows": "100ms"},
    "arm": [
        {"name": "DropTail", "topology.queue": {"kind": "droptail", "limit": "2bdp"}},
        {"name": "Adaptive RED", "topology.queue": {"kind": "ared", "limit": "2bdp", "target": "20ms"}},
    ],
}
results = aqmlab.run(scenario)
results

# %% [markdown]
# ## The answer
#
# An answer has every metric of every arm: means over the seeds with their 95 % intervals.

# %%
answer = aqmlab.answer(results)
answer

# %% [markdown]
# Both arms see the same traffic, seed by seed. Differences are therefore paired, and their
# intervals are narrower than those of two separate means.

# %%
saved = answer.difference("DropTail", "Adaptive RED", "queueing_delay_p95_s")
print(f"the 95th percentile falls by {1e3 * saved.mean:.0f} ± {1e3 * saved.half_width:.0f} ms")

# %% [markdown]
# ## Figures
#
# The first figure shows backlog, law and congestion windows over time; the second shows the
# distribution of the queueing delay.

# %%
series = aqmlab.plot(results.path, "series", results.path / "series.svg")
delay = aqmlab.plot(results.path, "delay-cdf", results.path / "delay.svg")

# %% [markdown]
# In Jupyter, `IPython.display.SVG(filename=series)` shows a figure. The recorded tables are arrays:

# %%
(first, *_) = results.runs_of("Adaptive RED")
samples = results.tables.arrays("queues", "t_ns, backlog_packets", "WHERE queue = 'bottleneck'", [first])
print(f"{len(samples['t_ns'])} samples; at most {samples['backlog_packets'].max()} packets wait")
