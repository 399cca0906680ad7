#!/usr/bin/env bash
# The Python package: `install` builds the wheel and installs it into target/venv, `lint` checks
# format, lints and types, `test` installs and tests. Tools have the versions of
# python/requirements.txt.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly VENV=target/venv
readonly BIN=$VENV/bin
readonly SOURCES=(python docs/notebooks scripts/lab_bench.py scripts/house.py scripts/house_rust.py)
# The tests' profile and features of libraries, so that nothing is built twice; PROFILE=release is
# what `pip install .` builds.
readonly PROFILE=${PROFILE:-dev}
export MATURIN_PEP517_ARGS="--profile $PROFILE"
if [ "$PROFILE" = dev ]; then
    MATURIN_PEP517_ARGS+=" --features as-in-tests"
fi

python() {
    local name
    for name in python3.11 python3.12 python3.13 python3.14 python3; do
        if command -v "$name" >/dev/null && "$name" -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$name"
            return
        fi
    done
    echo "Python 3.11 or newer with venv is missing: install it, as with apt-get install python3-venv" >&2
    return 1
}

# Makes the environment again when the versions that it should have change.
environment() {
    local wanted
    wanted=$(sha256sum <python/requirements.txt)
    if [ ! -f "$VENV/.made" ] || [ "$(cat "$VENV/.made")" != "$wanted" ]; then
        rm -rf "$VENV"
        "$(python)" -m venv "$VENV"
        # uv unpacks in seconds what takes pip a minute.
        "$BIN/pip" install --quiet --disable-pip-version-check "$(grep '^uv==' python/requirements.txt)"
        "$BIN/uv" pip install --quiet --python "$BIN/python" --requirement python/requirements.txt
        echo "$wanted" >"$VENV/.made"
    fi
}

install() {
    environment
    # What pip install . does, with another profile.
    PATH=$PWD/$BIN:$PATH "$BIN/uv" pip install --quiet --python "$BIN/python" \
        --no-build-isolation --no-deps --reinstall .
}

case ${1:-} in
install) install ;;
lint)
    environment
    "$BIN/ruff" check --quiet "${SOURCES[@]}"
    "$BIN/ruff" format --quiet --check "${SOURCES[@]}"
    "$BIN/mypy" --python-executable "$BIN/python" --no-error-summary
    ;;
test)
    install
    # A file's tests share what they have made, so that one process does them.
    "$BIN/python" -m pytest --numprocesses auto --dist loadfile
    ;;
*)
    echo "usage: scripts/python.sh install|lint|test" >&2
    exit 2
    ;;
esac
