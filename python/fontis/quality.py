"""The quality of calls and of video, as ITU-T models estimate it.

Start here: :func:`r_factor` is the E-model (G.107) with its default settings, :func:`mos` turns its
factor into a mean opinion score, and :func:`mos_of_video` is G.1070. :func:`call` applies the first
two to the messages of a recording. Delays are in milliseconds, shares of loss between 0 and 1.

>>> from fontis import quality
>>> round(quality.mos(quality.r_factor(delay=100, loss=0.02, codec="g729")), 2)
3.67
"""

import math
from collections.abc import Iterable
from typing import Literal, NamedTuple

from fontis import _native

__all__ = [
    "CODECS",
    "Call",
    "Codec",
    "call",
    "delay_impairment",
    "loss_impairment",
    "mos",
    "mos_of_video",
    "r_factor",
    "r_factor_simple",
    "total_loss",
]


class Codec(NamedTuple):
    """A codec in the E-model (G.113 appendix I)."""

    impairment: float
    """The equipment impairment factor without loss, Ie."""
    robustness: float
    """The robustness against random loss in percent, Bpl."""


CODECS = {
    "g711": Codec(0.0, 4.3),
    "g711-plc": Codec(0.0, 25.1),
    "g729": Codec(11.0, 19.0),
    # The thesis rates Speex with the parameters of G.729.
    "speex": Codec(11.0, 19.0),
}
"""Codecs by name. ``g711-plc`` conceals lost packets."""


def delay_impairment(delay: float) -> float:
    """The impairment by a mean one-way delay in ms: echoes and delay itself, Id (section 7.4)."""
    return _native.delay_impairment(delay)


def loss_impairment(loss: float, codec: str | Codec) -> float:
    """The impairment by a codec and a share of random loss, Ie-eff (equation 7-29)."""
    return _native.loss_impairment(_share(loss), *_codec(codec))


def r_factor(*, delay: float, loss: float = 0.0, codec: str | Codec = "g711-plc", advantage: float = 0.0) -> float:
    """The rating factor of the E-model with the default settings of G.107: 93.2 at best.

    ``delay`` is the one-way delay from mouth to ear in ms, jitter buffer included; ``loss`` the
    share of packets that the decoder does not get; ``advantage`` what users forgive, as 20 for
    satellites in G.107, and 40 in Sarwar's thesis.
    """
    if not delay >= 0:
        raise ValueError(f"a delay of {delay} ms must not be negative")
    return _native.rating(delay, _share(loss), *_codec(codec)) + advantage


def r_factor_simple(*, delay: float, loss: float = 0.0, codec: str | Codec = "g711-plc") -> float:
    """The short form of the thesis's chapter 5: 94.2 less a linear impairment by delay.

    For delays up to some 400 ms; beyond them its line is far below the curve of G.107.
    """
    return _native.rating_simple(delay, _share(loss), *_codec(codec))


def mos(r: float) -> float:
    """The mean opinion score of a rating factor, from 1 to 4.5 (G.107 equation B-4)."""
    return _native.mos(r)


def total_loss(*shares: float) -> float:
    """The share that independent losses leave out together: of the sender, the link, the buffer."""
    return 1 - math.prod(1 - _share(share) for share in shares)


def mos_of_video(*, rate: float, frames: float = 30.0, loss: float = 0.0) -> float:
    """The quality of a video of ``rate`` kbit/s and ``frames`` frames a second (G.1070, Vq).

    The coefficients are those of MPEG-4 with 320 × 240 points on a screen of 4.2 inches.
    """
    if not rate > 0 or not frames > 0:
        raise ValueError(f"a rate of {rate} kbit/s and {frames} frames a second must be above zero")
    return _native.video(rate, frames, _share(loss))


class Call(NamedTuple):
    """The quality of a call, with what it follows from."""

    r: float
    """The rating factor."""
    mos: float
    """The mean opinion score."""
    delay: float
    """From mouth to ear, in ms."""
    loss: float
    """The share of messages that came too late or never."""


def call(
    delays: Iterable[float],
    *,
    codec: str | Codec = "g711-plc",
    buffer: float | None = None,
    packet: float = 20.0,
    advantage: float = 0.0,
    form: Literal["g107", "simple"] = "g107",
) -> Call:
    """The quality of a call whose messages took these times, in seconds; NaN never came.

    That is the column ``delay`` of a recording's table ``message``. A jitter buffer of ``buffer``
    ms delays the fastest message by its length; what comes later than that is lost. Without one,
    the buffer is the shortest with which a message in a hundred comes too late. The speech of a
    packet of ``packet`` ms waits until it is complete.
    """
    delays = list(delays)
    arrived = sorted(1000 * delay for delay in delays if not math.isnan(delay))
    if not arrived:
        raise ValueError("no message arrived: there is no call to rate")
    shortest = arrived[0]
    if buffer is None:
        buffer = arrived[min(len(arrived) - 1, math.ceil(0.99 * len(arrived)))] - shortest
    in_time = sum(delay <= shortest + buffer for delay in arrived)
    loss = 1 - in_time / len(delays)
    delay = shortest + buffer + packet
    factor = r_factor_simple(delay=delay, loss=loss, codec=codec)
    if form == "g107":
        factor = r_factor(delay=delay, loss=loss, codec=codec, advantage=advantage)
    return Call(factor, mos(factor), delay, loss)


def _codec(codec: str | Codec) -> Codec:
    if isinstance(codec, Codec):
        return codec
    if codec not in CODECS:
        raise ValueError(f"there is no codec {codec!r}; there are {', '.join(CODECS)}")
    return CODECS[codec]


def _share(share: float) -> float:
    if not 0 <= share <= 1:
        raise ValueError(f"a share of {share} must be from 0 to 1")
    return share
