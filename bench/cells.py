#!/usr/bin/env python3
"""Real kernels, the real daemon: which scheme helps whom, over some 240 cells.

A cell is a sender (reno, cubic, bbr; with SACK or without), a way (down, up), a rate (2, 20, 100
Mbit/s), an unloaded round trip (10, 60, 300 ms) and a loss (none, 0.1, 1, 3 %, or 1 % in bursts of
four), drawn from all 540 so that every value has its share. In each: plain, plain-tuned, snoop and
snoop-modern, the same channel and seed for all, 5 runs of 5 s (3 s at 100 Mbit/s). A cell that is
neither faster for certain nor level within 5 % is doubtful: it runs again with 15 other seeds, and
these alone decide.

    bench/cells.py LASTHOP [--virtual KERNEL] [--cells N] [--minutes M] [--renew BUILD[:VALUE,...]]
                   [--only page]

Writes docs/cells.csv, and from it docs/cells.md and docs/cells.svg. With --virtual the cells run in a
user-mode kernel whose time is virtual (bench/virtual/build.sh makes one): on any machine, busy or
not, a cell for each processor at once. Without, they run on this machine's kernel, which needs root
(or user namespaces) and an otherwise idle machine, and the record is docs/cells-real-time.csv, with
which the page compares. Either takes about two and a half hours, may be stopped at any time, and goes
on with the cells that are not in its record; --minutes stops it by itself, --renew measures cells of
a build again (4306d836:bbr,down: those of bbr, down), --only page writes the page of what is there.
"""
import argparse
import concurrent.futures
import csv
import dataclasses
import json
import math
import os
import queue
import random
import shutil
import statistics
import subprocess
import sys
import threading
import time

import figure

RATES = [2, 20, 100]
TRIPS = [10, 60, 300]
LOSSES = ["none", "0.1%", "1%", "3%", "burst:mean=1%,length=4"]
SENDERS = [(tcp, sack) for tcp in ("cubic", "bbr", "reno") for sack in ("on", "off")]
WAYS = ["down", "up"]
SCHEMES = ["plain", "plain-tuned", "snoop", "snoop-modern"]
SEEDS, SEEDS_AGAIN = range(1, 6), range(101, 116)
# What the emulated radio, the daemons and two processors carry without being late, Mbit/s; and how
# many runs at once, at most.
CARRIED, LANES = 200, 20
# Less is as good as equal.
MARGIN = 0.02
# Bounds farther apart than this from 1 leave a cell unclear.
WIDE = 0.05
# A run in which one of 100 frames of the radio was later than this, in seconds, does not count.
LATE = 0.002
VERDICTS = ["faster", "level", "unclear", "slower"]
CELL = ["rate", "rtt", "loss", "tcp", "sack", "way"]
NUMBERS = [*SCHEMES, "gain", "low", "high"]
RECORDS, RECORDS_IN_REAL_TIME, RUNS = "docs/cells.csv", "docs/cells-real-time.csv", "lasthop-out/cells"


@dataclasses.dataclass
class World:
    """Where cells run: the program, the user-mode kernel or None for this machine's, its release."""
    lasthop: str
    virtual: str | None
    kernel: str

    @classmethod
    def of(cls, lasthop, virtual):
        kernel = os.uname().release.split("-")[0]
        if virtual and not os.access(virtual, os.X_OK):
            sys.exit(f"no kernel at {virtual}: bench/virtual/build.sh SOURCE.tar.xz {virtual} makes one")
        if virtual:
            kernel = subprocess.run([virtual, "--version"], capture_output=True, text=True, check=True).stdout
        return cls(lasthop, virtual, kernel.strip())

    @property
    def records(self):
        return RECORDS if self.virtual else RECORDS_IN_REAL_TIME

    def run(self, arguments, processor):
        """Runs the program, in a user-mode kernel on this processor."""
        command = [self.lasthop, *arguments]
        if self.virtual:
            command = ["bench/virtual/run.sh", self.virtual, *command]
        result = subprocess.run(command, capture_output=True, text=True, check=False,
                                env={**os.environ, "CPU": str(processor)})
        if result.returncode not in (0, 1):
            sys.exit(f"cells: {' '.join(command)}\n{result.stderr}")


def drawn(count):
    """The cells, shuffled: each value has its share, of those that are done at any time, too."""
    everything = [(rate, trip, loss, tcp, sack, way) for rate in RATES for trip in TRIPS
                  for loss in LOSSES for tcp, sack in SENDERS for way in WAYS]
    random.Random(1).shuffle(everything)
    # Up a base station can do less: a third of the cells.
    down = [cell for cell in everything if cell[5] == "down"]
    up = [cell for cell in everything if cell[5] == "up"]
    ups = min(len(up), count // 3)
    chosen = down[:count - ups] + up[:ups]
    random.Random(2).shuffle(chosen)
    return chosen


def options(cell):
    rate, trip, loss, tcp, sack, way = cell
    queue = max(20, round(rate * 1e6 * trip / 1e3 / 12_000))
    seconds = 3 if rate == 100 else 5
    return ["--rate", f"{rate}Mbit/s", "--delay", f"{trip / 5:g}ms", "--wired-rate", "1Gbit/s",
            "--rtt", f"{trip}ms", "--queue", f"{queue}p", "--ber", "none", "--loss", loss,
            "--outage", "none", "--tcp", tcp, "--sack", sack, "--direction", way,
            "--duration", f"{seconds}s"]


def lanes(world, cell):
    """How many runs of a cell go at once. Where losses are frequent, most senders are slow."""
    if world.virtual:
        return 1
    rate, _, loss, tcp, *_ = cell
    used = rate * (1 if loss in ("none", "0.1%") or tcp == "bbr" else 0.5)
    return max(2, min(LANES, round(CARRIED / used)))


def measure(world, processor, cell, seeds, at_once):
    """Runs a cell: the goodput for each scheme and seed of those runs that were in time, and the
    build."""
    out = f"{RUNS}-{processor}"
    shutil.rmtree(out, ignore_errors=True)
    command = ["lab", *options(cell), "--schemes", ",".join(SCHEMES), "--seed",
               str(seeds[0]), "--seeds", str(len(seeds)), "--jobs", str(at_once),
               "--no-prediction", "--quiet", "--json", "--out", out]
    world.run(command, processor)
    runs = []
    for folder in os.listdir(out):
        manifest = os.path.join(out, folder, "manifest.json")
        if not os.path.exists(manifest):
            continue
        with open(manifest) as file:
            run = json.load(file)
        if run["checks"] != "passed":
            sys.exit(f"cells: {' '.join(command)}: {run['scheme']}, seed {run['seed']}: {run['checks']}")
        if run["radio_late_s"]["p99"] <= LATE:
            runs.append({"scheme": run["scheme"], "seed": run["seed"], "bps": run["goodput_bps"]})
    shutil.rmtree(out, ignore_errors=True)
    return {"commit": run["commit"], "runs": runs}


def measure_in_time(world, processor, cell, seeds):
    """The same; fewer runs at once, if half of the pairs or more were late. None if they still are."""
    at_once = lanes(world, cell)
    while True:
        made = measure(world, processor, cell, seeds, at_once)
        if 2 * len(ratios(made, "snoop-modern")) > len(seeds):
            return made
        if at_once == 1:
            return None
        at_once = max(1, at_once // 3)


def ratios(made, scheme):
    """Goodput over that of plain, by seed."""
    by_seed = {}
    for run in made["runs"]:
        by_seed.setdefault(run["seed"], {})[run["scheme"]] = run["bps"]
    pairs = [of for of in by_seed.values() if "plain" in of and scheme in of]
    return [of[scheme] / of["plain"] for of in pairs if of["plain"] > 0 and of[scheme] > 0]


# Student's t for so many values, two-sided 95 %; above, that of 12.
STUDENT = {2: 12.7, 3: 4.3, 4: 3.18, 5: 2.78, 6: 2.57, 7: 2.45, 8: 2.36, 9: 2.31, 10: 2.26,
           11: 2.23}


def gain(found):
    """Geometric mean of ratios and its 95 % bounds (Student)."""
    logs = [math.log(ratio) for ratio in found]
    mean = statistics.fmean(logs)
    if len(logs) < 2:
        return math.exp(mean), 0.0, math.inf
    student = STUDENT.get(len(logs), 2.2)
    half = student * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)


def mean_gain(found):
    """Geometric mean over rows."""
    return math.exp(statistics.fmean(math.log(row["gain"]) for row in found))


def doubtful(made):
    return verdict(*gain(ratios(made, "snoop-modern"))) in ("slower", "unclear")


def verdict(mean, low, high):
    if high < 1 - MARGIN:
        return "slower"
    if low > 1 + MARGIN:
        return "faster"
    return "level" if low > 1 - WIDE and high < 1 + WIDE else "unclear"


def row_of(world, processor, cell):
    """A cell's row; None if the machine was late in most runs."""
    made = measure_in_time(world, processor, cell, SEEDS)
    if made and doubtful(made):
        made = measure_in_time(world, processor, cell, SEEDS_AGAIN)
    if not made:
        return None
    row = dict(zip(CELL, cell), commit=made["commit"], kernel=world.kernel)
    for scheme in SCHEMES:
        own = [run["bps"] for run in made["runs"] if run["scheme"] == scheme]
        row[scheme] = statistics.median(own) / 1e6 if own else math.nan
    found = ratios(made, "snoop-modern")
    row["gain"], row["low"], row["high"] = gain(found)
    row["verdict"], row["pairs"] = verdict(*gain(found)), len(found)
    return row


def recorded(records):
    """The rows of a record, by cell."""
    if not os.path.exists(records):
        return {}
    out = {}
    with open(records, newline="") as file:
        for row in csv.DictReader(file):
            row.update({key: int(row[key]) for key in ("rate", "rtt", "pairs")})
            row.update({key: float(row[key]) for key in NUMBERS})
            out[tuple(row[key] for key in CELL)] = row
    return out


def write(records, rows):
    with open(records + ".part", "w", newline="") as file:
        keys = [*CELL, *NUMBERS, "pairs", "verdict", "commit", "kernel"]
        writer = csv.DictWriter(file, keys, lineterminator="\n")
        writer.writeheader()
        for row in sorted(rows, key=lambda row: [row[key] for key in CELL]):
            writer.writerow({key: f"{row[key]:.4g}" if key in NUMBERS else row[key] for key in keys})
    os.replace(records + ".part", records)


def is_of(row, renew):
    """True for a row of the build, and of a cell with all of the values, that `--renew` names."""
    build, _, values = renew.partition(":")
    own = {str(row[key]) for key in CELL}
    return bool(build) and row["commit"].startswith(build) and set(filter(None, values.split(","))) <= own


def measure_all(world, cells, rows, renew, deadline):
    """Measures the cells that are not among the rows, or are to be renewed; in virtual time one on
    each processor."""
    left = [cell for cell in cells if cell not in rows or is_of(rows[cell], renew)]
    free, turn = queue.SimpleQueue(), threading.Lock()
    workers = os.cpu_count() if world.virtual else 1
    for processor in range(workers):
        free.put(processor)

    def go_on(number, cell):
        if deadline and time.time() > deadline:
            return False
        processor = free.get()
        row = row_of(world, processor, cell)
        free.put(processor)
        said = "most runs were late: others use the machine"
        with turn:
            if row:
                rows[cell] = row
                write(world.records, rows.values())
                said = f"x {row['gain']:.2f}, {row['verdict']}, {row['pairs']} pairs"
            print(f"cells: {number} of {len(left)}: {' '.join(str(part) for part in cell)}: {said}",
                  file=sys.stderr, flush=True)
        return True

    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        done = sum(pool.map(go_on, range(1, len(left) + 1), left))
    if done < len(left):
        print(f"cells: stopped with {len(left) - done} of {len(cells)} to do; run it again to go on",
              file=sys.stderr)


def table(out, head, lines):
    out.append("| " + " | ".join(head) + " |")
    out.append("|" + "---|" * len(head))
    out += ["| " + " | ".join(line) + " |" for line in lines]
    out.append("")


def by(found, key, label):
    lines = []
    for value in sorted({row[key] for row in found}, key=lambda value: (str(type(value)), value)):
        own = [row for row in found if row[key] == value]
        best = [max(SCHEMES, key=lambda scheme: row[scheme]) for row in own]
        count = {name: sum(row["verdict"] == name for row in own) for name in VERDICTS}
        tuned = math.exp(statistics.fmean(math.log(row["snoop-modern"] / row["plain-tuned"]) for row in own))
        lines.append([f"{label} {value}", str(len(own)), f"{mean_gain(own):.2f}", f"{tuned:.2f}", *(str(count[name]) for name in VERDICTS),
                      str(best.count("snoop-modern"))])
    return lines


def compared(found, real):
    """What the cells that were measured in real time, too, say of virtual time."""
    both = [(row, real[cell]) for row in found for cell in [tuple(row[key] for key in CELL)] if cell in real]
    if not both:
        return []
    agree = sum(a["low"] <= b["high"] and b["low"] <= a["high"] for a, b in both)
    apart = statistics.median(abs(math.log(a["plain"] / b["plain"])) for a, b in both)
    kernels = ", ".join(sorted({b["kernel"] for _, b in both}))
    return ["## In real time", "",
            f"{len(both)} of the cells were measured on Linux {kernels} in real time, too ([cells-real-time.csv]"
            "(cells-real-time.csv),",
            f"another kernel, other losses): in {agree} the intervals of the gain overlap; goodput of `plain`"
            f" differs by {math.expm1(apart):.1%}", "(median).", ""]


def page(found, real, lasthop):
    version = subprocess.run([lasthop, "--version"], capture_output=True, text=True).stdout.strip()
    commits = sorted({row["commit"] for row in found})
    kernels = ", ".join(sorted({row["kernel"] for row in found}))
    out = ["# Who is helped, and who is not", "",
           f"Made by `bench/cells.py` ({version}, builds {', '.join(commits)}): {len(found)} cells, real kernels",
           f"(Linux {kernels}, in virtual time: processors are never busy, whatever they do), the real daemon,",
           "our emulated radio; every stream compared by SHA-256. In each",
           f"cell {len(SEEDS)} paired runs of every scheme, {len(SEEDS_AGAIN)} others where those were doubtful. *Gain*:",
           "goodput with `snoop-modern` over goodput of `plain`, geometric mean of the pairs. *Faster* and *slower*:",
           f"its 95 % interval lies beyond {MARGIN:.0%}; *level*: it lies within {WIDE:.0%}. All cells with their numbers: [cells.csv](cells.csv).", ""]
    out += ["![Gain by loss, for each rate and round trip](cells.svg)", ""]
    head = ["", "cells", "gain", "over tuned sysctls", *VERDICTS, "best of four"]
    down = [row for row in found if row["way"] == "down"]
    lines = by(found, "way", "")
    for key, label in [("tcp", ""), ("sack", "SACK"), ("loss", "loss"), ("rate", "Mbit/s"), ("rtt", "RTT ms")]:
        lines += by(down, key, f"down, {label}".rstrip())
    table(out, head, lines)
    out += ["## Does not help when", ""]
    ups = [row for row in found if row["way"] == "up"]
    level = [row for row in down if row["verdict"] == "level"]
    lossless = sum(row["loss"] == "none" for row in level)
    out += [f"- Nothing is lost: {lossless} of {len(level)} level cells down have no loss.",
            f"- Data goes up: of {len(ups)} cells {sum(row['verdict'] == 'faster' for row in ups)} are faster. The sender",
            "  is the mobile host's kernel; a base station can only tell it sooner what it lost.", ""]
    slower = sorted((row for row in found if row["verdict"] == "slower"), key=lambda row: row["gain"])
    out += ["## Slower", "", f"{len(slower)} of {len(found)} cells." if slower else "None.", ""]
    if slower:
        table(out, ["cell", "pairs", "gain", "plain", "snoop-modern"],
              [[f"{row['tcp']}, SACK {row['sack']}, {row['way']}, {row['rate']} Mbit/s, {row['rtt']} ms, loss {row['loss']}",
                str(row["pairs"]), f"{row['gain']:.2f} ({row['low']:.2f}-{row['high']:.2f})",
                f"{row['plain']:.2f}", f"{row['snoop-modern']:.2f}"] for row in slower])
    out += compared(found, real)
    with open("docs/cells.md", "w") as file:
        file.write("\n".join(out).rstrip() + "\n")
    with open("docs/cells.svg", "w") as file:
        file.write(figure.small_multiples(found, RATES, TRIPS, LOSSES))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("lasthop")
    parser.add_argument("--virtual", metavar="KERNEL")
    parser.add_argument("--cells", type=int, default=240)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--renew", default="", metavar="BUILD[:VALUE,...]")
    parser.add_argument("--only", choices=["page"])
    arguments = parser.parse_args()
    lasthop = os.path.realpath(arguments.lasthop)
    virtual = arguments.virtual and os.path.realpath(arguments.virtual)
    os.chdir(os.path.join(os.path.dirname(__file__), ".."))
    deadline = time.time() + 60 * arguments.minutes if arguments.minutes else None
    if arguments.only != "page":
        world = World.of(lasthop, virtual)
        rows = recorded(world.records)
        measure_all(world, drawn(arguments.cells), rows, arguments.renew, deadline)
    rows = list(recorded(RECORDS).values())
    if rows:
        page(rows, recorded(RECORDS_IN_REAL_TIME), lasthop)
    sys.exit(any(row["verdict"] == "slower" for row in rows))


if __name__ == "__main__":
    main()
