"""``python -m aqmlab.live``: the process of one live run, started by :mod:`aqmlab.live.supervisor`."""

from aqmlab.live.child import main

if __name__ == "__main__":
    main()
