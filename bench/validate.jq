# From what both worlds say of each scenario (an array of what `join` of validate.sh makes): the
# file validation.toml, a mark, the page validation.md.

# A scheme is no better for less than this: `study::advice` finds no smaller gain worth a box.
def worth_it: 1.03;

# Linear between the two nearest values, as `study::statistics::quantile`.
def quantile($p): sort | ($p * (length - 1)) as $place | ($place | floor) as $below
  | .[$below] + (.[$place | ceil] - .[$below]) * ($place - $below);
def tenth: . * 10 | round / 10 + 0;
def fixed($digits): pow(10; $digits) as $one | (if . < 0 then "-" else "" end) as $sign
  | ((if . < 0 then - . else . end) * $one | round) as $whole
  | "\($sign)\($whole / $one | floor).\("\($one + $whole % $one)"[1:])";
def signed: (tenth | if . >= 0 then "+" else "" end) + fixed(1);
def error: 100 * (.sim / .lab - 1);
def size: if . < 0 then - . else . end;

def best(of): max_by(of).scheme;
# True if whoever took the predicted scheme would have missed little.
def is_right: (max_by(.sim) | .lab) as $predicted | (map(.lab) | max) < worth_it * $predicted;

def summary: {
  scenarios: length,
  errors: [ .[].schemes[] | error | size ],
  right: (map(select(.schemes | is_right)) | length),
  same: (map(select(.schemes | best(.lab) == best(.sim))) | length)
} | . + { median: (.errors | quantile(0.5) | tenth), p95: (.errors | quantile(0.95) | tenth) };

def title: "\(.tcp), SACK \(.sack)";
def draw: .name | split("-")[0];

def channel: if test("burst") then "bursts, \(capture("mean=(?<share>[0-9.]+)").share) %"
  elif test("outage at") then "outage, \(capture("length=(?<ms>[0-9]+)ms").ms) ms"
  elif test("loss none") then "no losses"
  else "losses, \(capture("loss (?<share>[0-9.]+)%").share) %" end;
def option($name): capture("--\($name) (?<value>[0-9]+)").value | tonumber;
def row: .name as $name | (.options | [ (option("rate") / 1000 | fixed(2)),
    (option("delay") / 250 | fixed(1)), option("queue"), channel, (option("size") / 1000 | fixed(2)) ])
  + (.schemes | map((.lab | fixed(4)), (.sim | fixed(4)), (error | signed))
    + [ best(.lab), best(.sim), if is_right then "" else "missed" end ])
  | "| " + ([ $name ] + map(tostring) | join(" | ")) + " |";
def summary_row($of): summary
  | "| \($of) | \(.scenarios) | \(.errors | length) | \(.median | fixed(1)) | \(.p95 | fixed(1)) | \(
      .right) | \(.same) |";
def table: [ .[0].schemes[].scheme ] as $schemes
  | ([ "scenario", "Mbit/s", "round trip, ms", "queue, packets", "channel", "MB" ]
    + ($schemes | map("\(.), lab", "sim", "error, %")) + [ "best, lab", "best, sim", "" ]) as $head
  | "", "## \(.[0] | title)", "",
    "| " + ($head | join(" | ")) + " |", "|" + ($head | map("---|") | add),
    (.[] | row);

def by_sender: map({ key: title, value: . }) | reduce .[] as $one ({}; .[$one.key] += [ $one.value ])
  | to_entries | map(.value);
def listed(of): map(of) | unique | join(", ");

map(select(.wrong == [])) as $good
| map(select(.wrong != [])) as $bad
| ($draws | split(",")[0]) as $first
| ($good | by_sender) as $senders
| "# Written by bench/validate.sh; docs/validation.md has the scenarios.",
  ($senders[] | .[0] as $one | summary as $all
    | "", "[[sender]]", "tcp = \"\($one.tcp)\"", "sack = \"\($one.sack)\"",
      "kernel = \"\(listed(.kernel))\"", "date = \"\(map(.date) | max)\"", "build = \"\($build)\"",
      "scenarios = \($all.scenarios)", "median_error_percent = \($all.median | fixed(1))",
      "p95_error_percent = \($all.p95 | fixed(1))", "winners_right = \($all.right)"),
  "# ---- page ----",
  "# The simulator held against Linux",
  "",
  "Made by `bench/validate.sh`. Each scenario is drawn at random and run in both worlds, with real",
  "kernels (`lasthop lab`) and in the simulator (`lasthop compare --departures device`): one download",
  "between hosts with default settings, the same seeds, medians of 3 seeds; of one, with SACK, where the",
  "channel is the same for all seeds and the link is faster than 25 Mbit/s. The error is that of the simulator\u0027s",
  "goodput. Draw \($first) is what the models were made on; they were frozen before the others were drawn.",
  "",
  "Linux \($good | listed(.kernel)), \($good | listed(.date)); models of build \($build), lab of",
  "build \($good | listed(.build)). 99 of 100 frames of the emulated radio were at most \(
    [ $good[].late ] | max * 1e6 | round) us",
  "late in the worst run. A scenario is left out for senders of which the simulator expects that a run",
  "takes more than \($longest) s.",
  "",
  "| sender | draw | scenarios | errors | median, % | 95th percentile, % | winner right in | the same scheme |",
  "|---|---|---|---|---|---|---|---|",
  ($senders[] | (.[0] | title) as $title
    | (group_by(draw)[] | summary_row("\($title) | \(.[0] | draw)")), summary_row("\($title) | all")),
  "",
  "Wanted: at most 10 % (median) and 25 % (95th percentile), the winner in 9 of 10. The winner is the",
  "scheme with the highest goodput. It is right if the scheme that the simulator prefers comes, in the",
  "lab, within 3 % of the best one: `lasthop compare` finds no smaller gain worth a box. The last column",
  "counts the scenarios in which both worlds prefer the same one, however little it is ahead.",
  (if $bad == [] then empty else "",
    "Not counted, since a run of the lab did not end, or the radio was late or lost frames: "
    + ($bad | map("\(.name) (\(title): \(.wrong | join(", ")))") | join("; ")) + "."
  end),
  "",
  "Goodput is in Mbit/s. Half of the round trip is behind the base station, on 1 Gbit/s. To repeat a row:",
  "`lasthop lab --rate RATE --delay TRIP/4 --wired-rate 1Gbit/s --wired-delay TRIP/4 --queue QUEUE",
  "--loss SHARE --outage none --size SIZE --tcp SENDER --sack on",
  "--schemes \($good[0].schemes | map(.scheme) | join(",")) --seeds 3`; bursts are",
  "`--loss burst:mean=SHARE,length=4`, outages `--outage at=2s,length=LENGTH`.",
  ($senders[] | table)
