#!/usr/bin/env bash
# Many mobile hosts that change cells, every check on: how much faster than real time a run is on
# one core, what it keeps, and what a handoff costs: the run less one in which nobody crosses, over
# the handoffs. Each host has 500 bytes a second to receive. Medians over rounds. Instructions by
# valgrind, which has none for SHA-256: what computes that is left out.
# `bench/handoffs.sh LASTHOP [ROUNDS]`
set -euo pipefail
lasthop=${1:?usage: bench/handoffs.sh PATH-OF-LASTHOP [ROUNDS]}
rounds=${2:-3}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
link=(--rate 10Mbit/s --rtt 50ms --tcp cubic --schemes plain --traffic request:500B,every=1s)
moving=every=8s,gap=100ms
still=at=1000s,gap=100ms

run() { # mobiles, cells, handoff, duration
  "$lasthop" bench handoffs --json "${link[@]}" \
    --mobiles "$1" --cells "$2" --handoff "$3" --duration "$4"
}
field() { sed -n "s/.*\"$1\": \([0-9.][0-9.]*\).*/\1/p"; }
median() { sort -n | awk '{ a[NR] = $1 } END { print a[int((NR + 1) / 2)] }'; }
row() { # mobiles, cells, gate
  local i
  for ((i = 1; i <= rounds; i++)); do
    echo "$1 mobile hosts, round $i of $rounds" >&2
    run "$1" "$2" $moving 16s >>"$scratch/$1.moving"
    run "$1" "$2" $still 16s >>"$scratch/$1.still"
  done
  awk -v mobiles="$1" -v cells="$2" -v seconds=16 \
    -v cpu="$(field cpu_s <"$scratch/$1.moving" | median)" \
    -v still="$(field cpu_s <"$scratch/$1.still" | median)" \
    -v bytes="$(field peak_rss_bytes <"$scratch/$1.moving" | median)" \
    -v count="$(field handoffs <"$scratch/$1.moving" | median)" \
    -v gate="$3" 'BEGIN {
      factor = seconds / cpu
      printf "%7d in %4d cells %8.2f x real time", mobiles, cells, factor
      printf " %8.0f MB %6.1f KB each", bytes / 1e6, bytes / 1e3 / mobiles
      printf " %6.1f us per handoff", (cpu - still) / count * 1e6
      if (gate != "") printf "   gate %.1f: %s", gate, (factor >= gate ? "met" : "missed")
      print "" }'
}
# Those of a run of 200 hosts, with its report. `bench` reads a clock that valgrind does not have.
instructions() { # handoff
  valgrind --tool=callgrind --callgrind-out-file="$scratch/calls" "$lasthop" run --json --quiet \
    --seeds 1 --jobs 1 --out "$scratch/out" "${link[@]}" --mobiles 200 --cells 10 \
    --handoff "$1" --duration 16s >"$scratch/counted" 2>/dev/null
  callgrind_annotate --inclusive=yes --threshold=100 "$scratch/calls" 2>/dev/null |
    awk '{ count = $1; gsub(/,/, "", count) }
      /PROGRAM TOTALS/ { all = count }
      /sha2::sha256::compress256/ && count + 0 > sha + 0 { sha = count }
      END { printf "%d\n", all - sha }'
}
row 1000 50 ""
row 10000 500 1
row 100000 5000 0.1
if command -v valgrind >/dev/null; then
  still_count=$(instructions $still)
  moving_count=$(instructions $moving)
  count=$(field handoffs <"$scratch/counted")
  awk -v all="$moving_count" -v still="$still_count" -v count="$count" \
    'BEGIN { printf "a handoff: %.0f instructions beside SHA-256\n", (all - still) / count }'
else
  echo "valgrind is not installed: no instructions (apt-get install valgrind)"
fi
