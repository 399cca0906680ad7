import asyncio
import random
import re
import socket
import threading

import pytest

import fontis
from fontis import aio

LOOPBACK = "127.0.0.1:0"


@pytest.fixture
def content(tmp_path):
    folder = tmp_path / "served"
    folder.mkdir()
    (folder / "map.bin").write_bytes(random.Random(1).randbytes(3_000_000))
    return folder


def of(url, path):
    return url.replace("/?", f"/{path}?")


def test_a_file_is_fetched_verified_and_reported(content, tmp_path):
    seen, served = [], []
    with fontis.serve(content, listen=LOOPBACK, events=served.append) as server:
        report = fontis.get(of(server.urls[0], "map.bin"), tmp_path / "copy.bin", progress=seen.append)
    assert (tmp_path / "copy.bin").read_bytes() == (content / "map.bin").read_bytes()
    assert (report.bytes, report.path, report.name) == (3_000_000, tmp_path / "copy.bin", "map.bin")
    assert [event["event"] for event in seen][:2] == ["connected", "started"]
    assert seen[1]["bytes"] == 3_000_000
    assert {event["event"] for event in served} >= {"connected", "started"}


def test_files_are_sent_to_who_receives(content, tmp_path):
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    with fontis.receive(inbox, listen=LOOPBACK) as receiver:
        reports = fontis.send([content / "map.bin", content], receiver.urls[0])
    assert [report.bytes for report in reports] == [3_000_000, 3_000_000]
    assert (inbox / "served/map.bin").read_bytes() == (inbox / "map.bin").read_bytes()


def test_errors_have_the_words_of_the_command(content, tmp_path):
    with pytest.raises(fontis.UsageError, match="fontis://"):
        fontis.get("http://example.org/")
    with fontis.serve(content, listen=LOOPBACK) as server:
        with pytest.raises(fontis.FontisError, match="no such file or folder"):
            fontis.get(of(server.urls[0], "none.bin"), tmp_path, retries=0)
        url = of(server.urls[0], "map.bin")
        (tmp_path / "there").write_bytes(b"")
        with pytest.raises(fontis.FontisError, match="there"):
            fontis.get(url, tmp_path / "there")
    with socket.socket(type=socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        nobody = re.sub(r":\d+/", f":{silent.getsockname()[1]}/", url)
        with pytest.raises(fontis.Unreachable, match="no answer"):
            fontis.get(nobody, tmp_path, timeout="200ms", retries=0)


def test_a_callback_that_raises_ends_the_transfer_with_its_exception(content, tmp_path):
    def refuse(event):
        if event["event"] == "started":
            raise RuntimeError("not this one")

    with fontis.serve(content, listen=LOOPBACK) as server, pytest.raises(RuntimeError, match="not this one"):
        fontis.get(of(server.urls[0], "map.bin"), tmp_path / "copy.bin", progress=refuse)
    assert not (tmp_path / "copy.bin").exists()


def test_a_transfer_that_is_stopped_goes_on_later(content, tmp_path):
    (content / "map.bin").write_bytes(random.Random(2).randbytes(4_000_000))
    stop = fontis.Stop()

    def enough(event):
        if event["event"] == "moved" and event["done"] > 500_000:
            stop.set()

    with fontis.serve(content, listen=LOOPBACK, rate="20 Mbit/s") as server:
        with pytest.raises(KeyboardInterrupt):
            fontis.get(of(server.urls[0], "map.bin"), tmp_path / "copy.bin", progress=enough, stop=stop)
        assert not (tmp_path / "copy.bin").exists()
        report = fontis.get(of(server.urls[0], "map.bin"), tmp_path / "copy.bin")
    assert report.resumed > 0 and (tmp_path / "copy.bin").read_bytes() == (content / "map.bin").read_bytes()


def test_asyncio_fetches_beside_others_and_calls_back_in_its_loop(content, tmp_path):
    threads = set()

    async def fetch_twice(url):
        def see(_):
            threads.add(threading.current_thread())

        await asyncio.gather(*(aio.get(url, tmp_path / name, progress=see) for name in ("a", "b")))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(aio.get(url, tmp_path / "c", timeout="60s"), 0.0)

    with fontis.serve(content, listen=LOOPBACK) as server:
        asyncio.run(fetch_twice(of(server.urls[0], "map.bin")))
    assert threads == {threading.main_thread()}
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
