# Sourced by the scripts of this folder: Debian packages, and Debian's compiler.

say() { printf '\n== %s\n' "$*"; }

# Debian packages, installed if they are missing.
need() {
    local missing=()
    for package in "$@"; do
        dpkg-query --show --showformat='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
            missing+=("$package")
    done
    if [ ${#missing[@]} -eq 0 ]; then
        return
    fi
    if [ "$(id -u)" -ne 0 ]; then
        echo "missing: ${missing[*]}; as root: apt-get install --no-install-recommends ${missing[*]}" >&2
        exit 2
    fi
    apt-get update --quiet=2
    DEBIAN_FRONTEND=noninteractive apt-get install --quiet=2 --yes --no-install-recommends "${missing[@]}"
}

# Debian's compiler, whatever else is installed: only its sources and libraries fit it.
debian_compiler() {
    need rustc-web rust-web-src
    type cargo >/dev/null || need cargo-web
    export RUSTC=/usr/bin/rustc
    "$RUSTC" --version
    local declared found
    declared=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
    found=$("$RUSTC" --version | cut -d' ' -f2)
    if [ "$(printf '%s\n' "$declared" "$found" | sort --version-sort | head -1)" != "$declared" ]; then
        echo "Cargo.toml asks for Rust $declared" >&2
        exit 2
    fi
}
