#!/usr/bin/env bash
# Is there a sender that the agent makes slower? For every sender, direction, bit error rate and
# path: the same seeds with `plain` and with the scheme, and the mean of the paired differences of
# goodput (in percent, from the logarithm of the ratio) with its 95 % interval (Student's t). A cell
# whose mean lies below 0 is doubtful: it runs again with other seeds, and these alone decide. A
# cell is slower if its whole interval lies below 0 by more than MARGIN.
# Writes the table as Markdown to stdout, what goes on to stderr; exit 1 if a cell is slower.
# Needs jq. `bench/never-slower.sh LASTHOP [SEEDS [SEEDS_AGAIN [SCHEME]]] >docs/never-slower.md`
# CELLS="options of lasthop compare" runs those cells only.
set -euo pipefail
lasthop=${1:?usage: bench/never-slower.sh PATH-OF-LASTHOP [SEEDS [SEEDS_AGAIN [SCHEME]]]}
seeds=${2:-10}
again=${3:-60}
scheme=${4:-snoop-modern}
# Percent. Less is as good as equal (SNOOP-PERF-1: without losses the difference is below 1 %).
margin=${MARGIN:-1}
command -v jq >/dev/null || { echo "never-slower: jq is needed" >&2; exit 3; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

paths=(
  "--rate 2Mbit/s --rtt 20ms --size 500kB"
  "--rate 10Mbit/s --rtt 100ms --size 2MB"
)
errors="none,1/8Mbit,1/2Mbit,1/512Kbit,1/128Kbit,1/64Kbit"
hosts=(
  "--hosts modern --sack on,off --tcp tahoe,reno,newreno,sack,cubic,linux"
  "--hosts 1995 --sack off --tcp tahoe,reno,newreno"
)

# One line per run: cell, scheme, seed, goodput. $1: options; $2, $3: first seed and how many.
runs() {
  local out=$scratch/out
  rm -rf "$out"
  # A verdict of the comparison (1) is a matter of its checks, which are looked at here.
  # shellcheck disable=SC2086
  "$lasthop" compare $1 --schemes "plain,$scheme" --seed "$2" --seeds "$3" --quiet --json \
    --out "$out" >"$scratch/json" || [ $? -eq 1 ]
  jq -e '[.rows[] | select(.checks != "passed")] == []' "$scratch/json" >/dev/null ||
    { echo "never-slower: checks failed: $1 --seed $2 --seeds $3" >&2; exit 1; }
  cat "$out"/run-*/manifest.json | jq -r --arg options "$1" '
    ($options | capture("(?<path>--rate .* --size [^ ]+)").path) as $path |
    [ "\($path)|\(.scenario.hosts)|\(.tcp)|\(if .sack then "on" else "off" end)|\(.direction)|"
      + .ber, .scheme, .seed, .goodput_bps ] | @tsv'
}

# Reads runs; one line per cell: cell, pairs, mean, half interval, slowest pair, all in percent.
judge() {
  sort | awk -F'\t' -v scheme="$scheme" '
    # The 97.5 % quantile of Student, by the expansion of Cornish and Fisher: 1 % off at 5 pairs.
    function student(n, z, d, t) {
      z = 1.959964; d = n - 1
      t = z + (z^3 + z) / (4 * d) + (5 * z^5 + 16 * z^3 + 3 * z) / (96 * d^2)
      return t + (3 * z^7 + 19 * z^5 + 17 * z^3 - 15 * z) / (384 * d^3)
    }
    { rate[$1, $2, $3] = $4; if ($2 == "plain") { order[$1] = order[$1] " " $3 } }
    END {
      for (cell in order) {
        n = split(order[cell], seed, " "); sum = squares = 0; least = 1e9
        for (i = 1; i <= n; i++) {
          a = rate[cell, "plain", seed[i]]; b = rate[cell, scheme, seed[i]]
          difference[i] = (a > 0 && b > 0) ? log(b / a) : (a > b) ? -9 : (b > a) ? 9 : 0
          sum += difference[i]; if (difference[i] < least) least = difference[i]
        }
        mean = sum / n
        for (i = 1; i <= n; i++) squares += (difference[i] - mean)^2
        half = n > 1 ? student(n) * sqrt(squares / (n - 1) / n) : 9
        printf "%s\t%d\t%.3f\t%.3f\t%.3f\n", cell, n, 100 * (exp(mean) - 1),
          100 * exp(mean) * (exp(half) - 1), 100 * (exp(least) - 1)
      }
    }'
}

# The options of one cell.
options_of() {
  local path kind tcp sack direction ber
  IFS='|' read -r path kind tcp sack direction ber <<<"$1"
  echo "$path --hosts $kind --tcp $tcp --sack $sack --direction $direction --ber $ber"
}

if [ -n "${CELLS:-}" ]; then
  runs "$CELLS" 1 "$seeds" >"$scratch/runs"
else
  for path in "${paths[@]}"; do
    for kind in "${hosts[@]}"; do
      echo "never-slower: $path $kind" >&2
      runs "$path $kind --direction down,up --ber $errors" 1 "$seeds"
    done
  done >"$scratch/runs"
fi
judge <"$scratch/runs" >"$scratch/first"

# What is below zero once runs again.
while IFS=$'\t' read -r cell pairs mean half least; do
  if awk -v mean="$mean" 'BEGIN { exit !(mean < 0) }'; then
    echo "never-slower: again: $cell ($mean ± $half %)" >&2
    runs "$(options_of "$cell")" 1001 "$again" </dev/null >"$scratch/more"
    judge <"$scratch/more" | sed 's/$/\tagain/'
  else
    printf '%s\t%s\t%s\t%s\t%s\tonce\n' "$cell" "$pairs" "$mean" "$half" "$least"
  fi
done <"$scratch/first" | sort >"$scratch/cells"

awk -F'\t' -v margin="$margin" '{ verdict = "not slower"
    if ($3 + $4 < -margin) verdict = "**slower**"
    else if ($3 - $4 > margin) verdict = "faster"
    else if ($3 == 0 && $4 == 0) verdict = "the same"
    print $0 "\t" verdict }' "$scratch/cells" >"$scratch/judged"

cat <<END
# Is there a sender that $scheme makes slower?

Made by \`bench/never-slower.sh\`; ${seeds} pairs of runs in each cell, the same seed with \`plain\` and
with \`$scheme\`. The difference of goodput is the mean of the pairs, ± its 95 % interval. Cells with a
mean below 0 were run again with ${again} other seeds, and show these alone. *Slower* means: all of the
interval lies below -${margin} %.

END
awk -F'\t' '{ count[$7]++; total++ }
  END { printf "%d cells: %d faster, %d the same, %d not slower, %d slower.\n\n", total,
    count["faster"], count["the same"], count["not slower"], count["**slower**"] }' \
  "$scratch/judged"
echo "| path | hosts | sender | SACK | data | bit errors | pairs | difference, % | worst pair, % | |"
echo "|---|---|---|---|---|---|---|---|---|---|"
tr '|' '\t' <"$scratch/judged" | sed 's/^--rate //; s/--rtt //; s/--size //' |
  awk -F'\t' '{ printf "| %s | %s | %s | %s | %s | %s | %s | %+.2f ± %.2f | %+.2f | %s |\n",
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $12 }'
if grep -q 'slower\*\*' "$scratch/judged"; then
  grep 'slower\*\*' "$scratch/judged" >&2
  exit 1
fi
