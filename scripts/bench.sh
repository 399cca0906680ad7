#!/usr/bin/env bash
# Measures, and keeps what was measured with the date, the commit and the machine that it was measured on.
#
# What there is so far runs in virtual time, so its figures are the same on every machine: 100 MB over 100 Mbit/s and
# 100 ms at six loss rates, beside the path's bound.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=results/$(date -u +%Y-%m-%d)
mkdir -p "$folder"
{
    echo "commit $(git describe --always --dirty 2>/dev/null || echo unknown)"
    uname -srm
} | tee "$folder/machine.txt"
cargo run --release --locked --quiet -p fontis-sim --example wan | tee "$folder/wan.txt"
echo "kept in $folder"
