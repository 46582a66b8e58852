#!/usr/bin/env bash
# The generated part of each page in docs/papers, and its figures: renews them, or with --check says
# whether they are what the command prints.
#
#   bench/papers.sh LASTHOP [--check]
set -euo pipefail
lasthop=$(realpath -- "${1:?which lasthop}")
check=${2:-}
cd "$(dirname "$0")/../docs/papers"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# A file of the page, or one of its figures.
take() {
  if [ "$check" != --check ]; then
    cp "$scratch/$1" "$1"
  elif ! diff -u --label "docs/papers/$1" --label "the command's" "$1" "$scratch/$1"; then
    echo "docs/papers/$1 is not what the command prints: make papers" >&2
    exit 1
  fi
}

# The page NAME.md has what the command prints of the experiments whose IDs begin so.
page() {
  local name=$1 id=$2 status=0 mark
  "$lasthop" papers "$id" --markdown --quiet --out "$scratch" >"$scratch/results.md" || status=$?
  # 1: a verdict contradicts the paper, which the page says.
  [ "$status" -le 1 ] || exit "$status"
  mark="<!-- Below: lasthop papers $id --markdown -->"
  grep -qxF -- "$mark" "$name.md"
  { sed "/^$mark\$/q" "$name.md"; echo; cat "$scratch/results.md"; } >"$scratch/$name.md"
  take "$name.md"
  for figure in "$scratch/$id"-*.svg; do
    take "$(basename "$figure")"
  done
}

page snoop EXP-SN
page caceres-iftode EXP-CI
page window EXP-WINC
