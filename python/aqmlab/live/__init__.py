"""Live runs: the same disciplines between the TCP stacks of this kernel.

Each run is a process of its own, :mod:`aqmlab.live.child`, that nothing outlives: namespaces and interfaces
belong to it, and the kernel removes them with it. :mod:`aqmlab.live.supervisor` starts it, hears how far it
is and reports how it ended.
"""
