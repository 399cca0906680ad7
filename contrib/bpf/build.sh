#!/usr/bin/env bash
# Makes fld.bpf.o of fld.bpf.c. CC is a clang with the target BPF; the one in the Python package
# ziglang does, as CC="python3 -m ziglang cc -target bpfel-freestanding".
set -euo pipefail
cd "$(dirname "$0")"

readonly CC=${CC:-clang -target bpfel}
readonly OUT=${1:-fld.bpf.o}
STRIP=${STRIP:-$(command -v llvm-strip || true)}
hash=$(sha256sum <fld.bpf.c | cut -d' ' -f1)
# shellcheck disable=SC2086 # A command with its arguments.
$CC -O2 -g -mcpu=v3 -Wall -Werror -fno-ident "-ffile-prefix-map=$PWD=." \
    "-DSOURCE_SHA256=\"$hash\"" -c fld.bpf.c -o "$OUT"
# Keeps the types and drops what only debuggers read.
[ -z "$STRIP" ] || "$STRIP" -g "$OUT"
