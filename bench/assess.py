#!/usr/bin/env python3
"""Truth against verdict: `lasthop assess` on captures whose trouble is known, for it was made.

    bench/assess.py LASTHOP --set frozen|lab
    bench/assess.py LASTHOP --set drawn --draw N

Each scenario is one run with one trouble and nothing else: of the simulator, whose packets are
captured at the fixed host, at the base station and at the mobile host, or, in the set `lab`, of real
kernels behind our radio, captured by tcpdump at the base station (root, iproute2, tcpdump). The verdict is the cause that `assess` gives the connection in
`trouble`. The rules of crates/assess/src/cause.rs were made with the set `frozen` at hand. A draw is
36 scenarios by chance, made after the rules were fixed; once the rules change because of a draw, only
the next one counts.
"""

import collections
import json
import os
import pathlib
import random
import socket
import subprocess
import sys
import tempfile
import time

PORT = 5201
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


def drawn(draw):
    """Drawn after the rules were fixed: rates, round trips, senders and troubles by chance."""
    chance = random.Random(20261121 + draw)
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


def real():
    """Real kernels: the trouble, the link, and what the two programs do (see `serve`, `read`)."""
    base = ["--rate", "10Mbit/s", "--delay", "5ms", "--rtt", "50ms", "--queue", "2000p"]
    for loss in ("1%", "3%"):
        for tcp in ("cubic", "reno"):
            yield "radio", f"loss {loss}, {tcp}", [*base, "--loss", loss, "--tcp", tcp], "bulk"
    for length in ("800ms", "2s"):
        for hold in ("", ",hold"):
            outage = ["--outage", f"every=4s,length={length}{hold}"]
            yield "outage", f"outage {length}{hold}", [*base, *outage, "--tcp", "cubic"], "bulk"
    for queue in ("15p", "60p"):
        for tcp in ("cubic", "reno"):
            link = [*base[:-1], queue, "--tcp", tcp]
            yield "congestion", f"queue {queue}, {tcp}", link, "bulk"
    for kind in ("pause", "think"):
        yield "application", f"sender: {kind}", [*base, "--tcp", "cubic"], kind
    for kind in ("stops", "slow"):
        yield "receiver", f"reader: {kind}", [*base, "--tcp", "cubic"], kind


def in_lab(lasthop, link, kind, folder):
    """A capture of real kernels, taken at the base station."""
    capture = folder / "base-station.pcap"
    command = [lasthop, "lab", "--schemes", "plain", "--quiet", *link, "--", sys.executable,
               str(pathlib.Path(__file__).resolve()), "--read", kind, str(capture)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return {"base-station": capture}


def read(kind, capture):
    """At the mobile host: reads what `serve` sends at the fixed host, as fast as `kind` says."""
    inside = ["ip", "netns", "exec"]
    tcpdump = subprocess.Popen([*inside, os.environ["LH_NS_BASE"], "tcpdump", "-i", "any", "-U",
                                "-s", "128", "-w", capture, "tcp"])
    server = subprocess.Popen([*inside, os.environ["LH_NS_FIXED"], sys.executable, __file__,
                               "--serve", kind])
    try:
        time.sleep(1.5)
        client = socket.socket()
        if kind in ("stops", "slow"):
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 10)
        client.connect((os.environ["LH_FIXED_HOST"], PORT))
        total, paused = 0, 0
        while piece := client.recv(16 << 10):
            total += len(piece)
            if kind == "stops" and total // 700_000 > paused:
                paused = total // 700_000
                time.sleep(1.5)
            if kind == "slow":
                time.sleep(0.4)
        time.sleep(0.5)
    finally:
        for process in (tcpdump, server):
            process.terminate()
            process.wait()


def serve(kind):
    """At the fixed host: sends."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("", PORT))
    listener.listen()
    peer, _ = listener.accept()
    if kind == "pause":
        for _ in range(6):
            peer.sendall(bytes(300_000))
            time.sleep(1.5)
    elif kind == "think":
        for _ in range(12):
            peer.sendall(bytes(9_000))
            time.sleep(0.8)
    else:
        peer.sendall(bytes({"bulk": 8_000_000, "stops": 4_000_000, "slow": 300_000}[kind]))
    peer.close()


def table(tables):
    """Truth down, verdict across, for each place."""
    for place in tables:
        print(f"\n{place}:\n\n{'truth':<12}" + "".join(f"{it:>12}" for it in CAUSES))
        for truth in CAUSES[:6]:
            row = tables[place][truth]
            if row:
                print(f"{truth:<12}" + "".join(f"{row[it] or '.':>12}" for it in CAUSES))
        right = sum(row[truth] for truth, row in tables[place].items())
        total = sum(sum(row.values()) for row in tables[place].values())
        print(f"\n{right} of {total} right")


def main():
    if sys.argv[1] == "--read":
        return read(*sys.argv[2:])
    if sys.argv[1] == "--serve":
        return serve(sys.argv[2])
    lasthop = sys.argv[1]
    name = sys.argv[sys.argv.index("--set") + 1] if "--set" in sys.argv else "frozen"
    draw = int(sys.argv[sys.argv.index("--draw") + 1]) if "--draw" in sys.argv else 1
    scenarios = {"frozen": frozen, "drawn": lambda: drawn(draw), "lab": real}[name]
    tables = {place: collections.defaultdict(collections.Counter) for place in PLACES}
    for seed, (truth, words, *setting) in enumerate(scenarios(), start=1):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            if name == "lab":
                captures = in_lab(lasthop, *setting, folder)
            else:
                captures = simulated(lasthop, *setting, seed, folder)
            found = {place: verdict(lasthop, capture) for place, capture in captures.items()}
        for place, (cause, _) in found.items():
            tables[place][truth][cause] += 1
        wrong = [f"{place}: {cause} ({why})" for place, (cause, why) in found.items()
                 if cause != truth]
        print(f"{truth:<12} {words:<46} " + ("; ".join(wrong) or "right everywhere"), flush=True)
    table({place: found for place, found in tables.items() if found})


if __name__ == "__main__":
    main()
