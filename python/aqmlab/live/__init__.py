"""Live runs: the simulator's disciplines between the TCP stacks of this kernel.

Each run is a separate process, :mod:`aqmlab.live.child`. Namespaces and interfaces belong to it,
and the kernel removes them with it. :mod:`aqmlab.live.supervisor` starts it, receives its progress
and reports its end.
"""
