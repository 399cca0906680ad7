import random

import pytest

from fontis import UsageError, codes


@pytest.mark.parametrize("name", [name for name in codes.codes() if not name.startswith("counting")])
def test_every_code_rebuilds_a_block_from_what_was_not_lost(name):
    random.seed(1)
    # The prototype's code is made for blocks of 63,536 symbols of a byte.
    size, symbols = (1, 63_536) if name == "legacy-byte" else (64, 200)
    data = random.randbytes(size * symbols - size // 2)
    encoder = codes.Encoder(data, code=name, symbol_size=size)
    decoder = codes.Decoder(len(data), code=name, symbol_size=size)
    esis = [esi for esi in range(min(encoder.esi_limit, 4 * encoder.source_symbols)) if random.random() > 0.2]
    block = None
    for esi in esis:
        decoder.add(esi, encoder.symbol(esi))
        if decoder.needed == 0 and (block := decoder.decode()) is not None:
            break
    assert block == data == decoder.decode()


@pytest.mark.parametrize("name", ["raptorq", "r10", "lt", "reed-solomon", "counting"])
def test_decoding_ahead_changes_no_result(name):
    random.seed(2)
    data = random.randbytes(64 * 300)
    encoder = codes.Encoder(data, code=name, symbol_size=64)
    ahead, plain = (codes.Decoder(len(data), code=name, symbol_size=64) for _ in range(2))
    ahead.advance()
    esis = iter([esi for esi in range(min(encoder.esi_limit, 1200)) if esi >= 300 or random.random() > 0.03])
    block = None
    while block is None:
        while ahead.needed > 0:
            esi = next(esis)
            assert ahead.add(esi, encoder.symbol(esi)) and plain.add(esi, encoder.symbol(esi))
            ahead.advance()
            assert ahead.needed == plain.needed
        block = ahead.decode()
        assert plain.decode() == block
    assert block == (b"" if name == "counting" else data)
    ahead.advance()
    assert ahead.decode() == block


def test_no_more_symbols_are_asked_for_than_are_needed():
    data = bytes(range(256)) * 4
    encoder, decoder = codes.Encoder(data, symbol_size=16), codes.Decoder(len(data), symbol_size=16)
    assert decoder.needed == encoder.source_symbols == 64
    assert decoder.decode() is None
    assert decoder.add(3, encoder.symbol(3)) and not decoder.add(3, encoder.symbol(3))
    assert decoder.needed == 63


def test_wrong_usage_is_an_error_in_the_words_of_the_library():
    with pytest.raises(UsageError, match="there is no code called 'turbo'|there is no code called \"turbo\""):
        codes.Encoder(b"block", code="turbo")
    with pytest.raises(UsageError):
        codes.Decoder(100, symbol_size=10).add(0, b"too short")
    with pytest.raises(UsageError, match="identifiers lie below"):
        codes.Encoder(b"block").symbol(1 << 25)


def test_raptorq_fails_as_seldom_as_the_standard_says():
    assert codes.failure_probability("raptorq", 100, 0) <= 1e-2
    assert codes.failure_probability("raptorq", 100, 2) <= 1e-6
