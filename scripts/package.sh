#!/usr/bin/env bash
# Makes packages and tries each in an empty root:
# scripts/package.sh install|static|deb|container|sbom... What is made lies in target/package. The
# same commit and compiler make the same bytes: no path and no time of the machine is in them.
set -euo pipefail

cd "$(dirname "$0")/.."
root=$PWD
out=${CARGO_TARGET_DIR:-$root/target}/package
triple=$(rustc -vV | sed -n 's/^host: //p')
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
binary=$out/install/bin/fontis
# The time of all files: the last commit's, unless the builder says another.
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
# Names that stand for folders of this machine in messages of panics.
remap="--remap-path-prefix=$root=/fontis --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo"

# One build serves all: what cargo installs is the static binary.
install() {
    case $triple in
    *-linux-gnu | *-linux-musl) ;;
    *) echo "package: static binaries and packages are made on Linux; here, use cargo install --path crates/cli" >&2; exit 1 ;;
    esac
    mkdir -p "$out"
    RUSTFLAGS="-C target-feature=+crt-static $remap" "${CARGO:-cargo}" install --locked --quiet --force --no-track \
        --path crates/cli --target "$triple" --root "$out/install"
    "$binary" --version >/dev/null
    echo "package: installed $binary"
}

# Moves a file with the command of an empty root, from server to client.
try_in() {
    local where=$1 command=$2 log url
    # Without being root, a user namespace lets us change the root. /dev is there, as in every
    # container: a static binary reads randomness from it.
    local enter=(unshare --mount sh -c 'mount --rbind /dev "$0/dev" && exec chroot "$0" "$@"' "$where")
    [ "$(id -u)" = 0 ] || enter=(unshare --user --map-root-user "${enter[@]:1}")
    mkdir -p "$where/tmp/served" "$where/dev"
    head -c 1000000 /dev/urandom >"$where/tmp/served/file"
    log=$(mktemp)
    "${enter[@]}" "/$command" serve /tmp/served --identity /tmp/identity --listen 127.0.0.1:0 --json >"$log" 2>/dev/null &
    local server=$!
    for _ in $(seq 100); do
        url=$(grep -o 'fontis://[^"]*' "$log" || true)
        [ -n "$url" ] && break
        sleep 0.1
    done
    url=${url/\/\?//file?}
    # A name, not an address: a static binary must find it too.
    local named=${url/127.0.0.1/localhost} failed=
    "${enter[@]}" "/$command" get "$url" /tmp/got --identity /tmp/client 2>/dev/null || failed="a transfer failed"
    cmp -s "$where/tmp/served/file" "$where/tmp/got" || failed=${failed:-"the file differs"}
    "${enter[@]}" "/$command" get "$named" /tmp/named --identity /tmp/client 2>/dev/null || failed=${failed:-"localhost was not found"}
    kill $server 2>/dev/null && wait $server 2>/dev/null || true
    rm -f "$log"
    if [ -n "$failed" ]; then
        echo "package: in an empty root $failed" >&2
        exit 1
    fi
}

# An archive whose bytes depend on the files' contents alone.
archive() {
    chmod -R u=rwX,go=rX "$out/$1"
    tar -C "$out" --sort=name --format=gnu --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 \
        --numeric-owner -cf - "$1" | gzip -9n >"$2"
}

static() {
    local name=fontis-$version-$triple empty
    if readelf -l "$binary" | grep -q INTERP; then
        echo "package: $binary is not static" >&2
        exit 1
    fi
    empty=$(mktemp -d)
    mkdir -p "$empty/etc"
    echo "127.0.0.1 localhost" >"$empty/etc/hosts"
    cp "$binary" "$empty/fontis"
    try_in "$empty" fontis
    rm -rf "$empty" "${out:?}/$name"
    mkdir -p "$out/$name"
    cp "$binary" README.md LICENSE-MIT LICENSE-APACHE "$out/$name"
    strip "$out/$name/fontis"
    archive "$name" "$out/$name.tar.gz"
    archive "$name" "$out/again.tar.gz"
    cmp "$out/$name.tar.gz" "$out/again.tar.gz"
    rm -rf "${out:?}/$name" "$out/again.tar.gz"
    echo "package: made $out/$name.tar.gz, tried in an empty root"
}

deb() {
    scripts/require.sh dpkg-deb=dpkg
    local architecture tree made try
    architecture=$(dpkg --print-architecture)
    made=$out/fontis_${version}_$architecture.deb
    tree=$(mktemp -d)
    chmod 755 "$tree"
    command install -Dsm755 "$binary" "$tree/usr/bin/fontis"
    "$binary" man "$tree/usr/share/man/man1"
    gzip -9n "$tree"/usr/share/man/man1/*
    mkdir -p "$tree"/usr/share/{bash-completion/completions,zsh/vendor-completions,fish/vendor_completions.d}
    "$binary" completions bash >"$tree/usr/share/bash-completion/completions/fontis"
    "$binary" completions zsh >"$tree/usr/share/zsh/vendor-completions/_fontis"
    "$binary" completions fish >"$tree/usr/share/fish/vendor_completions.d/fontis.fish"
    command install -Dm644 -t "$tree/usr/share/doc/fontis" README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE
    gzip -9n <"$tree/usr/share/doc/fontis/CHANGELOG.md" >"$tree/usr/share/doc/fontis/changelog.gz"
    rm "$tree/usr/share/doc/fontis/CHANGELOG.md"
    {
        echo "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/"
        echo "Upstream-Name: fontis"
        echo
        echo "Files: *"
        echo "Copyright: the Fontis contributors"
        echo "License: Expat or Apache-2.0"
        echo " The texts are in /usr/share/doc/fontis, as LICENSE-MIT and LICENSE-APACHE."
    } >"$tree/usr/share/doc/fontis/copyright"
    command install -Dm644 -t "$tree/usr/share/fontis/wireshark" contrib/wireshark/*.lua
    mkdir "$tree/DEBIAN"
    cat >"$tree/DEBIAN/control" <<CONTROL
Package: fontis
Version: $version
Architecture: $architecture
Section: net
Priority: optional
Maintainer: The Fontis contributors <fontis@localhost>
Installed-Size: $(du -sk --exclude=DEBIAN "$tree" | cut -f1)
Description: moves files over networks where TCP is slow
 Fontis sends a digital fountain: any k symbols of a block, or a few more,
 rebuild it, so it does not matter which packets were lost. Files and folders
 are verified block by block. A laboratory runs the same protocol in virtual
 time, beside a real TCP.
CONTROL
    chmod -R u=rwX,go=rX "$tree"
    find "$tree" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
    dpkg-deb --root-owner-group -Zxz --build "$tree" "$made" >/dev/null
    rm -rf "$tree"
    # The package depends on nothing, so a root that has nothing else must do.
    try=$(mktemp -d)
    dpkg-deb --extract "$made" "$try"
    for file in usr/share/man/man1/fontis.1.gz usr/share/bash-completion/completions/fontis usr/share/doc/fontis/copyright; do
        [ -s "$try/$file" ] || { echo "package: $made lacks $file" >&2; exit 1; }
    done
    mkdir -p "$try/etc"
    echo "127.0.0.1 localhost" >"$try/etc/hosts"
    try_in "$try" usr/bin/fontis
    rm -rf "$try"
    echo "package: made $made, tried in an empty root"
}

# What can make images here.
engines() {
    local engine
    for engine in podman docker buildah; do
        if command -v $engine >/dev/null && $engine info >/dev/null 2>&1; then
            echo $engine
        fi
    done
}

# The files of the image, as a folder.
image_into() {
    local engine=$1 folder=$2 id
    if [ "$engine" = buildah ]; then
        id=$(buildah from fontis)
        cp -a "$(buildah mount "$id")/." "$folder"
    else
        id=$($engine create fontis)
        $engine export "$id" | tar -C "$folder" -xf -
    fi
    $engine rm "$id" >/dev/null
}

# What the image's command says, from a container. Buildah's need neither control groups nor a
# runtime.
image_says() {
    local engine=$1 id
    shift
    if [ "$engine" = buildah ]; then
        id=$(buildah from fontis)
        buildah run --isolation chroot "$id" -- /fontis "$@" || { buildah rm "$id" >/dev/null; return 1; }
        buildah rm "$id" >/dev/null
    else
        $engine run --rm fontis "$@"
    fi
}

container() {
    local engine said folder made= context
    [ -n "$(engines)" ] || scripts/require.sh buildah=buildah 2>/dev/null || true
    context=$(mktemp -d)
    cp "$binary" "$context/fontis"
    strip "$context/fontis"
    for engine in $(engines); do
        $engine build --quiet -t fontis -f contrib/Containerfile "$context" >/dev/null
        folder=$(mktemp -d)
        image_into $engine "$folder"
        mkdir -p "$folder/etc"
        # The engine leaves a file of its own, or an empty one.
        echo "127.0.0.1 localhost" >"$folder/etc/hosts"
        try_in "$folder" fontis
        rm -rf "$folder"
        made=$engine
        if said=$(image_says $engine --version 2>&1) && [ "$said" = "fontis $version" ]; then
            echo "package: made the image fontis with $engine, tried its files as a root, and ran it"
            rm -rf "$context"
            return
        fi
        echo "package: made the image fontis with $engine and tried its files as a root; $engine starts no container here: $(tail -n 1 <<<"$said")"
    done
    rm -rf "$context"
    [ -n "$made" ] || echo "package: no image made: none of podman, docker and buildah is here and answers (Debian: apt-get install buildah); see contrib/Containerfile"
}

# What the command is made from.
sbom() {
    mkdir -p "$out"
    python3 scripts/dependencies.py sbom "$out/fontis-$version.cdx.json"
}

install
for what in "$@"; do
    case $what in
    install) ;;
    static | deb | container | sbom) $what ;;
    *) echo "package: $what is none of install, static, deb, container, sbom" >&2; exit 2 ;;
    esac
done
