#!/usr/bin/env python3
"""Measures everything that docs/measurements.md shows and writes that file, and docs/when-not.md.

Real kernels, the real daemon, our emulated radio. With --virtual all but what processors take is
measured in a user-mode kernel whose time is virtual (bench/virtual/build.sh makes one), a table on
each processor; that needs neither root nor an idle machine, the others do, and what they find is not
kept if most of their runs were late. What was found stands in docs/measurements, run by run. It may
be stopped at any time and goes on, on any machine: a table whose command and build are those of its
record there is not measured again.

    bench/measure.py LASTHOP [--virtual KERNEL] [--minutes M] [--tables NAME,...] [--fresh]
                     [--only page|virtual]

--minutes begins no table after that, --tables measures these only, --fresh forgets what was measured,
--only virtual leaves out what is not measured in virtual time, --only page writes the page of what is
there.
"""
import argparse
import concurrent.futures
import csv
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time

import cells
import tables
from found import Found

RUNS = "lasthop-out/measure"
PAGE = "docs/measurements.md"
WHEN_NOT = "docs/when-not.md"
# What decides what a run is; the rest of the program only shows it.
DECIDES = ["wire", "sansio", "link", "trace", "tcp", "schemes", "node", "live"]

HEAD = """# Measurements

Made by `make measure`: unmodified Linux TCPs in network namespaces, the real daemon at the base
station, our emulated radio; most of it in a user-mode kernel whose time is virtual: it passes only
while nobody has anything to do, so that nobody is late, and processors cost nothing. `lasthop lab` compares every byte by SHA-256; rows of the
simulator say `sim`. A table stands below the command that makes it, and says when it was made and how late
the emulated radio was: 99 of 100 frames of the worst run were no later than that.
"""


def git(*arguments):
    result = subprocess.run(["git", *arguments], capture_output=True, text=True)
    return result.stdout if result.returncode == 0 else ""


def build(lasthop):
    """What was built, as far as it decides a run: committed sources, or else the program itself."""
    crates = [f"crates/{name}" for name in DECIDES]
    crates.append("crates/cli/src/lab")
    sources = git("ls-tree", "HEAD", *crates, "Cargo.lock")
    if sources and not git("status", "--porcelain", "--", *crates):
        return hashlib.sha256(sources.encode()).hexdigest()[:12]
    with open(lasthop, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()[:12]


def is_done(table, built):
    found = Found.read(table.name)
    record = found and found.record
    return bool(record) and (record["command"], record["build"]) == (table.command(), built)


def measure(table, world, built, commit, processor):
    """Runs a table's command and keeps what it found; how long it took. None if it ran late."""
    out = os.path.join(RUNS, table.name)
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out)
    began = time.time()
    virtual = table.can_be_virtual and world.virtual
    command = table.argv(world.lasthop, out, virtual)
    command = ["bench/virtual/run.sh", virtual, *command] if virtual else command
    result = subprocess.run(command, capture_output=True, text=True,
                            env={**os.environ, "CPU": str(processor)})
    # 1: a check failed, which the page says.
    if result.returncode not in (0, 1):
        sys.exit(f"measure: {table.command()}\n{result.stderr or result.stdout}")
    record = {"command": table.command(), "build": built, "seconds": time.time() - began,
              "commit": commit,
              "kernel": f"{world.kernel} in virtual time" if virtual else os.uname().release,
              "date": time.strftime("%F", time.gmtime()),
              "passed": result.returncode == 0, "text": result.stdout}
    found = Found.of_runs(out, record)
    late = [run for run in found.runs if run["late_s"] and run["late_s"] > cells.LATE]
    if len(late) > len(found.runs) / 2:
        print(f"measure: {table.name} is not kept: the radio was late in {len(late)} of "
              f"{len(found.runs)} runs, others use the machine", file=sys.stderr)
        return None
    found.write(table.name)
    return record["seconds"]


def measure_all(wanted, world, minutes):
    """Measures the tables that are not measured yet: first those in virtual time, one on each
    processor, then the others, one by one."""
    built, commit = build(world.lasthop), git("rev-parse", "--short=12", "HEAD").strip()
    left = [table for table in wanted if not is_done(table, built)]
    deadline = time.time() + 60 * minutes if minutes else None
    done = []

    def go_on(tables_left, processor):
        while tables_left and not (deadline and time.time() > deadline):
            table = tables_left.pop(0)
            print(f"measure: {table.name}, {len(done)} of {len(left)} done", file=sys.stderr)
            took = measure(table, world, built, commit, processor)
            if took is not None:
                done.append(table)
                print(f"measure: {table.name} took {took / 60:.1f} min", file=sys.stderr)

    virtual = [table for table in left if table.can_be_virtual and world.virtual]
    others = [table for table in left if table not in virtual]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for worker in [pool.submit(go_on, virtual, each) for each in range(os.cpu_count())]:
            worker.result()
    go_on(others, 0)
    if len(done) < len(left):
        print(f"measure: stopped with {len(left) - len(done)} of {len(wanted)} tables to do; "
              "run it again to go on", file=sys.stderr)


def shown(table):
    """A table with its command, and what is to be known of its runs."""
    found = Found.read(table.name)
    if found is None:
        return ["```", f"$ {table.command()}", "```", "", "Not measured yet.", ""]
    record = found.record
    lines = ["```", f"$ {record['command']}"]
    body = table.show(found)
    notes = [f"{record['date']}, build {record['commit']}, Linux {record['kernel']}, "
             f"{max(1, round(record['seconds'] / 60))} min"]
    if found.late_s() is not None:
        notes.append(f"radio late by {found.late_s() * 1e3:.2f} ms (p99)")
    if found.failures():
        notes.append(f"**{len(found.failures())} runs failed:** {found.failures()[0]}")
    if table.is_text:
        lines += [*body, "```", ""]
    else:
        lines += ["```", "", *body, ""]
    return lines + ["; ".join(notes) + ".", ""]


def of_cells():
    """The cells' page in a paragraph."""
    if not os.path.exists("docs/cells.csv"):
        return ["[cells.md](cells.md) is made by `make cells`; not measured yet.", ""]
    with open("docs/cells.csv", newline="") as file:
        rows = [{**row, "gain": float(row["gain"])} for row in csv.DictReader(file)]
    out = []
    lines = []
    for way in ("down", "up"):
        own = [row for row in rows if row["way"] == way]
        if own:
            counts = [str(sum(row["verdict"] == name for row in own)) for name in cells.VERDICTS]
            lines.append([way, str(len(own)), f"{cells.mean_gain(own):.2f}", *counts])
    cells.table(out, ["", "cells", "gain", *cells.VERDICTS], lines)
    return ["Senders, SACK, loss, rate, round trip and way, drawn from all 540 combinations; goodput "
            "with `snoop-modern`", "over that of `plain`. By value, every cell, and which were "
            "slower: [cells.md](cells.md).", "", "```", "$ make cells", "```", "", *out]


def when_not():
    """The table of cases in which it does not help."""
    by_answer = {False: [], True: []}
    for case in tables.WHEN_NOT:
        found = Found.read(case.table.name)
        numbers, helps = case.numbers(found) if found else (["-", "-", "not measured"], False)
        command = f"`{case.table.command()}`".replace("|", "\\|")
        by_answer[helps].append([case.when, *numbers, case.why, command])
    head = ["when", "plain", "snoop-modern", "ratio", "why", "command"]
    out = ["## Does not help when", "",
           "Measured by `make measure`. The first two numbers are medians with `plain` and with "
           "`snoop-modern`, the", "third is their ratio by pairs of runs with the same seed: "
           "geometric mean and 95 % bounds.", ""]
    cells.table(out, head, by_answer[False])
    if by_answer[True]:
        out += ["Expected of these, too, for the reason given, but there it does help:", ""]
        cells.table(out, head, by_answer[True])
    out += ["And nothing to measure: what is not TCP, or hides it (QUIC, VPNs), passes untouched",
            "(`cargo test -p lasthop-live --test lab -- other_protocols nft_and_the_daemon`).", ""]
    return out


def write(path, lines):
    with open(path, "w") as file:
        file.write("\n".join(lines).rstrip() + "\n")


def page():
    out = HEAD.split("\n")
    for section in tables.SECTIONS:
        out += [f"## {section.title}", "", *section.text.strip().split("\n"), ""]
        for table in section.tables:
            out += [f"### {table.title}", ""] if table.title else []
            out += shown(table)
        if section.more:
            out += section.more(Found.read)
        if section.title == tables.CELLS:
            out += of_cells()
    answer = when_not()
    write(WHEN_NOT, answer)
    write(PAGE, out + answer)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("lasthop")
    parser.add_argument("--virtual", metavar="KERNEL")
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--tables", metavar="NAME,...")
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--only", choices=["page", "virtual"])
    arguments = parser.parse_args()
    lasthop = os.path.realpath(arguments.lasthop)
    world = cells.World.of(lasthop, arguments.virtual and os.path.realpath(arguments.virtual))
    os.chdir(os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
    wanted = [table for table in tables.all_tables()
              if table.can_be_virtual or arguments.only != "virtual"]
    if arguments.tables:
        names = arguments.tables.split(",")
        unknown = set(names) - {table.name for table in wanted}
        if unknown:
            parser.error(f"--tables {','.join(sorted(unknown))}: expected some of "
                         + ", ".join(table.name for table in wanted))
        wanted = [table for table in wanted if table.name in names]
    if arguments.fresh:
        for table in wanted:
            Found.forget(table.name)
    if arguments.only != "page":
        measure_all(wanted, world, arguments.minutes)
    page()
    print(f"wrote {PAGE} and {WHEN_NOT}", file=sys.stderr)


if __name__ == "__main__":
    main()
