#!/usr/bin/env python3
"""Links drawn at random: what does the agent change for each sender, and where is it slower?

Rate 1 to 100 Mbit/s, round trip 5 to 300 ms, a queue of 0.3 to 2 times what the path holds; losses,
bursts, outages that lose, hold or are notified, or nothing; departures seen on the air or only by
the device. Paired seeds, `plain` against `snoop-modern`. Writes Markdown to stdout.

    bench/random-links.py LASTHOP [LINKS [SEED]] >docs/random-links.md
"""
import json
import math
import random
import subprocess
import sys
import tempfile

SENDERS = "cubic,bbr,sack,reno,newreno,tahoe"
SEEDS = 4
SLOWER = 0.95


def between(low, high):
    """A value whose logarithm is uniform."""
    return low * math.exp(random.random() * math.log(high / low))


def channel():
    share = between(0.02, 5)
    length = int(between(50, 500))
    kinds = {
        "nothing": "--outage none",
        "losses": f"--loss {share:.2f}% --outage none",
        "bursts": f"--loss burst:mean={share:.2f}%,length=4 --outage none",
        "one outage": f"--outage at=2s,length={int(between(100, 3000))}ms",
        "outages": f"--outage every=3s,length={length}ms" + random.choice(["", ",notified", ",hold"]),
        "losses and outages": f"--loss {share / 5:.2f}% --outage every=4s,length={length}ms",
    }
    return random.choice(list(kinds.values())).split()


def link():
    rate, trip, last = between(1, 100), between(5, 300), random.uniform(0.05, 0.9)
    queue = max(20, int(between(0.3, 2) * rate * 1e3 * trip / 12000))
    path = [
        f"--rate {int(rate * 1000)}kbit/s --delay {int(trip * last * 500)}us --queue {queue}p",
        f"--wired-rate 1Gbit/s --wired-delay {int(trip * (1 - last) * 500)}us --ber none",
        f"--departures {random.choice(['air', 'device'])}",
    ]
    return " ".join(path).split() + channel()


def ratios(lasthop, options, out):
    """For each sender: goodput with the agent over goodput without; each one's smallest and largest."""
    command = [lasthop, "compare", *options, "--tcp", SENDERS, "--duration", "10s", "--seeds", str(SEEDS)]
    command += ["--schemes", "plain,snoop-modern", "--json", "--quiet", "--out", out]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(f"random-links: {' '.join(command)}: {done.stderr}")
    rows = {(row["tcp"], row["scheme"]): row for row in json.loads(done.stdout)["rows"]}
    for tcp in SENDERS.split(","):
        with_it, without = rows[tcp, "snoop-modern"]["goodput_bps"], rows[tcp, "plain"]["goodput_bps"]
        apart = with_it["max"] < without["min"]
        yield tcp, with_it["mean"] / max(without["mean"], 1), apart


def main():
    lasthop = sys.argv[1]
    links = int(sys.argv[2]) if len(sys.argv) > 2 else 40
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    random.seed(seed)
    found = {tcp: [] for tcp in SENDERS.split(",")}
    with tempfile.TemporaryDirectory() as out:
        for number in range(links):
            options = link()
            print(f"\rrandom-links: {number + 1} of {links}", end="", file=sys.stderr)
            for tcp, ratio, apart in ratios(lasthop, options, out):
                found[tcp].append((ratio, apart, " ".join(options)))
    print(file=sys.stderr)
    version = subprocess.run([lasthop, "--version"], capture_output=True, text=True, check=True)
    print("# Links drawn at random\n")
    print(f"Made by `bench/random-links.py LASTHOP {links} {seed}` ({version.stdout.strip()}): {links} links,")
    print(f"downloads of 10 s, {SEEDS} paired seeds; goodput with `snoop-modern` over goodput of `plain`.")
    print(f"*Slower*: the ratio is below {SLOWER} and no run with the agent reaches the slowest without it.\n")
    print("| sender | geometric mean | median | lowest | highest | slower |")
    print("|---|---|---|---|---|---|")
    slower = []
    for tcp, all_of_it in found.items():
        values = sorted(ratio for ratio, _, _ in all_of_it)
        mean = math.exp(sum(map(math.log, values)) / len(values))
        worse = [(tcp, *one) for one in all_of_it if one[1] and one[0] < SLOWER]
        slower += worse
        cells = [f"{value:.2f}" for value in (mean, values[len(values) // 2], values[0], values[-1])]
        print(f"| {tcp} | {' | '.join(cells)} | {len(worse)} |")
    if slower:
        print("\nWhere it is slower:\n\n| sender | ratio | link |\n|---|---|---|")
        for tcp, ratio, _, options in sorted(slower, key=lambda one: one[1]):
            print(f"| {tcp} | {ratio:.2f} | `{options}` |")


if __name__ == "__main__":
    main()
