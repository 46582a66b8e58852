#!/usr/bin/env bash
# The gates of the simulator's speed: medians over rounds in which everything is measured once, so
# that a noisy machine is noisy for all. Ratios count; absolute rates are those of this machine, now.
# Beside ns-2, if it is installed (Debian: apt-get install ns2). `bench/sim.sh LASTHOP [ROUNDS]`
set -euo pipefail
lasthop=${1:?usage: bench/sim.sh PATH-OF-LASTHOP [ROUNDS]}
rounds=${2:-7}
here=$(dirname "$0")
# In memory where there is such a place: a file system that has just deleted thousands of files is
# slow to make new ones, and that is not what is measured.
results=$(mktemp -d -p "$([ -w /dev/shm ] && echo /dev/shm || echo "${TMPDIR:-/tmp}")")
trap 'rm -rf "$results"' EXIT

note() { echo "$2" >>"$results/$1"; }
rate() { # name, arguments of `bench sim`: notes data packets per CPU second
  local name=$1
  shift
  note "$name" "$("$lasthop" bench sim --json "$@" |
    sed -n 's/.*"data_packets_per_cpu_s": \([0-9.]*\).*/\1/p')"
}
cpu() { # a command: its CPU seconds
  local TIMEFORMAT='%U %S'
  { time "$@" >/dev/null 2>&1; } 2>&1 | awk '{ print $1 + $2 }'
}
round() {
  if command -v ns >/dev/null; then
    note ns2 "$(cpu ns "$here/ns2.tcl" 342466 | awk '{ print 342466 / $1 }')"
  fi
  rate plain --size 500MB
  rate snoop --size 500MB --scheme snoop
  rate modern --size 500MB --scheme snoop-modern
  rate errors --size 200MB --ber 1/1Mbit
  rate snoop-errors --size 200MB --ber 1/1Mbit --scheme snoop
  rate plain-1000 --flows 1000 --size 1MB
  rate snoop-1000 --flows 1000 --size 1MB --scheme snoop
  rate modern-1000 --flows 1000 --size 1MB --scheme snoop-modern
  rate plain-100000 --flows 100000 --size 20kB
  note runs "$(cpu "$lasthop" run --rate 2Mbit/s --size 1MB --tcp reno --schemes plain --seeds 2000 \
    --jobs 1 --quiet --out "$results/out" | awk '{ print 2000 / $1 }')"
  rm -rf "$results/out"
}
for ((i = 1; i <= rounds; i++)); do
  echo "round $i of $rounds" >&2
  round
done

median() { sort -n "$results/$1" | awk '{ a[NR] = $1 } END { print a[int((NR + 1) / 2)] }'; }
row() { # what, name, of which, gate as a share of it
  awk -v what="$1" -v rate="$(median "$2")" -v base="$(median "$3")" -v of="$3" -v gate="$4" 'BEGIN {
    printf "%-36s %6.2f M   %5.2f x %-6s", what, rate / 1e6, rate / base, of
    if (gate != "") printf "   gate %.2f: %s", gate, (rate / base >= gate ? "met" : "missed")
    print "" }'
}
echo "data packets per CPU second, medians of $rounds"
if [ -e "$results/ns2" ]; then
  row "ns-2, plain link, 1 flow" ns2 ns2 ""
  row "plain, 1 flow" plain ns2 2
  row "snoop, 1 flow" snoop ns2 1.62
  row "snoop-modern, 1 flow" modern ns2 1.62
  row "plain, 100,000 flows" plain-100000 ns2 0.32
else
  echo "ns-2 is not installed: no ratios to it (apt-get install ns2)"
  row "plain, 1 flow" plain plain ""
  row "plain, 100,000 flows" plain-100000 plain ""
fi
row "snoop, 1 flow" snoop plain 0.75
row "snoop-modern, 1 flow" modern plain 0.75
row "plain, bit errors 1/1Mbit" errors plain ""
row "snoop, bit errors 1/1Mbit" snoop-errors plain ""
row "plain, 1,000 flows" plain-1000 plain 0.5
row "snoop, 1,000 flows" snoop-1000 snoop 0.5
row "snoop-modern, 1,000 flows" modern-1000 modern 0.5
printf 'complete 1 MB runs, checked and written, per CPU second: %.0f (gate 2000)\n' "$(median runs)"
