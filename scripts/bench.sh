#!/usr/bin/env bash
# Measures, and keeps what was measured with the date, the commit and the machine that it was
# measured on.
#
# What runs in virtual time (the examples wan and control, and safety.py, which writes
# docs/safety.md) is the same on every machine. The example fairness times the solver of shares,
# sim_bench.py measures the simulator, ns2_fidelity.py sets it beside ns-2 if that is installed; the
# bench raptorq sets our codec beside others in one process; testbed_bench.py measures the testbed
# where there can be one; viewer.sh opens large files in a browser; bench.py moves real bytes
# between real processes on this one; speed_bench.py does so as fast as the machine can, beside
# QUIC, TCP and a build of ours that does not encrypt; large_bench.py tries many files, a gigabit
# and memory; paths_bench.py races over several paths at once; swarm_bench.py has many nodes fetch
# one file, beside libtorrent; folder_bench.py sets a folder of
# small files beside tar and fetches a sparse file; lab_bench.py measures the Python package.
# BENCH_RUNS and its other settings are explained there.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=results/$(date -u +%Y-%m-%d)
mkdir -p "$folder"
{
    echo "commit $(git describe --always --dirty 2>/dev/null || echo unknown)"
    uname -srm
} | tee "$folder/machine.txt"

# Runs a measurement and keeps what it says. One that misses a figure does not keep the others from
# being run.
missed=()
measure() {
    local name=$1
    shift
    "$@" | tee "$folder/$name.txt" || missed+=("$name")
}

for example in wan control; do
    measure "$example" cargo run --release --locked --quiet -p fontis-sim --example "$example"
done
measure fairness cargo run --release --locked --quiet -p fontis-lab --example fairness
measure raptorq cargo bench --locked --quiet --manifest-path peers/Cargo.toml --target-dir target/peers
cargo build --release --locked --quiet -p fontis-cli
export FONTIS=${FONTIS:-${CARGO_TARGET_DIR:-target}/release/fontis}
measure safety scripts/safety.py "$FONTIS"
measure sim scripts/sim_bench.py
if command -v ns >/dev/null; then
    cp docs/ns2.md "$folder/ns2.md"
    scripts/ns2_fidelity.py "$folder/ns2.md" || missed+=(ns2)
fi
measure view scripts/viewer.sh bench
measure bench scripts/bench.py "$folder"
if [ "$(id -u)" = 0 ]; then
    cargo build --release --locked --quiet -p fontis-lab --example copy_peer
    # A folder of its own: what does not encrypt must not lie where the command is built.
    RUSTFLAGS="--cfg fontis_plaintext" cargo build --release --locked --quiet -p fontis-cli --target-dir target/plaintext
    PLAIN=target/plaintext/release/fontis measure speed scripts/speed_bench.py
fi
if "$FONTIS" testbed shell -- true && scripts/require.sh iperf3=iperf3; then
    cargo build --release --locked --quiet -p fontis-lab --example sleep_lateness
    measure testbed scripts/testbed_bench.py
    measure large scripts/large_bench.py
    measure paths scripts/paths_bench.py
    measure swarm scripts/swarm_bench.py
fi
measure folder scripts/folder_bench.py
PROFILE=release scripts/python.sh install
measure lab target/venv/bin/python scripts/lab_bench.py
echo "kept in $folder"
if [ ${#missed[@]} -gt 0 ]; then
    echo "failed, or missed a figure: ${missed[*]}" >&2
    exit 1
fi
