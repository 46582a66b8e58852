#!/usr/bin/env bash
# Holds the simulator's senders against the kernel's over scenarios drawn at random: rate 1 to 100
# Mbit/s, round trip 5 to 300 ms, losses up to 5 %, single or in bursts, outages of 0.1 to 3 s.
# Writes docs/validation.md and, for what `lasthop compare` says of its senders,
# crates/study/data/validation.toml. Wanted: an error of at most 10 % (median) and 25 % (95th
# percentile), the better scheme predicted in 9 of 10.
#
#   bench/validate.sh LASTHOP [--tcp LIST] [--draws LIST] [--scenarios N] [--only WHAT]
#
#   --tcp        senders, `:off` behind those without SACK (cubic,bbr,reno,reno:off)
#   --draws      seeds of the drawing; the models are made on the first, and frozen before the
#                others are drawn (1,3)
#   --scenarios  of each draw (32)
#   --only       estimate: print how long the lab will take, by the simulator; or
#                page: measure nothing, hold what has been measured against LASTHOP's simulator
#
# Needs jq; for the lab root (or user namespaces) and an otherwise idle machine. It may be stopped
# at any time and goes on where it was: lasthop-out/validate has a folder for each scenario, and in
# it what was measured with each sender. Kernels do not change with the models, so a change of a
# sender's model needs the page only; a change of the agent or of the lab needs an empty folder.
#
# A run is a transfer of about five seconds by the formula of Padhye et al. (1998), not a span of
# time: a hole that is open when a run is cut off says nothing.
set -euo pipefail
lasthop=$(realpath -- "${1:?usage: bench/validate.sh PATH-OF-LASTHOP [OPTIONS], see its first lines}")
shift
senders=cubic,bbr,reno,reno:off
draws=1,3
scenarios=32
only=
while [ $# -gt 0 ]; do
  value=${2:?validate: "$1" wants a value}
  case $1 in
    --tcp) senders=$value ;;
    --draws) draws=$value ;;
    --scenarios) scenarios=$value ;;
    --only) only=$value ;;
    *) echo "validate: no option $1; --tcp, --draws, --scenarios or --only was expected" >&2; exit 2 ;;
  esac
  shift 2
done
case $only in
  '' | estimate | page) ;;
  *) echo "validate: --only $only: estimate or page was expected" >&2; exit 2 ;;
esac
command -v jq >/dev/null || { echo "validate: jq is needed" >&2; exit 3; }
cd "$(dirname "$0")/.."
schemes=plain,snoop,snoop-modern
records=lasthop-out/validate
# What the emulated radio and the daemons carry at once without being late, Mbit/s, and lanes at
# most.
together=60
lanes_max=9
# Lateness of one in 100 frames of the radio, seconds, beyond which a scenario is measured again,
# twice at most, and then not counted.
late=0.002
# A scenario is left out for a sender that the simulator expects to take longer than this, seconds.
longest=40
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# One line of options per scenario; the same for the same seed on every machine: the generator is
# Park and Miller's.
draw() {
  awk -v count="$scenarios" -v seed="$1" '
    function uniform() { state = (state * 16807) % 2147483647; return state / 2147483647 }
    function between(low, high) { return low * exp(uniform() * log(high / low)) }
    # Seconds that a segment takes: round trips by losses, and timeouts.
    function segment(trip, losses, burst,    timeouts) {
      timeouts = burst ? 1 : 3 * sqrt(3 * losses / 8)
      if (timeouts > 1) timeouts = 1
      return trip * sqrt(2 * losses / 3) + (0.2 + trip) * timeouts * losses * (1 + 32 * losses ^ 2)
    }
    BEGIN {
      state = seed * 7919
      for (n = 0; n < 10; n++) uniform()
      for (n = 0; n < count; n++) {
        rate = int(between(1000, 100000))
        trip = between(5, 300)
        queue = int(between(0.5, 2) * rate * trip / 12000)
        if (queue < 20) queue = 20
        share = between(0.05, 5)
        kind = int(uniform() * 4)
        outage = between(100, 3000)
        channel = "--loss none"
        if (kind == 1) channel = sprintf("--loss %.2f%%", share)
        if (kind == 2) channel = sprintf("--loss burst:mean=%.2f%%,length=4", share)
        if (kind == 3) channel = sprintf("--loss none --outage at=2s,length=%dms", outage)
        if (kind != 3) channel = channel " --outage none"
        expected = rate
        if (kind == 1) expected = 1448 * 8 / 1000 / segment(trip / 1000, share / 100, 0)
        if (kind == 2) expected = 1448 * 8 / 1000 / segment(trip / 1000, share / 400, 1)
        if (expected > rate) expected = rate
        printf "--rate %dkbit/s --delay %dus --wired-rate 1Gbit/s --wired-delay %dus", \
          rate, trip * 250, trip * 250
        printf " --queue %dp %s --size %dkB\n", queue, channel, expected * 5 / 8 + 50
      }
    }'
}

# Calls $1 for each sender and scenario with: sender, SACK, name and folder of the scenario.
for_each() {
  local sender draw number name
  for sender in ${senders//,/ }; do
    for draw in ${draws//,/ }; do
      for number in $(seq "$scenarios"); do
        name=$draw-$(printf %02d "$number")
        case $sender in
          *:off) "$1" "${sender%:off}" off "$name" "$records/$name" ;;
          *) "$1" "${sender%:on}" on "$name" "$records/$name" ;;
        esac
      done
    done
  done
}

# Sets what runs of a scenario need: options and seeds. Where nothing is drawn during a run and the
# link is fast, so that runs go one after the other, one seed is enough. Not without SACK: which
# packet overflows first decides how a run goes on, and that differs from run to run.
prepare() { # sack folder
  read -r -a options <"$2/options"
  seeds=3
  case "$1 ${options[*]}" in
    on*"--loss none"*) [ "${options[1]%kbit/s}" -lt 25000 ] || seeds=1 ;;
  esac
}

# Sets how many runs of a scenario go side by side: as many as the radio carries of the goodput that
# the simulator expects of the fastest scheme, or of the link's rate.
share_radio() { # prediction
  local mbit=${options[1]%kbit/s}
  mbit=$(((mbit + 999) / 1000))
  [ ! -f "$1" ] || mbit=$(jq '[ .[].goodput_bps.p50 / 1e6 ] | max | ceil' "$1")
  lanes=$((together / mbit))
  [ "$lanes" -le "$lanes_max" ] || lanes=$lanes_max
  [ "$lanes" -ge 1 ] || lanes=1
}

# A verdict of the comparison (1) is no failure here: the rows say what was wrong.
rows() { "$@" --json --quiet --out "$scratch/out" </dev/null || [ $? -eq 1 ]; }

measure() { # tcp sack name folder
  local file=$4/lab-$1-$2.json
  [ -f "$file" ] && return
  prepare "$2" "$4"
  predict "$@"
  if is_too_long "$@"; then return; fi
  share_radio "$4/$sim-$1-$2.json"
  echo "validate: $1, SACK $2, scenario $3, $lanes side by side" >&2
  for _ in 1 2 3; do
    rm -rf "$scratch/out"
    rows "$lasthop" lab "${options[@]}" --tcp "$1" --sack "$2" --schemes "$schemes" \
      --seeds "$seeds" --jobs "$lanes" --no-prediction >"$scratch/rows"
    jq -e --argjson late "$late" 'all(.rows[]; .radio_late_s.p99 <= $late)' "$scratch/rows" \
      >/dev/null && break
    echo "validate: $1, SACK $2, scenario $3: the radio was late" >&2
  done
  jq -c --arg kernel "$(uname -r)" --arg date "$(date -u +%F)" --arg build "$build" \
    '{ kernel: $kernel, date: $date, build: $build, rows: .rows }' "$scratch/rows" >"$file.part"
  mv "$file.part" "$file"
}

predict() { # tcp sack name folder
  local file=$4/$sim-$1-$2.json
  [ -f "$file" ] && return
  # A sender without a model stays without a prediction.
  grep -qxF "$1 $2" "$scratch/no-model" && return
  prepare "$2" "$4"
  rm -rf "$scratch/out"
  if rows "$lasthop" compare "${options[@]}" --departures device --tcp "$1" --sack "$2" \
    --schemes "$schemes" --seeds "$seeds" >"$scratch/rows"; then
    jq -c '.rows' "$scratch/rows" >"$file.part"
    mv "$file.part" "$file"
  else
    echo "$1 $2" >>"$scratch/no-model"
  fi
}

# Seconds that the simulator expects of the slowest scheme.
is_too_long() { # tcp sack name folder
  local file=$4/$sim-$1-$2.json
  [ -f "$file" ] || return 1
  jq -e --arg size "${options[-1]%kB}" --argjson longest "$longest" \
    'any(.[]; ($size | tonumber) * 8000 / .goodput_bps.p50 > $longest)' "$file" >/dev/null || return 1
  echo "$1, SACK $2: $3" >>"$scratch/too-long"
}

# Seconds of the lab that a scenario will take: its runs by the simulator's goodput, each with a
# second around it, on the lanes.
estimate() { # tcp sack name folder
  local file=$4/$sim-$1-$2.json
  [ -f "$file" ] && [ ! -f "$4/lab-$1-$2.json" ] || return 0
  prepare "$2" "$4"
  if is_too_long "$@"; then return; fi
  share_radio "$file"
  jq -r --arg sender "$1, SACK $2" --arg name "$3" --arg size "${options[-1]%kB}" \
    --argjson lanes "$lanes" --argjson seeds "$seeds" '
    [.[] | (($size | tonumber) * 8000 / .goodput_bps.p50) + 1] |
    [(map(. * $seeds) | add / $lanes), max] | max | "\(.)\t\($sender)\t\($name)"' "$file"
}

# What both worlds say of a scenario, as one object.
join() { # tcp sack name folder
  local lab=$4/lab-$1-$2.json predicted=$4/$sim-$1-$2.json
  [ -f "$lab" ] && [ -f "$predicted" ] || return 0
  prepare "$2" "$4"
  jq -c --arg tcp "$1" --arg sack "$2" --arg name "$3" --arg options "${options[*]}" \
    --argjson late "$late" \
    --slurpfile predicted "$predicted" '
    def mbit: . / 100 | round / 10000;
    { tcp: $tcp, sack: $sack, name: $name, options: $options, kernel, date, build,
      wrong: [ .rows[] | select(.checks != "passed" or .radio_mishaps > 0 or .unfinished > 0
          or .radio_late_s.p99 > $late) | .scheme ],
      late: ([ .rows[] | .radio_late_s.p99 ] | max),
      schemes: [ .rows[] | .scheme as $scheme
        | { scheme: $scheme, lab: (.goodput_bps.p50 | mbit),
            sim: ($predicted[0][] | select(.scheme == $scheme).goodput_bps.p50 | mbit) } ] }' "$lab"
}

# The commit that the program is built from, as it says itself.
rows "$lasthop" compare --size 10kB --seeds 1 --schemes plain >"$scratch/rows"
build=$(jq -r .commit "$scratch"/out/*/manifest.json | head -n 1)
sim=sim-$(sha256sum "$lasthop" | cut -c1-12)
: >"$scratch/no-model"
: >"$scratch/too-long"
for draw in ${draws//,/ }; do
  number=0
  draw "$draw" | while read -r line; do
    number=$((number + 1))
    folder=$records/$draw-$(printf %02d "$number")
    mkdir -p "$folder"
    if [ -f "$folder/options" ] && [ "$(cat "$folder/options")" != "$line" ]; then
      echo "validate: $folder was drawn otherwise; move $records away" >&2
      exit 2
    fi
    echo "$line" >"$folder/options"
  done
done
[ -n "$only" ] || for_each measure
for_each predict
if [ "$only" = estimate ]; then
  for_each estimate | sort -rn | awk -F'\t' '
    { total += $1; of[$2] += $1; if (NR <= 5) printf "%5.0f s  %s, %s\n", $1, $2, $3 }
    END {
      for (sender in of) printf "%5.0f min  %s\n", of[sender] / 60, sender
      printf "%5.0f min  together\n", total / 60
    }'
  sed "s/^/left out, longer than $longest s a run: /" "$scratch/too-long"
  exit
fi
for_each join >"$scratch/joined"
jq -s -r --arg draws "$draws" --arg build "$build" --argjson longest "$longest" -f bench/validate.jq "$scratch/joined" \
  >"$scratch/both"
mark='# ---- page ----'
mkdir -p crates/study/data
sed "/^$mark\$/,\$d" "$scratch/both" >crates/study/data/validation.toml
sed "1,/^$mark\$/d" "$scratch/both" >docs/validation.md
echo "validate: wrote docs/validation.md and crates/study/data/validation.toml" >&2
