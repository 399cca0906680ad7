#!/usr/bin/env bash
# Looks for what unsafe code does that it must not: scripts/miri.sh [FILTER...]
#
# Miri runs the tests of the codes' kernels and of the tables of the field. What calls the system is
# beyond it: AddressSanitizer watches the tests of the testbed, of the loader of congestion controls
# and of the command's allocator. With a filter only Miri runs.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! cargo +nightly miri --version >/dev/null 2>&1; then
    echo "miri: not here; it comes with a nightly compiler: rustup toolchain install nightly --profile minimal --component miri,rust-src" >&2
    exit 1
fi
host=$(rustc -vV | sed -n 's/^host: //p')

# Miri has the instructions that it is told of, whatever this processor has: every kind of register
# is tried.
case $host in
x86_64-*) kernels="-C target-feature=+avx2,+avx512f,+avx512bw,+gfni" ;;
*) kernels= ;;
esac
kernels_only=$#
[ $# -gt 0 ] || set -- simd:: gf256::tests::the_tables
# Proptest wants to know where it is; nothing else looks at the machine.
RUSTFLAGS=$kernels MIRIFLAGS=-Zmiri-disable-isolation cargo +nightly miri test --locked -p fontis-codes --lib -- "$@"
[ "$kernels_only" -eq 0 ] || exit 0

watched() {
    RUSTFLAGS=-Zsanitizer=address CARGO_PROFILE_DEV_DEBUG=line-tables-only \
        cargo +nightly test --locked --target "$host" --target-dir "${CARGO_TARGET_DIR:-target}/asan" "$@"
}
watched -p fontis-base -p fontis-codes --lib
watched -p fontis-cli --bin fontis
watched -p fontis-lab --lib -- testbed kernel
watched -p fontis-lab --test testbed -- an_echo nothing_wrong nodes_of_a_swarm
