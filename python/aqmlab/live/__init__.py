"""Live runs: the simulator's disciplines between the TCP stacks of this kernel.

Each run is a separate process, :mod:`aqmlab.live.child`. The process owns the namespaces and
interfaces of the run, and the kernel removes them when it ends. :mod:`aqmlab.live.supervisor` starts
it, receives its progress and reports its end.
"""
