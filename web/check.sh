#!/usr/bin/env bash
# Checks the page: types, the committed template against its source, and the page itself in a
# browser, from made-up results and from any report given.
#
#   web/check.sh [REPORT.html]...
set -euo pipefail

reports=()
for report in "$@"; do
  reports+=("$(realpath -- "$report")")
done
cd "$(dirname "$0")"

install="apt-get install -y chromium nodejs npm"
for tool in node npm "${CHROMIUM:-/usr/bin/chromium}"; do
  if ! command -v "$tool" >/dev/null; then
    echo "web/check.sh: $tool is missing; install it: $install" >&2
    exit 1
  fi
done

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
npm run --silent types

template=../crates/report/assets/report-template.html
node build.mjs "$scratch/template.html"
if ! cmp "$scratch/template.html" "$template"; then
  echo "web/check.sh: the committed template is not what its source builds: npm run build" >&2
  exit 1
fi

cargo run --quiet -p lasthop-report --example sample_page -- "$scratch/sample.html"
# A million segments, ACKs and deliveries.
cargo run --quiet -p lasthop-report --example sample_page -- "$scratch/million.html" 90000
node tests/page.mjs "$scratch/sample.html" "$scratch/million.html" "${reports[@]}"
