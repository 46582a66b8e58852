#!/usr/bin/env bash
# Where the simulator's time goes: nanoseconds of CPU per data packet by crate and by function, for
# each scheme, as a Markdown table. What is inlined counts where it was inlined to.
# Needs perf (Debian: apt-get install linux-perf). `bench/profile.sh LASTHOP [FUNCTIONS]`
set -euo pipefail
lasthop=${1:?usage: bench/profile.sh PATH-OF-LASTHOP [FUNCTIONS]}
functions=${2:-16}
command -v perf >/dev/null || { echo "profile: perf is needed (apt-get install linux-perf)" >&2; exit 3; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for scheme in plain snoop snoop-modern; do
  perf record -q -e cpu-clock -F 5000 -o "$scratch/$scheme.data" \
    "$lasthop" bench sim --json --size 3GB --scheme "$scheme" >"$scratch/$scheme.json" 2>/dev/null
  nanos=$(sed -n 's/.*"data_packets_per_cpu_s": \([0-9.]*\).*/\1/p' "$scratch/$scheme.json" |
    awk '{ print 1e9 / $1 }')
  # Columns: share, program, object, [.] or [k], symbol with blanks.
  perf report -i "$scratch/$scheme.data" --no-children -g none --stdio 2>/dev/null |
    awk -v scheme="$scheme" -v nanos="$nanos" '/^ +[0-9.]+%/ {
      share = $1; kernel = ($4 == "[k]"); sub(/%/, "", share)
      sub(/^ +[^ ]+ +[^ ]+ +[^ ]+ +\[[.k]\] +/, ""); sub(/ +$/, "")
      symbol = kernel ? "the operating system" : $0
      print scheme "\t" share * nanos / 100 "\t" symbol }' >>"$scratch/all"
done
awk -F'\t' -v functions="$functions" '
  function crate(symbol,    path) {
    if (symbol == "the operating system") return symbol
    path = symbol
    sub(/^</, "", path)
    if (path !~ /^[a-z_]+::/) return "memory and libc"
    sub(/::.*/, "", path)
    return path
  }
  { of[$3, $1] += $2; all[$3] += $2; by[crate($3), $1] += $2; sum[crate($3)] += $2; total[$1] += $2 }
  function row(name, list) {
    printf "| %s | %.0f | %.0f | %.0f |\n", name, list[1], list[2], list[3]
  }
  function top(sums, values, count, quote,    i, best, name, list) {
    for (i = 0; i < count; i++) {
      best = ""
      for (name in sums) if (best == "" || sums[name] > sums[best]) best = name
      if (best == "" || sums[best] < 3) return
      list[1] = values[best, "plain"]; list[2] = values[best, "snoop"]
      list[3] = values[best, "snoop-modern"]
      row(quote best quote, list)
      delete sums[best]
    }
  }
  END {
    head = "ns per data packet | plain | snoop | snoop-modern |\n|---|--:|--:|--:|"
    print "| crate, " head
    top(sum, by, 12, "")
    list[1] = total["plain"]; list[2] = total["snoop"]; list[3] = total["snoop-modern"]
    row("together", list)
    print "\n| function, " head
    top(all, of, functions, "`")
  }' "$scratch/all"
