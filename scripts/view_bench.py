#!/usr/bin/env python3
"""Measures fontis view over large files, in headless Chromium, beside what is aimed at.

Makes, in a temporary folder, a capture of a million packets with the simulator, the same with every
packet in full (a gigabyte), and a qlog of 300 MB, as a transfer of DFCP leaves one; then opens each
with the command that FONTIS names, pans and zooms, and prints the figures. FILES in place of them:
view_bench.py FILE...
"""

import gzip
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
FONTIS = os.environ.get("FONTIS", str(ROOT / "target/release/fontis"))

SCENARIO = """
[scenario]
id = "BIG"
duration = "60 s"
until_done = true
[topology]
rate = "200 Mbit/s"
rtt = "40 ms"
buffer = "1 BDP"
loss = "0.0003%"
[[flow]]
name = "bulk"
protocol = "cubic"
app = "object"
size = "980 MB"
"""

# In the order of viewer/browser/measure.mjs: the figure, what is aimed at, and whether more is
# better.
AIMS = [
    # Of a million packets; larger files are to open, however long it takes.
    ("first picture, s", 3.0, False),
    ("frames a second, median", 30.0, True),
    ("longest frame, ms", 200.0, False),
    ("memory of the tab, MB", 400.0, False),
]
ENHANCED_PACKET = 6


def whole(source, target):
    """Pads each packet of a pcapng to its original length, as if it had been captured in full."""
    data = source.read_bytes()
    at = 0
    with target.open("wb") as out:
        while at < len(data):
            kind, length = struct.unpack_from("<II", data, at)
            if kind == ENHANCED_PACKET:
                head = struct.unpack_from("<7I", data, at)
                captured, original = head[5], head[6]
                size = 32 + original + -original % 4
                out.write(struct.pack("<7I", kind, size, *head[2:5], original, original))
                out.write(data[at + 28 : at + 28 + captured])
                out.write(bytes(size - 32 - captured))
                out.write(struct.pack("<I", size))
            else:
                out.write(data[at : at + length])
            at += length


# Of the qlog: symbols of a block, those of it that are sent, packets between two of feedback, and
# packets of a round trip.
K, OF_A_BLOCK, EVERY, FLIGHT = 721, 735, 40, 400


def qlog(target, size):
    """A qlog of a server that sends blocks of symbols, of which every fiftieth is lost."""
    head = (
        '\x1e{"qlog_format":"JSON-SEQ","qlog_version":"0.3","title":"Fontis DFCP","trace":{"vantage_point":{"type":"server"},'
        '"common_fields":{"ODCID":"656908d6c3b31801","time_format":"relative","protocol_type":["DFCP"]}}}\n'
        '\x1e{"time":999.9,"name":"transport:packet_sent","data":{"header":{"packet_type":"initial"},"raw":{"length":1494},'
        '"frames":[{"frame_type":"open","channel":3,"size":4000000000000,"block_size":1048576,"symbol_size":1456,"code":1}]}}\n'
    )
    sent = (
        '\x1e{"time":%.3f,"name":"transport:packet_sent","data":{"header":{"packet_type":"1RTT","packet_number":%d},'
        '"raw":{"length":1494},"frames":[{"frame_type":"symbols","channel":3,"block":%d,"esi":%d,"count":1,"length":1456}]}}\n'
    )
    received = (
        '\x1e{"time":%.3f,"name":"transport:packet_received","data":{"header":{"packet_type":"1RTT","packet_number":%d},'
        '"raw":{"length":176},"frames":[{"frame_type":"feedback","ack_delay":0.1,"acked_ranges":[%s],"packets":%d,"ce":0},'
        '{"frame_type":"blocks","channel":3,"floor":%d,"limit":%d,"blocks":[]}]}}\n'
        '\x1e{"time":%.3f,"name":"recovery:metrics_updated","data":{"smoothed_rtt":%.3f,"pacing_rate":120000000,'
        '"bytes_in_flight":%d,"loss_rate":0.02}}\n'
    )
    lost = '\x1e{"time":%.3f,"name":"recovery:packet_lost","data":{"header":{"packet_type":"1RTT","packet_number":%d}}}\n'
    with target.open("w", encoding="utf-8") as out:
        written = out.write(head)
        number = 0
        while written < size:
            at = 1000 + number * 0.1
            written += out.write(sent % (at, number, number // OF_A_BLOCK, number % OF_A_BLOCK))
            number += 1
            if number % EVERY == 0 and number > FLIGHT:
                high = number - FLIGHT
                edges = [n for n in range(max(0, high - 500), high) if n % 50 == 0]
                ranges = ",".join(f"[{a + 1},{b - 1}]" for a, b in zip(edges, [*edges[1:], high], strict=True) if b > a + 1)
                floor = high // OF_A_BLOCK
                values = (at, number // EVERY, ranges, high, floor, floor + 8, at, 40 + number % 700 / 100, 300_000 + number % 9000)
                written += out.write(received % values)
                for one in range(high - EVERY, high):
                    if one % 50 == 0:
                        written += out.write(lost % (at, one))


def measure(path, aims=AIMS[1:]):
    command = ["node", str(ROOT / "viewer/browser/measure.mjs"), str(path)]
    output = subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, "FONTIS": FONTIS}).stdout
    figures = dict(line.split(": ", 1) for line in output.splitlines() if ": " in line)
    print(f"{path.name}, {path.stat().st_size / 1e6:.0f} MB, {figures['packets']} packets")
    for name, aim, more in AIMS:
        value = float(figures[name])
        said = ""
        if (name, aim, more) in aims:
            met = value >= aim if more else value <= aim
            said = f"{'at least' if more else 'at most'} {aim:g}: {'met' if met else 'missed'}"
        print(f"  {name:26} {value:8.2f}   {said}", flush=True)


def weight():
    page = (ROOT / "viewer/dist/view.html").read_bytes()
    simulator = (ROOT / "viewer/dist/fontis.wasm").read_bytes()
    pages = [len(gzip.compress(part, 9)) / 1000 for part in (page, simulator)]
    print(f"page {pages[0]:.0f} kB compressed, simulator for the playground {pages[1]:.0f} kB; aimed at: at most 1000 kB")


def main():
    weight()
    if sys.argv[1:]:
        for path in sys.argv[1:]:
            measure(pathlib.Path(path))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        scenario = folder / "big.toml"
        scenario.write_text(SCENARIO)
        subprocess.run([FONTIS, "sim", str(scenario), "--pcap", "-o", name], check=True, stdout=subprocess.DEVNULL)
        capture = folder / "BIG/00000/packets.pcapng"
        measure(capture, AIMS)
        whole(capture, folder / "whole.pcapng")
        measure(folder / "whole.pcapng")
        (folder / "whole.pcapng").unlink()
        qlog(folder / "large.sqlog", 300_000_000)
        measure(folder / "large.sqlog")


if __name__ == "__main__":
    main()
