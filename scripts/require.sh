#!/usr/bin/env bash
# Sees to it that commands are there: scripts/require.sh COMMAND=PACKAGE...
# What is missing is installed from Debian's packages if that is possible, else named.
set -euo pipefail

missing=()
for pair in "$@"; do
    command -v "${pair%%=*}" >/dev/null || missing+=("${pair#*=}")
done
if [ ${#missing[@]} -eq 0 ]; then
    exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing ${missing[*]}"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
else
    echo "missing: ${missing[*]} (Debian's names); install them, or run as root on Debian" >&2
    exit 1
fi
