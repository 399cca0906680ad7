#!/usr/bin/env bash
# Runs the random tests at length, and says at the end how long each took and whether it passed:
# scripts/soak.sh [STEP...], all steps if none is named. A step that fails names its seed, and does
# not keep the others from being run.
#
# SOAK_PART=100 runs a hundredth of each. All of it takes days on two processors.
set -uo pipefail
cd "$(dirname "$0")/.."

cargo=${CARGO:-cargo}
part=${SOAK_PART:-1}
[[ $part =~ ^[1-9][0-9]*$ ]] || { echo "soak: SOAK_PART is a whole number from 1 on, not $part" >&2; exit 2; }
target=${CARGO_TARGET_DIR:-target}
all=(whole mutants simulator safety tcp sctp kills large hostile flood codes channels kernels peers)

# The number of runs: this part of all of them.
runs() {
    echo $((($1 + part - 1) / part))
}

try() {
    "$cargo" test --release --locked "$@"
}

whole() { FONTIS_RUNS=$(runs 400000) try -p fontis --lib -- --nocapture whole; }
mutants() { python3 scripts/mutants.py --seeds "$(runs 1000)"; }
simulator() { FONTIS_RUNS=$(runs 10000) try -p fontis-sim --test main -- --nocapture transfers scenario; }
safety() { FONTIS_RUNS=$(runs 2000) try -p fontis-sim --test main safety -- --nocapture; }
tcp() { FONTIS_RUNS=$(runs 20000) try -p fontis-proto --test main tcp; }
sctp() { FONTIS_RUNS=$(runs 10000) try -p fontis-proto --test main sctp::a; }
kills() { FONTIS_RUNS=$(runs 1000) try -p fontis-cli --test transfer killed_again -- --nocapture; }
large() { try -p fontis-cli --test transfer -- --ignored; }
hostile() { FONTIS_HOSTILE=$(runs 10000)x10 try -p fontis-cli --test transfer hostile -- --nocapture; }
flood() { FONTIS_FLOOD=$(runs 100000)x10 try -p fontis --test flood -- --nocapture; }
codes() { FONTIS_RUNS=$(runs 100000) try -p fontis-codes --test main failure_rate -- --nocapture; }

# Peers that others wrote: data channels, and kernels with DCCP and SCTP.
channels() {
    "$cargo" build --release --locked --workspace --bin fontis --example echo &&
        python3 -m venv target/aiortc && target/aiortc/bin/pip install --quiet aiortc==1.16.0 &&
        target/aiortc/bin/python scripts/channel_peers.py
}
kernels() {
    "$cargo" build --release --locked -p fontis --example dccp_peer --example sctp_many &&
        FONTIS_RUNS=$(runs 5000) python3 scripts/dccp_kernel.py && python3 scripts/sctp_kernel.py "$(runs 400)"
}
peers() {
    local of=(--manifest-path peers/Cargo.toml --target-dir target/peers)
    "$cargo" clippy --locked "${of[@]}" --all-targets -- -D warnings &&
        FONTIS_RUNS=$(runs 10000) try "${of[@]}" -- --nocapture block object flute &&
        FONTIS_RUNS=$(runs 100000) try "${of[@]}" -- --nocapture failure_rate
}

[ $# -gt 0 ] || set -- "${all[@]}"
for step in "$@"; do
    [[ " ${all[*]} " == *" $step "* ]] || { echo "soak: no step $step; there are: ${all[*]}" >&2; exit 2; }
done
told=() failed=
for step in "$@"; do
    echo "== $step"
    SECONDS=0
    if "$step"; then result=passed; else result=FAILED failed=1; fi
    told+=("$(printf '%-10s %6d s  %s' "$step" $SECONDS "$result")")
done
printf '%s\n' "${told[@]}"
[ -z "$failed" ]
