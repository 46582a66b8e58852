#!/usr/bin/env bash
# The daemon beside the kernel's own forwarding, in one run: medians over rounds in which every way
# is measured once, so that a noisy machine is noisy for all. Only ratios count. Needs root (or user
# namespaces), iproute2 and nftables; leave the machine alone for about six minutes.
# `bench/live.sh [--rounds N] [--seconds S] [--json FILE]`
set -euo pipefail
cd "$(dirname "$0")/.."
for tool in ip:iproute2 nft:nftables; do
  command -v "${tool%:*}" >/dev/null || {
    echo "${tool%:*} is missing: apt-get install ${tool#*:}" >&2
    exit 1
  }
done
cargo build --release --locked -p lasthop-live --example bench
echo "build $(git rev-parse --short HEAD), $(uname -sr), $(nproc) processors"
exec "${CARGO_TARGET_DIR:-target}/release/examples/bench" --rounds 7 "$@"
