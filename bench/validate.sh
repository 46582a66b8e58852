#!/usr/bin/env bash
# Holds the simulator's `cubic` against the kernel's over scenarios drawn at random: rate 1 to 100
# Mbit/s, round trip 5 to 300 ms, losses up to 5 %, single or in bursts, outages of 0.1 to 3 s.
# Prints both worlds' goodput for each scheme, then the median and the 95th percentile of the
# error, and how often the better scheme was predicted. Wanted: 10 %, 25 %, 9 of 10. Needs root (or
# user namespaces), jq, and an otherwise idle machine; about half a minute per scenario. A run is a
# transfer of six seconds' worth by the rule of Mathis et al. (1997), not a span of time: a hole
# that is open when a run is cut off says nothing.
# `bench/validate.sh LASTHOP [SCENARIOS [SEED [LANES]]]`
set -euo pipefail
lasthop=${1:?usage: bench/validate.sh PATH-OF-LASTHOP [SCENARIOS [SEED [LANES]]]}
scenarios=${2:-40}
seed=${3:-1}
lanes=${4:-2}
schemes=plain,snoop-modern
command -v jq >/dev/null || { echo "validate: jq is needed" >&2; exit 3; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# One line of options per scenario; the same for the same seed.
draw() {
  awk -v count="$scenarios" -v seed="$seed" '
    function between(low, high) { return low * exp(rand() * log(high / low)) }
    BEGIN {
      srand(seed)
      for (n = 0; n < count; n++) {
        rate = int(between(1000, 100000))
        trip = between(5, 300)
        queue = int(between(0.5, 2) * rate * trip / 12000)
        if (queue < 20) queue = 20
        share = between(0.05, 5)
        kind = int(rand() * 4)
        channel = "--loss none"
        if (kind == 1) channel = sprintf("--loss %.2f%%", share)
        if (kind == 2) channel = sprintf("--loss burst:mean=%.2f%%,length=4", share)
        if (kind == 3)
          channel = sprintf("--loss none --outage at=2s,length=%dms", between(100, 3000))
        if (kind != 3) channel = channel " --outage none"
        losses = kind == 1 ? share / 100 : kind == 2 ? share / 400 : 1e-9
        expected = 1.22 * 1448 * 8 / trip / sqrt(losses)
        if (expected > rate) expected = rate
        printf "--rate %dkbit/s --delay %dus --wired-rate 1Gbit/s --wired-delay %dus", \
          rate, trip * 250, trip * 250
        printf " --queue %dp %s --size %dkB\n", queue, channel, expected * 6 / 8 + 50
      }
    }'
}

rows='.rows | group_by(.scheme)[] | [
  .[0].scheme,
  (.[] | select(.world == "lab") | .goodput_bps.mean / 1e6),
  (.[] | select(.world == "sim") | .goodput_bps.mean / 1e6)
] | @tsv'

draw | while read -r -a options; do
  echo "# ${options[*]}"
  # A verdict of the comparison (1) is no failure here: rows are.
  "$lasthop" lab "${options[@]}" --tcp cubic --schemes "$schemes" --seeds 3 \
    --jobs "$lanes" --quiet --json --out "$scratch/records" </dev/null >"$scratch/rows" ||
    [ $? -eq 1 ]
  jq -r "$rows" "$scratch/rows" |
    awk -F'\t' '{
      error = 100 * ($3 / $2 - 1)
      printf "%-14s lab %8.3f  sim %8.3f  error %+6.1f %%\n", $1, $2, $3, error
    }'
done | tee "$scratch/table"

grep -o 'error.*' "$scratch/table" | awk '{ e = $2; print e < 0 ? -e : e + 0 }' | sort -n |
  awk '{ error[NR] = $1 }
    END {
      printf "\nrows %d, error: median %.1f %%, 95th percentile %.1f %%\n", \
        NR, error[int((NR + 1) / 2)], error[int(NR * 0.95 + 0.999)]
    }'
awk '
  function judge() {
    if (seen) { total++; if (lab == sim) right++ }
    lab = sim = ""; a = b = -1; seen = 0
  }
  /^#/ { judge(); next }
  { seen = 1; if ($3 > a) { a = $3; lab = $1 }; if ($5 > b) { b = $5; sim = $1 } }
  END { judge(); printf "better scheme predicted in %d of %d scenarios\n", right, total }
' "$scratch/table"
