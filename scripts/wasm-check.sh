#!/usr/bin/env bash
# Builds the six pure crates for wasm32-unknown-unknown: what builds there has no socket, no file
# and no thread. The viewer's binding above them is linked: it is what the playground runs, and
# lands in viewer/dist.
#
# Two toolchains can do it: the project's own, if rustup has the target, or Debian's rustc-web,
# which lacks the target's standard library and builds it from source. WASM_TOOLCHAIN=rustup or
# =debian insists on one of them.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly TARGET=wasm32-unknown-unknown
readonly CRATES=(-p fontis-base -p fontis-codes -p fontis-proto -p fontis-net -p fontis-trace -p fontis-sim -p fontis-viewer-wasm)
readonly DEBIAN_PACKAGES=(rustc-web cargo-web rust-web-src lld-19)
readonly DEBIAN_LINKER=wasm-ld-19
# A folder of its own: two compilers that take turns in one would rebuild everything each time.
target_dir=${CARGO_TARGET_DIR:-target}/wasm

with_rustup() {
    [ -d "$(rustc --print sysroot)/lib/rustlib/$TARGET/lib" ]
}

debian_sysroot() {
    [ -x /usr/bin/rustc ] && /usr/bin/rustc --print sysroot
}

with_debian() {
    local sysroot
    sysroot=$(debian_sysroot) && [ -x /usr/bin/cargo ] && [ -f "$sysroot/lib/rustlib/src/rust/library/std/Cargo.toml" ] \
        && dpkg-query -W "${DEBIAN_PACKAGES[@]}" >/dev/null 2>&1
}

install_debian() {
    if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
        return 1
    fi
    echo "wasm-check: installing ${DEBIAN_PACKAGES[*]}"
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        "${DEBIAN_PACKAGES[@]}" >/dev/null
}

choose() {
    if with_rustup; then
        echo rustup
    elif with_debian; then
        echo debian
    elif command -v rustup >/dev/null && timeout 60 rustup target add "$TARGET" >/dev/null 2>&1; then
        echo rustup
    elif install_debian >&2 && with_debian; then
        echo debian
    else
        echo "wasm-check: no compiler for $TARGET: run 'rustup target add $TARGET', or as root" \
            "'apt-get install ${DEBIAN_PACKAGES[*]}'" >&2
        return 1
    fi
}

toolchain=${WASM_TOOLCHAIN:-$(choose)}
case $toolchain in
rustup)
    cargo build --locked --quiet --profile wasm --target "$TARGET" --target-dir "$target_dir" "${CRATES[@]}"
    built=$target_dir/$TARGET/wasm
    ;;
debian)
    with_debian || install_debian || {
        echo "wasm-check: as root, run 'apt-get install ${DEBIAN_PACKAGES[*]}'" >&2
        exit 1
    }
    # build-std is unstable, and so is the flag; no other unstable feature is let in.
    RUSTC_BOOTSTRAP=1 RUSTC=/usr/bin/rustc RUSTDOC=/usr/bin/rustdoc \
        CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER=$DEBIAN_LINKER \
        /usr/bin/cargo build --locked --quiet --profile wasm -Zbuild-std=std,panic_abort \
        --target "$TARGET" --target-dir "$target_dir-debian" "${CRATES[@]}"
    built=$target_dir-debian/$TARGET/wasm
    ;;
*)
    echo "wasm-check: WASM_TOOLCHAIN is '$toolchain'; it may be rustup or debian" >&2
    exit 2
    ;;
esac
# Only what has changed is put in place: the command is built anew when it does.
if ! cmp -s "$built/fontis_viewer_wasm.wasm" viewer/dist/fontis.wasm; then
    cp "$built/fontis_viewer_wasm.wasm" viewer/dist/fontis.wasm
fi
echo "wasm-check: base, codes, proto, net, trace and sim build for $TARGET ($toolchain)"
