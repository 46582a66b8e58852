#!/usr/bin/env python3
"""What `lasthop assess` says that a scheme would save, against what it does save.

    bench/estimate.py LASTHOP [--draw N] [--count N]

Each scenario is drawn by chance and run three times under the same channel in the simulator: plain,
with Snoop and with modern Snoop, for the same time. The estimate is made of the plain run's packets at
the base station. What is saved in truth is the time that stalls take in the plain run less that in the
run with the scheme, by `assess`, too. What is left of a stall may be too short to be one (of less than
one and a half round trips and 100 ms), so that the truth has bounds, too.
"""

import json
import pathlib
import random
import subprocess
import sys
import tempfile

SCHEMES = ("snoop", "snoop-modern")
SECONDS = 40
# To this stalls are measured.
EXACT_S = 0.05


def drawn(draw, count):
    """Options of scenarios, with the name of their trouble."""
    chance = random.Random(20261122 + draw)
    for number in range(count):
        rate, rtt = chance.choice((3, 5, 8, 15, 30)), chance.choice((25, 40, 80, 150))
        options = {"rate": f"{rate}Mbit/s", "delay": f"{chance.choice((2, 5, 10))}ms", "rtt": f"{rtt}ms",
                   "tcp": chance.choice(("cubic", "reno", "bbr")), "loss": "none", "outage": "none"}
        trouble = ("outage", "held outage", "losses", "fades", "bursts")[number % 5]
        length = chance.choice((250, 400, 700, 1200, 2500))
        if trouble == "losses":
            options["loss"] = f"{chance.choice((1, 2, 4, 8))}%"
        elif trouble == "fades":
            options["loss"] = f"fade:good=3s,bad={chance.choice((50, 150, 400))}ms,loss=90%"
        elif trouble == "bursts":
            options["loss"] = f"burst:mean={chance.choice((1, 2, 4))}%,length={chance.choice((3, 6, 12))}"
        else:
            options["outage"] = f"every=8s,length={length}ms" + (",hold" if trouble == "held outage" else "")
        yield trouble, options


def assessed(lasthop, run):
    done = subprocess.run([lasthop, "assess", str(run / "base-station.pcapng"), "--json"],
                          check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def stalls(assessment):
    """How many there are, and how long they take."""
    causes = [cause for cause in assessment["causes"] if cause["cause"] not in ("application", "receiver")]
    return sum(cause["stalls"] for cause in causes), sum(cause["stalled_s"] for cause in causes)


def measure(lasthop, options, seed):
    """For each scheme: what is saved, estimated and true, at least and at most; what plain stalled."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = [text for name, value in options.items() for text in (f"--{name}", value)]
        subprocess.run([lasthop, "run", *arguments, "--sack", "on", "--duration", f"{SECONDS}s", "--seeds", "1",
                        "--seed", str(seed), "--schemes", ",".join(("plain", *SCHEMES)), "--pcap", "--quiet",
                        "--out", folder], check=True, capture_output=True)
        runs = {scheme: next(pathlib.Path(folder).glob(f"run-{scheme}-{options['tcp']}-*"))
                for scheme in ("plain", *SCHEMES)}
        plain = assessed(lasthop, runs["plain"])
        count, stood = stalls(plain)
        remainder = 1.5 * float(options["rtt"][:-2]) / 1000 + 0.1
        for estimate in plain["schemes"]:
            left_count, left = stalls(assessed(lasthop, runs[estimate["scheme"]]))
            most = stood - left
            least = most - max(count - left_count, 0) * remainder
            yield estimate["scheme"], (estimate["saved_s_min"], estimate["saved_s_max"], least, most, stood)


def main():
    lasthop, arguments = sys.argv[1], sys.argv[2:]
    given = dict(zip(arguments[::2], arguments[1::2]))
    draw, count = int(given.get("--draw", 1)), int(given.get("--count", 40))
    found = {}
    for seed, (trouble, options) in enumerate(drawn(draw, count), 1):
        print(f"estimate: {seed} of {count}", file=sys.stderr)
        for scheme, row in measure(lasthop, options, seed):
            found.setdefault((trouble, scheme), []).append(row)
            if is_below(row) or is_above(row):
                words = " ".join(f"--{name} {value}" for name, value in options.items() if value != "none")
                print("outside: {}: {:.2f} to {:.2f}, saved {:.2f} to {:.2f} of {:.2f}: {} --seed {}".format(
                    scheme, *row, words, seed), file=sys.stderr)
    print("| trouble | scheme | scenarios | plain stood still, s | estimate, s | saved, s | below | within | above |")
    print("|---|---|---|---|---|---|---|---|---|")
    for (trouble, scheme), rows in found.items():
        least, most, true_least, true_most, stood = (sum(row[i] for row in rows) for i in range(5))
        below, above = sum(map(is_below, rows)), sum(map(is_above, rows))
        print(f"| {trouble} | {scheme} | {len(rows)} | {stood:.1f} | {least:.1f} to {most:.1f} "
              f"| {true_least:.1f} to {true_most:.1f} | {below} | {len(rows) - below - above} | {above} |")


def is_below(row):
    return row[3] < row[0] - EXACT_S


def is_above(row):
    return row[2] > row[1] + EXACT_S


if __name__ == "__main__":
    main()
