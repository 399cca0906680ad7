#!/usr/bin/env bash
# Measures, and keeps what was measured with the date, the commit and the machine that it was measured on.
#
# What runs in virtual time (the examples wan and control) is the same on every machine; bench.py moves real bytes
# between real processes on this one, and the bench raptorq sets our codec beside others in one process. BENCH_RUNS and its other settings are explained there.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=results/$(date -u +%Y-%m-%d)
mkdir -p "$folder"
{
    echo "commit $(git describe --always --dirty 2>/dev/null || echo unknown)"
    uname -srm
} | tee "$folder/machine.txt"
for example in wan control; do
    cargo run --release --locked --quiet -p fontis-sim --example "$example" | tee "$folder/$example.txt"
done
cargo bench --locked --quiet -p fontis-codes --bench raptorq | tee "$folder/raptorq.txt"
cargo build --release --locked --quiet -p fontis-cli
export FONTIS=${FONTIS:-${CARGO_TARGET_DIR:-target}/release/fontis}
scripts/bench.py "$folder" | tee "$folder/bench.txt"
echo "kept in $folder"
