#!/usr/bin/env bash
# Runs the tests of the kernels and of the tables of the field in Miri, which says where unsafe code
# does what it must not: scripts/miri.sh [FILTER...]
set -euo pipefail
cd "$(dirname "$0")/.."

if ! cargo +nightly miri --version >/dev/null 2>&1; then
    echo "miri: not here; it comes with a nightly compiler: rustup toolchain install nightly --profile minimal --component miri,rust-src" >&2
    exit 1
fi

# Miri has the instructions that it is told of, whatever this processor has: every kind of register
# is tried.
if [ "$(uname -m)" = x86_64 ]; then
    export RUSTFLAGS="-C target-feature=+avx2,+avx512f,+avx512bw,+gfni"
fi
# Proptest wants to know where it is; nothing else looks at the machine.
export MIRIFLAGS=-Zmiri-disable-isolation
[ $# -gt 0 ] || set -- simd:: gf256::tests::the_tables
cargo +nightly miri test --locked -p fontis-codes --lib -- "$@"
