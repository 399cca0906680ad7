import pyarrow as pa
import pytest

import fontis
from fontis.congestion import Controller

DUMBBELL = {
    "scenario": {"duration": "20 s", "warmup": "5 s"},
    "topology": {"rate": "10 Mbit/s", "rtt": "40 ms", "buffer": "1 BDP"},
    "flow": [{"name": "mine", "protocol": "newreno"}, {"name": "theirs", "protocol": "newreno"}],
}


class Reno(Controller):
    """RFC 5681, counting bytes."""

    def on_ack(self, ack):
        if not ack.cwnd_limited or ack.phase != "open":
            return
        if self.cwnd < self.ssthresh:
            self.cwnd += ack.acked
        else:
            self.cwnd += self.mss * ack.acked / self.cwnd


def test_a_class_that_does_what_newreno_does_gets_what_newreno_gets():
    recording = fontis.simulate(DUMBBELL, congestion={"mine": Reno})
    shares = [recording.metric("goodput", name) for name in ("mine", "theirs")]
    assert sum(shares) > 9.0 and max(shares) / min(shares) < 1.25
    windows = pa.table(recording.flow).filter(pa.compute.equal(pa.table(recording.flow)["name"], "mine"))["window"].to_pylist()
    assert max(windows) > 2 * min(windows[10:])


def test_a_window_that_never_changes_gives_window_over_round_trip_time():
    class Fixed(Controller):
        def __init__(self, mss, initial_window):
            super().__init__(mss, initial_window)
            self.cwnd = 10 * mss

        def on_congestion(self, now, window):
            pass

    alone = {**DUMBBELL, "flow": DUMBBELL["flow"][:1]}
    recording = fontis.simulate(alone, congestion={"mine": Fixed}, tcp__delayed_ack="0 s", topology__rate="1 Gbit/s")
    assert recording.metric("goodput") == pytest.approx(10 * 1448 * 8e-6 / 0.040, rel=0.01)


def test_a_rate_is_paced_at():
    class Paced(Controller):
        pacing_rate = 2e6

        def on_ack(self, ack):
            self.cwnd = 100 * self.mss
            assert ack.min_rtt <= ack.srtt and ack.una <= ack.nxt

    recording = fontis.simulate({**DUMBBELL, "flow": DUMBBELL["flow"][:1]}, congestion={"mine": Paced})
    assert recording.metric("goodput") == pytest.approx(2.0 * 1448 / 1500, rel=0.02)


def test_the_same_class_gives_the_same_recording():
    first, second = (fontis.simulate(DUMBBELL, congestion={"mine": Reno}, topology__loss="1%") for _ in range(2))
    assert first.metrics == second.metrics


def test_all_flows_of_a_count_are_governed_each_by_its_own():
    at_work = {}

    class Counted(Reno):
        def on_ack(self, ack):
            super().on_ack(ack)
            at_work[id(self)] = self.cwnd

    fontis.simulate({**DUMBBELL, "flow": [{"name": "mine", "count": 3}]}, congestion={"mine": Counted})
    assert len(at_work) == 3 and len(set(at_work.values())) > 1


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"on_ack": lambda self, ack: 1 / 0}, ZeroDivisionError),
        ({"on_ack": lambda self, ack: setattr(self, "cwnd", -1)}, ValueError),
        ({"on_ack": lambda self, ack: setattr(self, "cwnd", "large")}, TypeError),
        ({"__init__": lambda self, mss, window: None}, ValueError),
    ],
)
def test_what_goes_wrong_in_a_class_ends_the_run_as_it_was_raised(body, error):
    with pytest.raises(error):
        fontis.simulate(DUMBBELL, congestion={"mine": type("Wrong", (Controller,), body)})


def test_a_flow_that_is_not_there_is_refused_with_those_that_are():
    with pytest.raises(fontis.UsageError, match="there are mine, theirs"):
        fontis.simulate(DUMBBELL, congestion={"nobody": Reno})
