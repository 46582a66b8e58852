#!/usr/bin/env bash
# The gates of the simulator's speed, in one run: medians of five calls each. Compare ratios; the
# absolute times are those of this machine, now.
set -euo pipefail
lasthop=${1:?usage: bench/sim.sh PATH-OF-LASTHOP}

rate() { # arguments of `bench sim`: the median data packets per CPU second
  for _ in 1 2 3 4 5; do
    "$lasthop" bench sim --json "$@" | sed -n 's/.*"data_packets_per_cpu_s": \([0-9.]*\).*/\1/p'
  done | sort -n | sed -n 3p
}

plain=$(rate --size 500MB)
show() { # name, rate
  awk -v name="$1" -v rate="$2" -v plain="$plain" \
    'BEGIN { printf "%-44s %6.2f M data packets per CPU s   %.2f of plain\n", name, rate / 1e6, rate / plain }'
}

show "plain, 1 flow" "$plain"
show "snoop, 1 flow" "$(rate --size 500MB --scheme snoop)"
show "snoop-modern, 1 flow" "$(rate --size 500MB --scheme snoop-modern)"
show "plain, 1 flow, bit errors 1/1Mbit" "$(rate --size 200MB --ber 1/1Mbit)"
show "snoop, 1 flow, bit errors 1/1Mbit" "$(rate --size 200MB --ber 1/1Mbit --scheme snoop)"
show "plain, 1000 flows" "$(rate --flows 1000 --size 1MB)"
show "snoop, 1000 flows" "$(rate --flows 1000 --size 1MB --scheme snoop)"
show "snoop-modern, 1000 flows" "$(rate --flows 1000 --size 1MB --scheme snoop-modern)"
show "plain, 100000 flows" "$(rate --flows 100000 --size 20kB)"

start=$(date +%s%N)
"$lasthop" run --rate 2Mbit/s --size 1MB --tcp reno --schemes plain --seeds 2000 --jobs 1 --quiet \
  --out "$(mktemp -d)" >/dev/null
end=$(date +%s%N)
awk -v ns=$((end - start)) 'BEGIN { printf "complete 1 MB runs, checked and written: %.0f per second\n", 2000e9 / ns }'
