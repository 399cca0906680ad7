"""The ``fontis`` command, as the wheel carries it."""

import sys

from fontis._native import main as run


def main() -> int:
    """Run the command with this process's arguments."""
    import signal

    # Python's own handler would only note the interrupt; the command handles it, or dies of it as
    # it does elsewhere.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return run(["fontis", *sys.argv[1:]], sys.executable)
