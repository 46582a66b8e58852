#!/usr/bin/env bash
# Everything that has to pass. Says what is missing and how to get it; skips nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

missing=()
for need in ip:iproute2 nft:nftables tcpdump:tcpdump tshark:tshark openssl:openssl systemd-analyze:systemd \
  setpriv:util-linux node:nodejs npm:npm chromium:chromium c++:g++; do
  command -v "${need%%:*}" >/dev/null || missing+=("${need##*:}")
done
if [ ${#missing[@]} -gt 0 ]; then
  echo "missing: ${missing[*]}; installing: apt-get install -y ${missing[*]}" >&2
  if ! { as_root apt-get update -qq && as_root apt-get install -y -qq "${missing[@]}" >/dev/null; }; then
    echo "could not install them; run: sudo apt-get install -y ${missing[*]}" >&2
    exit 3
  fi
fi

step() { printf '\n== %s\n' "$*"; "$@"; }

step cargo fmt --check
step cargo clippy --locked --workspace --all-targets -- -D warnings
step cargo test --locked --workspace
# A workspace of its own, whose targets so are built at least.
step cargo check --locked --manifest-path fuzz/Cargo.toml
step env RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps --workspace
step cargo build --profile checked --locked -p lasthop-cli
target=${CARGO_TARGET_DIR:-target}
step "$target/checked/lasthop" compare scenarios/flicker.toml --seeds 4 --quiet --out "$target/demo"
step bash bench/papers.sh "$target/checked/lasthop" --check
rm -rf "$target/sweep"
step "$target/checked/lasthop" sweep studies/tiny.toml --quiet --out "$target/sweep"
step cargo check --locked -p lasthop-cli --no-default-features # as `make demo` builds it
step bash web/check.sh "$target/demo/report.html"
