import math

import pytest

from fontis import quality


def test_the_default_rating_is_that_of_the_standard():
    assert quality.r_factor(delay=0) == pytest.approx(93.2, abs=0.05)


@pytest.mark.parametrize(("r", "score"), [(90, 4.34), (80, 4.03), (70, 3.60), (60, 3.10), (50, 2.58)])
def test_scores_are_those_of_table_4_2(r, score):
    assert quality.mos(r) == pytest.approx(score, abs=0.01)


def test_scores_end_at_both_ends():
    assert (quality.mos(-5), quality.mos(120)) == (1.0, 4.5)


@pytest.mark.parametrize(
    ("codec", "delay", "loss", "score"),
    # The thesis, table 5.2: without a buffer, and with one of four packets of 20 ms.
    [("g711-plc", 100, 0.05, 3.87), ("g729", 100, 0.05, 3.27), ("g711-plc", 180, 0, 4.33), ("g729", 180, 0, 3.96)],
)
def test_table_5_2_follows_from_the_short_form(codec, delay, loss, score):
    rating = quality.r_factor_simple(delay=delay, loss=loss, codec=codec)
    assert quality.mos(rating) == pytest.approx(score, abs=0.011)


@pytest.mark.parametrize(
    ("delay", "loss", "rating"),
    # Losses of table 4.5 for G.711 over UDP and CCID 4, without concealment, A = 40; besides, the
    # jitter buffer loses .01 %.
    [(815, 0.0015, 79.1), (815, 0.0201, 52.1), (930, 0.0015, 76.8), (930, 0.0201, 49.8)],
)
def test_ratings_of_chapter_4_follow_from_the_full_form(delay, loss, rating):
    loss = quality.total_loss(loss, 0.0001)
    assert quality.r_factor(delay=delay, loss=loss, codec="g711", advantage=40) == pytest.approx(rating, abs=0.06)


@pytest.mark.parametrize(("rate", "score"), [(898, 4.19), (314, 2.76)])
def test_video_of_table_5_3(rate, score):
    assert quality.mos_of_video(rate=rate) == pytest.approx(score, abs=0.005)


@pytest.mark.parametrize(("percent", "score"), [(0, 4.27), (0.5, 3.80), (1, 3.40), (2, 2.76), (4, 1.95), (8, 1.27), (10, 1.15)])
def test_video_with_losses(percent, score):
    assert quality.mos_of_video(rate=1000, loss=percent / 100) == pytest.approx(score, abs=0.006)


def test_losses_of_three_places_add_up():
    assert quality.total_loss(0.1, 0.2, 0.5) == pytest.approx(1 - 0.9 * 0.8 * 0.5)


def test_a_call_loses_what_comes_after_its_buffer():
    delays = [0.1] * 90 + [0.15] * 5 + [0.3] * 3 + [math.nan] * 2
    short = quality.call(delays, buffer=60)
    assert short.loss == pytest.approx(0.05) and short.delay == pytest.approx(180)
    longer = quality.call(delays, buffer=200)
    assert longer.loss == pytest.approx(0.02) and longer.delay == pytest.approx(320)


def test_what_cannot_be_is_refused():
    for wrong in (
        lambda: quality.r_factor(delay=-1),
        lambda: quality.r_factor(delay=1, loss=2),
        lambda: quality.r_factor(delay=1, codec="g999"),
        lambda: quality.mos_of_video(rate=0),
        lambda: quality.call([math.nan]),
    ):
        with pytest.raises(ValueError, match=r"must|there is no|no message"):
            wrong()
