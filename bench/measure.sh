#!/usr/bin/env bash
# Measures everything that docs/measurements.md shows and writes that file: real kernels, the real
# daemon, our emulated radio. Needs root (or user namespaces) and about 80 minutes; leave the machine
# alone meanwhile. The records of all runs stay in lasthop-out/measure.
# `bench/measure.sh LASTHOP [LANES]`
set -euo pipefail
lasthop=${1:?usage: bench/measure.sh PATH-OF-LASTHOP [LANES]}
lanes=${2:-8}
cd "$(dirname "$0")/.."
out=docs/measurements.md
built=$(git rev-parse --short HEAD)
records=lasthop-out/measure
rm -rf "$records"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
schemes=plain,plain-tuned,snoop,snoop-modern

section() { printf '\n## %s\n\n%s\n' "$1" "$2" >>"$scratch/page"; }
table() { # name of its records, arguments of `lasthop lab`
  local name=$1
  shift
  local command="lasthop lab $*"
  echo "$command" >&2
  {
    printf '\n```\n$ %s --jobs %s\n' "$command" "$lanes"
    "$lasthop" lab "$@" --jobs "$lanes" --quiet --out "$records/$name" | grep -v '^Report:' || true
    printf '```\n'
  } >>"$scratch/page"
}

link=(--rate 2Mbit/s --delay 5ms --wired-rate 100Mbit/s --wired-delay 10ms)
section "Bit errors, both worlds" \
  "2 Mbit/s, round trip 30 ms, a queue of 50 packets; 1 MB, medians of 5 paired seeds. \`sim\` is the
simulator's prediction with the same seeds; there is none for schemes it has no model of."
table errors "${link[@]}" --queue 50p --ber none,1/1Mbit,1/256Kbit,1/64Kbit --outage none --tcp reno,cubic,bbr \
  --schemes "$schemes" --size 1MB --seeds 5

section "A queue that overflows, both worlds" \
  "The rows above in which both worlds part, with 15 seeds: a queue that overflows without SACK. Which
packet overflows first hangs on when the receiver's memory grows, which is a matter of single packets
and so of a fraction of a millisecond (its round-trip time, in ticks of 1 ms, against the spacing of
packets, 6 ms): 101 to 114 segments are through by then in the lab, 109 or 113 in the simulator, and
each case goes on in its own way.
Runs of strict \`snoop\` at 1/256Kbit (4.5 % of full packets lost) spread over a factor of five, so that
medians of 15 are up to a third apart. With 100 seeds they meet: the second table."
table overflow "${link[@]}" --queue 50p --ber none,1/1Mbit,1/256Kbit,1/64Kbit --outage none --tcp reno \
  --schemes plain,snoop,snoop-modern --size 1MB --seeds 15
table overflow-100 "${link[@]}" --queue 50p --ber 1/256Kbit --outage none --tcp reno --schemes snoop \
  --size 1MB --seeds 100

section "Simulator against lab" \
  "Kernel \`reno\`, SACK off, a window of 64 KiB (no queue overflows): the same channel in both worlds."
table worlds "${link[@]}" --queue 100p --window 64KiB --ber none,1/8Mbit,1/4Mbit,1/2Mbit \
  --outage none --tcp reno --schemes plain,snoop,snoop-modern --size 2MB --seeds 5

radio=(--rate 20Mbit/s --delay 15ms --wired-rate 1Gbit/s --wired-delay 1ms --queue 100p --ber none)
section "Outages of 0.1 to 60 s" \
  "20 Mbit/s, round trip 32 ms; 15 MB and one outage per run, its length log-uniform, 30 seeds, the same
for every row. \`after outage\`: from the link's return to the first new ACK at the sender. The bound for
nobody-is-told is one round trip + 60 ms, for notified one round trip + 20 ms. Three tables: packets
are lost and nobody is told; lost, and the base station is told; held by the radio, nobody is told."
for how in lost ,notified ,hold; do
  outage="at=2s,length=0.1s..60s${how#lost}"
  table "outage-${how#,}" "${radio[@]}" --outage "$outage" --tcp reno,cubic,bbr \
    --schemes "$schemes" --size 15MB --seeds 30 --no-prediction
done

section "BBR after 8 to 15 s" "The time until 500 kB are through again. With tcp_rto_max_ms=1000 a
kernel has sent the same segment 15 times (tcp_retries2) after about 15 s, and gives the connection
up: of plain-tuned, runs may end so."
table bbr "${radio[@]}" --outage "at=2s,length=8s..15s" --tcp bbr --schemes "$schemes" \
  --duration 27s --seeds 8 --no-prediction

{
  cat <<'HEAD'
# Measurements

Made by `make measure` on one machine with two cores: unmodified Linux TCPs in network namespaces,
the real daemon at the base station, our emulated radio. Every byte is compared by SHA-256. Rows of
the simulator say `sim`.

HEAD
  printf 'Linux %s, %s, lasthop %s.\n' "$(uname -r)" "$(date -u +%F)" "$built"
  cat "$scratch/page"
  [ -f docs/when-not.md ] && { echo; cat docs/when-not.md; }
} >"$out"
echo "wrote $out" >&2
