#!/usr/bin/env bash
# A real file crosses a bad path: 100 Mbit/s, 100 ms round trip, 2 % of the packets towards the
# receiver lost. Fontis races CUBIC, BBR and QUIC over it, in namespaces on this machine; where
# there can be none, it crosses `fontis relay` alone.
#
#   FILE=…     what to send; by default the largest file of the Rust toolchain, which every machine
#   that builds this has FONTIS=…   a built command, instead of building one
set -euo pipefail
cd "$(dirname "$0")/.."

readonly RATE_MBPS=100 DELAY_MS=50 LOSS_PERCENT=2

fail() {
    echo "demo: $*" >&2
    exit 1
}

largest_of_toolchain() {
    python3 - "$(rustc --print sysroot)" <<'PYTHON'
import os, sys
files = (os.path.join(at, name) for at, _, names in os.walk(sys.argv[1]) for name in names)
print(max((f for f in files if not os.path.islink(f)), key=os.path.getsize))
PYTHON
}

file=${FILE:-$(largest_of_toolchain)}
[ -f "$file" ] && [ -r "$file" ] || fail "$file is not a file that can be read; choose one with FILE="
size=$(python3 -c 'import os, sys; print(os.path.getsize(sys.argv[1]))' "$file")
if [ -z "${FILE:-}" ] && [ "$size" -lt 64000000 ]; then
    fail "the largest file of the Rust toolchain has only $size bytes; choose a larger one with FILE="
fi

if [ -n "${FONTIS:-}" ]; then
    fontis=$FONTIS
else
    echo "building fontis …"
    cargo build --release --locked --quiet -p fontis-cli
    fontis=${CARGO_TARGET_DIR:-target}/release/fontis
fi

if why=$("$fontis" testbed shell -- true 2>&1); then
    exec "$fontis" race "$file" --rate "${RATE_MBPS}mbit" --rtt "$((2 * DELAY_MS))ms" --loss "${LOSS_PERCENT}%" --limit 60s
fi
echo "no race on this machine: ${why#fontis: }"
echo "instead Fontis alone, over a relay:"

work=$(mktemp -d)
pids=()
finish() {
    # Both end on an interrupt, as they would at Ctrl-C; each is waited for, so that none outlives
    # the demo.
    for pid in "${pids[@]}"; do
        kill -INT "$pid" 2>/dev/null || true
    done
    for pid in "${pids[@]}"; do
        for _ in $(seq 20); do
            kill -0 "$pid" 2>/dev/null || break
            sleep 0.1
        done
        kill -KILL "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM

# Waits until a program's output has a text of this form, and prints it.
await() { # NAME PATTERN
    for _ in $(seq 100); do
        if grep -oE -m1 "$2" "$work/$1.out" 2>/dev/null | head -n1 | grep .; then
            return
        fi
        sleep 0.1
    done
    cat "$work/$1.err" >&2
    fail "fontis $1 did not come up within 10 s"
}

# Background programs ignore interrupts unless job control gives each its own process group.
set -m
"$fontis" serve "$(dirname "$file")" --listen 127.0.0.1:0 --identity "$work/identity" --json \
    >"$work/serve.out" 2>"$work/serve.err" </dev/null &
pids+=($!)
url=$(await serve 'fontis://[^" ]+')
server=$(sed -E 's|^fontis://([^/]+)/.*|\1|' <<<"$url")

"$fontis" relay --listen 127.0.0.1:0 --to "$server" --rate "${RATE_MBPS}mbit" --delay "${DELAY_MS}ms" \
    --loss "${LOSS_PERCENT}%" --json >"$work/relay.out" 2>"$work/relay.err" </dev/null &
pids+=($!)
relay=$(await relay '"listening": ?"[^"]+"' | sed -E 's/.*"([^"]+)"$/\1/')
set +m

name=$(basename "$file")
quoted=$(python3 -c 'import sys, urllib.parse; print(urllib.parse.quote(sys.argv[1]))' "$name")
query=${url#*\?}
echo "sending $name: $size bytes over $RATE_MBPS Mbit/s, $((2 * DELAY_MS)) ms, $LOSS_PERCENT % loss"
"$fontis" get "fontis://$relay/$quoted?$query" "$work/received" --json |
    tee "$work/get.out" | python3 scripts/progress.py || fail "the transfer failed"

cmp --quiet "$file" "$work/received" || fail "what arrived is not what was sent"
if command -v b3sum >/dev/null; then
    hash=$(b3sum --no-names "$work/received")
else
    hash=$(cargo run --release --locked --quiet -p fontis-lab --example b3sum "$work/received")
fi
# The server learns of the end half a round trip later.
await serve '"event": ?"sent"' >/dev/null
python3 scripts/demo_report.py "$work" "$size" "$RATE_MBPS" "$DELAY_MS" "$hash"
