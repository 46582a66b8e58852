#!/usr/bin/env python3
"""Truth against verdict: `lasthop assess` on captures whose trouble is known, for it was made.

    bench/assess.py LASTHOP [--set frozen|drawn] [--lab]

Each scenario is one run of the simulator (or, with --lab, of real kernels behind our radio) with
one trouble and nothing else; its packets are captured at the fixed host, at the base station and at
the mobile host. The verdict is the cause that `assess` gives the connection in `trouble`. The rules
of crates/assess/src/cause.rs were made with the set `frozen` at hand and not touched afterwards;
the set `drawn` was drawn from the seed below after that.
"""

import collections
import json
import pathlib
import random
import subprocess
import sys
import tempfile

PLACES = ("fixed-host", "base-station", "mobile-host")
CAUSES = ("radio", "outage", "handoff", "congestion", "application", "receiver", "unknown", "none")
# Steps of 10 ms, in recorded channels.
STEP_S = 0.01


def frozen():
    """What the rules were made with."""
    base = {"rate": "10Mbit/s", "delay": "5ms", "rtt": "60ms", "size": "4MB", "tcp": "linux"}
    for loss in ("0.3%", "1%", "3%"):
        for tcp in ("linux", "reno"):
            yield "radio", f"loss {loss}, {tcp}", {**base, "loss": loss, "tcp": tcp}
    yield "radio", "bursts 1% of 4", {**base, "loss": "burst:mean=1%,length=4"}
    yield "radio", "2%, 20 Mbit/s, 120 ms", {**base, "loss": "2%", "rate": "20Mbit/s", "rtt": "120ms"}
    for length in ("300ms", "1s", "3s"):
        for hold in ("", ",hold"):
            outage = f"every=6s,length={length}{hold}"
            yield "outage", f"outage {length}{hold}", {**base, "size": "10MB", "outage": outage}
    for queue in ("10p", "30p", "100p"):
        for tcp in ("linux", "reno"):
            yield "congestion", f"queue {queue}, {tcp}", {
                **base, "size": "8MB", "queue": queue, "tcp": tcp}
    yield "congestion", "queue 40p, 2 Mbit/s", {**base, "rate": "2Mbit/s", "queue": "40p"}
    for every in ("1s", "3s"):
        yield "application", f"20 KB every {every}", {
            **base, "size": None, "duration": "20s", "traffic": f"request:20KB,every={every}"}
    for window in ("8KiB", "16KiB"):
        yield "receiver", f"window {window}", {**base, "size": "1MB", "window": window}
    for gap, before, after in ((0.3, 5, 25), (0.8, 25, 8), (1.5, 10, 60)):
        yield "handoff", f"gap {gap} s, {before} to {after} ms", {
            **base, "size": "10MB", "handoff": (gap, before, after)}


def drawn():
    """Drawn after the rules were frozen: rates, round trips, senders and troubles by chance."""
    chance = random.Random(20261122)
    for trouble in ("radio", "outage", "congestion", "application", "receiver", "handoff") * 6:
        rate = chance.choice((3, 5, 8, 15, 30))
        rtt = chance.choice((25, 40, 80, 150))
        tcp = chance.choice(("linux", "cubic", "reno"))
        seconds = 12
        base = {"rate": f"{rate}Mbit/s", "delay": f"{chance.choice((2, 5, 10))}ms",
                "rtt": f"{rtt}ms", "tcp": tcp, "size": f"{rate * seconds * 100}kB"}
        words = f"{rate} Mbit/s, {rtt} ms, {tcp}"
        if trouble == "radio":
            if chance.random() < 0.5:
                loss = f"{chance.choice((0.5, 1, 2, 4))}%"
            else:
                loss = f"burst:mean={chance.choice((0.5, 1, 2))}%,length={chance.choice((2, 3, 6))}"
            yield trouble, f"{words}, {loss}", {**base, "loss": loss}
        elif trouble == "outage":
            hold = chance.choice(("", ",hold"))
            length = f"{chance.choice((250, 400, 700, 1200, 2500))}ms"
            outage = f"every=5s,length={length}{hold}"
            yield trouble, f"{words}, {length}{hold}", {**base, "outage": outage}
        elif trouble == "congestion":
            bandwidth_delay = max(4, rate * rtt * 125 // 1500)
            queue = max(6, int(bandwidth_delay * chance.choice((0.3, 0.7, 1.5))))
            yield trouble, f"{words}, queue {queue}p", {**base, "queue": f"{queue}p"}
        elif trouble == "application":
            size, every = chance.choice((5, 30, 100)), chance.choice((1, 2, 4))
            yield trouble, f"{words}, {size} KB every {every} s", {
                **base, "size": None, "duration": "20s",
                "traffic": f"request:{size}KB,every={every}s"}
        elif trouble == "receiver":
            window = chance.choice((6, 10, 20))
            yield trouble, f"{words}, window {window} KiB", {
                **base, "size": "600kB", "window": f"{window}KiB"}
        else:
            gap = chance.choice((0.3, 0.6, 1.0, 2.0))
            before, after = chance.sample((4, 10, 20, 45, 80), 2)
            yield trouble, f"{words}, gap {gap} s, {before} to {after} ms", {
                **base, "handoff": (gap, before, after)}


def options(setting, seed, folder):
    """The command line of a scenario; a handoff is a recorded channel."""
    arguments = ["--schemes", "plain", "--seeds", "1", "--seed", str(seed)]
    setting = dict(setting)
    handoff = setting.pop("handoff", None)
    if "queue" not in setting:
        # No trouble but the one that was asked for: the queue holds whatever a window is.
        setting["queue"] = "4000p"
        setting.setdefault("window", "256KiB")
    if handoff:
        gap, before, after = handoff
        at, length = int(4 / STEP_S), int(gap / STEP_S)
        total = int(600 / STEP_S)
        for way in ("down", "up"):
            delays = [before] * (at + length // 2) + [after] * (total - at - length // 2)
            losses = [0] * at + [1] * length + [0] * (total - at - length)
            delay, loss = folder / f"{way}-delay", folder / f"{way}-loss"
            delay.write_text("".join(f"{ms * 1000000}\n" for ms in delays))
            loss.write_text("".join(f"{one}\n" for one in losses))
            arguments += [f"--{way}-delay", str(delay), f"--{way}-loss", str(loss)]
        arguments += ["--trace-step", "10ms"]
        setting.pop("delay")
        wired = (int(setting.pop("rtt")[:-2]) // 2)
        setting["wired-delay"] = f"{wired}ms"
    for name, value in setting.items():
        if value is not None:
            arguments += [f"--{name}", value]
    return arguments


def simulated(lasthop, setting, seed, folder):
    """The captures of one run of the simulator, by place."""
    command = [lasthop, "run", *options(setting, seed, folder), "--pcap", "--quiet", "--json",
               "--out", str(folder / "out")]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    run = next((folder / "out").glob("run-*"))
    return {place: run / f"{place}.pcapng" for place in PLACES}


def verdict(lasthop, capture):
    """What `assess` says troubles the connection, and its longest stall."""
    ran = subprocess.run([lasthop, "assess", str(capture), "--json"], check=True,
                         capture_output=True)
    connections = json.loads(ran.stdout)["connections"]
    most = max(connections, key=lambda it: it["payload_bytes"])
    stalls = sorted(most["stalls"], key=lambda it: -it["length_s"])
    evidence = stalls[0]["evidence"] if stalls else ""
    return most["trouble"] or "none", evidence


def table(tables):
    """Truth down, verdict across, for each place."""
    for place in PLACES:
        print(f"\n{place}:\n\n{'truth':<12}" + "".join(f"{it:>12}" for it in CAUSES))
        for truth in CAUSES[:6]:
            row = tables[place][truth]
            if row:
                print(f"{truth:<12}" + "".join(f"{row[it] or '.':>12}" for it in CAUSES))
        right = sum(row[truth] for truth, row in tables[place].items())
        total = sum(sum(row.values()) for row in tables[place].values())
        print(f"\n{right} of {total} right")


def main():
    lasthop = sys.argv[1]
    name = sys.argv[sys.argv.index("--set") + 1] if "--set" in sys.argv else "frozen"
    scenarios = {"frozen": frozen, "drawn": drawn}[name]
    tables = {place: collections.defaultdict(collections.Counter) for place in PLACES}
    for seed, (truth, words, setting) in enumerate(scenarios(), start=1):
        with tempfile.TemporaryDirectory() as folder:
            captures = simulated(lasthop, setting, seed, pathlib.Path(folder))
            found = {place: verdict(lasthop, capture) for place, capture in captures.items()}
        for place, (cause, _) in found.items():
            tables[place][truth][cause] += 1
        wrong = [f"{place}: {cause} ({why})" for place, (cause, why) in found.items()
                 if cause != truth]
        print(f"{truth:<12} {words:<46} " + ("; ".join(wrong) or "right everywhere"), flush=True)
    table(tables)


if __name__ == "__main__":
    main()
