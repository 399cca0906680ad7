#!/usr/bin/env bash
# The viewer's pages: scripts/viewer.sh build | check | test | bench
#
# build makes them in viewer/dist, where the command takes them in; check looks at types and style;
# test tries them in a browser, with the command that FONTIS names; bench measures them over large
# files. What is missing is installed if that is possible, else it is said, and the rest goes on:
# the command builds without pages.
set -euo pipefail
cd "$(dirname "$0")/.."

FONTIS=$(realpath -m "${FONTIS:-${CARGO_TARGET_DIR:-target}/debug/fontis}")
export FONTIS

# Says what is left out, and leaves it out.
skip() {
    echo "viewer: $1"
    exit 0
}

packages() {
    scripts/require.sh node=nodejs npm=npm >/dev/null 2>&1 || skip "$1: node is missing (apt-get install nodejs npm)"
    if [ viewer/package-lock.json -nt viewer/node_modules/.package-lock.json ]; then
        # npm ci insists on packages for every platform, which a mirror need not have; install takes
        # what is for this one.
        (cd viewer && { npm ci || npm install --no-save; } >/dev/null 2>&1) \
            || skip "$1: npm install failed in viewer/; run it there to see why"
    fi
}

# Whether something that makes a page is newer than the page.
is_old() {
    [ ! -s "viewer/dist/$1" ] || [ -n "$(find viewer/src viewer/*.html viewer/*.ts viewer/*.json -newer "viewer/dist/$1" -print -quit)" ]
}

build() {
    packages "the pages are not built"
    for page in view playground; do
        if is_old $page.html; then
            (cd viewer && npx --no-install vite build --mode $page --logLevel error 2> >(grep -v '^npm warn' >&2))
        fi
    done
}

check() {
    packages "not checked"
    cd viewer
    npx --no-install tsc --noEmit
    npx --no-install biome ci --error-on-warnings --log-level=warn .
}

browser() {
    scripts/require.sh chromium=chromium >/dev/null 2>&1 || skip "$1: chromium is missing (apt-get install chromium)"
    [ -s viewer/dist/view.html ] && [ -s viewer/dist/fontis.wasm ] || skip "$1: the pages were not built"
}

test_() {
    packages "not tested"
    (cd viewer && npx --no-install vitest run --silent --reporter=dot)
    browser "not tried in a browser"
    node --test --test-reporter=spec viewer/browser/page.test.mjs
}

bench() {
    packages "not measured"
    browser "not measured"
    scripts/view_bench.py "$@"
}

case ${1:-} in
build) build ;;
check) check ;;
test) test_ ;;
bench) bench "${@:2}" ;;
*) echo "viewer: build, check, test or bench?" >&2 && exit 2 ;;
esac
