#!/usr/bin/env bash
# Runs fuzz targets for FUZZ_SECONDS each: scripts/fuzz.sh TARGET...
# Input that breaks a target is left in fuzz/artifacts/<target>.
set -euo pipefail
cd "$(dirname "$0")/.."

# Sanitizers need a nightly compiler. Without one libFuzzer runs all the same; what is safe Rust
# panics where it is wrong.
if cargo +nightly --version >/dev/null 2>&1; then
    fuzz=(cargo +nightly fuzz run)
else
    echo "fuzz: no nightly compiler, so no AddressSanitizer (rustup toolchain install nightly --profile minimal)"
    export RUSTC_BOOTSTRAP=1
    fuzz=(cargo fuzz run --sanitizer none)
fi
if ! command -v cargo-fuzz >/dev/null; then
    echo "fuzz: installing cargo-fuzz"
    cargo install --locked cargo-fuzz
fi
# Memory that an input took is kept for the next: to give it back and fetch it again takes longer
# than most inputs.
export MALLOC_TRIM_THRESHOLD_=1000000000 MALLOC_MMAP_THRESHOLD_=1000000000
# An input may take ten seconds of a processor; AddressSanitizer, and a machine that does other
# work, take several times as long.
# What the fuzzer finds stays out of the corpus in the tree: a person picks what is worth keeping
# there.
for target in "$@"; do
    echo "fuzz: $target for ${FUZZ_SECONDS:-60} s"
    mkdir -p "fuzz/found/$target"
    "${fuzz[@]}" "$target" "fuzz/found/$target" "fuzz/corpus/$target" -- \
        -max_total_time="${FUZZ_SECONDS:-60}" -max_len=8192 -timeout=90 -entropic_scale_per_exec_time=1 -print_final_stats=1 -print_funcs=0 -verbosity=0
done
