"""Erasure codes: blocks into symbols and back; ``docs/codes.md`` says which one when.

>>> encoder = Encoder(data, code="raptorq", symbol_size=1280)
>>> decoder = Decoder(len(data), code="raptorq", symbol_size=1280)
>>> for esi in range(7, 7 + encoder.source_symbols + 2):  # whatever came through
...     decoder.add(esi, encoder.symbol(esi))
>>> decoder.decode() == data

Who has time between symbols calls ``decoder.advance()`` after them: then less is left to do when
the last one comes.
"""

from fontis._native import Decoder, Encoder, codes, failure_probability

__all__ = ["Decoder", "Encoder", "codes", "failure_probability"]
