#!/usr/bin/env bash
# The generated part of docs/papers/snoop.md, and its figures: renews them, or with --check says
# whether they are what the command prints.
#
#   bench/papers.sh LASTHOP [--check]
set -euo pipefail
lasthop=$(realpath -- "${1:?which lasthop}")
check=${2:-}
cd "$(dirname "$0")/../docs/papers"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

status=0
"$lasthop" papers EXP-SN --markdown --quiet --out "$scratch/out" >"$scratch/results.md" || status=$?
# 1: a verdict contradicts the paper, which the page says.
[ "$status" -le 1 ] || exit "$status"
mark='<!-- Below: lasthop papers EXP-SN --markdown -->'
grep -qxF -- "$mark" snoop.md
{ sed "/^$mark\$/q" snoop.md; echo; cat "$scratch/results.md"; } >"$scratch/out/snoop.md"

for file in snoop.md EXP-SN-{F7,F7-b,F8,T1,F9,F10,F11,W}.svg; do
  if [ "$check" != --check ]; then
    cp "$scratch/out/$file" "$file"
  elif ! diff -u --label "docs/papers/$file" --label "the command's" "$file" "$scratch/out/$file"; then
    echo "docs/papers/$file is not what the command prints: make papers" >&2
    exit 1
  fi
done
