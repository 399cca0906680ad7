"""Congestion control of your own, as a class that governs TCP flows in the simulator.

>>> class Half(Controller):
...     def on_ack(self, ack):
...         if ack.cwnd_limited and ack.phase == "open":
...             self.cwnd += self.mss * ack.acked / self.cwnd
>>> fontis.simulate("scenarios/basic/fifo.toml", congestion={"flow1": Half})
"""

from fontis._native import Ack

__all__ = ["Ack", "Controller"]


class Controller:
    """Controls one sender, which calls it for each event and then reads its attributes.

    This one keeps its window, halves it when congestion is recognised, and begins again at one
    segment after a timeout. What lost segments are and when they are sent again is the sender's
    business. An exception ends the run. One is made when a connection begins, and one more when its
    segment size is agreed, which then does the work.
    """

    #: The congestion window in bytes; less than a segment counts as one.
    cwnd: float
    #: The slow start threshold in bytes. Only recordings and pacing without a rate look at it.
    ssthresh: float
    #: The rate to pace at in bit/s, if it has one.
    pacing_rate: float | None = None

    def __init__(self, mss: int, initial_window: int) -> None:
        """Begin with segments of ``mss`` bytes and a window of ``initial_window`` bytes."""
        self.mss = mss
        self.cwnd = initial_window
        self.ssthresh = 2.0**62

    def on_ack(self, ack: Ack) -> None:
        """Take an acknowledgement."""

    def on_congestion(self, now: float, window: int) -> None:  # noqa: ARG002
        """Take a loss or a mark, once a round trip at most.

        ``window`` is cwnd, or the bytes in flight if they were fewer.
        """
        self.ssthresh = max(window / 2, 2 * self.mss)
        self.cwnd = self.ssthresh

    def on_timeout(self, now: float, window: int) -> None:  # noqa: ARG002
        """Take it that the retransmission timer expired: all that is outstanding counts as lost."""
        self.ssthresh = max(window / 2, 2 * self.mss)
        self.cwnd = self.mss

    def on_idle(self, restart: int) -> None:
        """Take the end of an idle time beyond a timeout; cwnd becomes at most ``restart`` bytes."""
        self.cwnd = min(self.cwnd, restart)
