"""What `bench/measure.py` measures: each table's command, and how its records become Markdown."""
import math
import os
import statistics
import sys
from dataclasses import dataclass, field
from typing import Callable

import cells
from found import Found

SCHEMES = "plain,plain-tuned,snoop,snoop-modern"
CELLS = "Who is helped: 240 cells"


@dataclass
class Table:
    """A command of `lasthop lab` and what is shown of its runs."""
    name: str
    arguments: list
    lanes: int
    # About how long it takes.
    seconds: float
    show: Callable = None
    is_text: bool = False
    title: str = ""
    # What processors take is not measured where they are never busy.
    can_be_virtual: bool = True

    def argv(self, lasthop, out, virtual):
        jobs = 1 if virtual else self.lanes
        return [lasthop, "lab", *self.arguments, "--jobs", str(jobs), "--quiet", "--out", out]

    def command(self):
        return " ".join(["lasthop", "lab", *self.arguments])


@dataclass
class Script:
    """A command that is no lab's; it writes what it found to a folder."""
    name: str
    argv_of: Callable
    line: str
    seconds: float
    show: Callable = None
    is_text: bool = False
    title: str = ""
    can_be_virtual: bool = False

    def argv(self, lasthop, out, virtual):
        return self.argv_of(lasthop, out, 1 if virtual else 8)

    def command(self):
        return self.line


@dataclass
class Section:
    title: str
    text: str
    tables: list = field(default_factory=list)
    # What follows from several tables together.
    more: Callable = None


def markdown(head, lines):
    out = []
    cells.table(out, head, lines)
    return out[:-1]


def quantile(values, share):
    """Linear between the two nearest, as `study::statistics` has it."""
    values = sorted(values)
    place = share * (len(values) - 1)
    low = math.floor(place)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (place - low)


def ms(seconds):
    return "-" if seconds is None else f"{seconds * 1e3:.0f}"


def text(found):
    """The lab's own table."""
    return [line for line in found.record["text"].split("\n") if not line.startswith("Report:")]


def sack_of(row):
    return "" if row["sack"] else ", no SACK"


# Outages ----------------------------------------------------------------------------------------

LENGTHS = [("0.1s", "1s"), ("1s", "10s"), ("10s", "60s")]
ROUND_TRIP_S = 0.032
RADIO_BPS = 20e6


def stalls(found, row):
    runs = found.of(tcp=row["tcp"], scheme=row["scheme"])
    return [stall for run in runs for stall in run["stalls_s"]]


def outage_table(found):
    lines = []
    for row in found.rows:
        found_stalls = stalls(found, row)
        runs = found.of(tcp=row["tcp"], scheme=row["scheme"])
        gave_up = sum(not run["finished"] for run in runs)
        until = row["recovery_after_outage_s"] or {}
        spread = [ms(quantile(found_stalls, share)) for share in (0.5, 0.95, 1)] if found_stalls \
            else ["-"] * 3
        shares = [run["probe_bytes"] * 8 / RADIO_BPS / run["seconds"]
                  for run in runs if run["probe_bytes"] is not None]
        lines.append([row["tcp"] + sack_of(row), row["scheme"], str(len(found_stalls)), *spread,
                      ms(until.get("p50")), ms(until.get("p95")), str(gave_up),
                      f"{max(shares):.3%}" if shares else "-"])
    return markdown(["sender", "scheme", "n", "p50", "p95", "max", "500 kB p50", "p95", "given up",
                     "probes, of the link"], lines)


def outage_summary(how):
    """The stalls of all lengths together, by scheme, and the bounds."""
    def more(found_of):
        out, lines = [], []
        for way, bound in (("lost", 0.060), ("notified", 0.020)):
            for low, high in LENGTHS:
                found = found_of(outage_name(way, low))
                if found is None:
                    continue
                for tcp in found.values("tcp"):
                    of = {row["scheme"]: stalls(found, row) for row in found.rows
                          if row["tcp"] == tcp}
                    if not all(of.get(scheme) for scheme in ("plain", "snoop-modern")):
                        continue
                    p95 = {scheme: quantile(own, 0.95) for scheme, own in of.items() if own}
                    limit = ROUND_TRIP_S + bound
                    ours = p95["snoop-modern"]
                    lines.append([
                        "nobody is told" if way == "lost" else "notified", f"{low} to {high}", tcp,
                        f"{ms(ours)} of {ms(limit)}", "yes" if ours <= limit else "**no**",
                        f"{p95['plain'] / ours:.0f}",
                        f"{p95['plain-tuned'] / ours:.0f}" if "plain-tuned" in p95 else "-"])
        if lines:
            out += [how, ""] + markdown(
                ["", "outage", "sender", "p95 of bound, ms", "within", "x shorter than plain",
                 "than tuned"], lines) + [""]
        return out
    return more


def outage_name(how, shortest):
    return f"outage-{how}-{shortest}"


def upward_tables():
    """Data from the mobile host: all lengths together, and senders with SACK."""
    found = []
    for how, words in (("lost", "nobody is told"), ("notified", "the base station is told")):
        outage = "at=2s..3s,length=0.1s..10s" + ("" if how == "lost" else f",{how}")
        found.append(Table(f"outage-up-{how}", [
            *RADIO, "--outage", outage, "--direction", "up", "--tcp", "reno,cubic,bbr", "--sack",
            "on", "--schemes", "plain,plain-tuned,snoop-modern", "--size", "10MB", "--seeds", "30",
            "--no-prediction"], 16, 250, outage_table, title=f"Lost, {words}: 0.1 to 10 s"))
    return found


def outage_tables():
    found = []
    told = {"lost": "Lost, nobody is told", "notified": "Lost, the base station is told",
            "hold": "Held"}
    for how, words in told.items():
        # Long outages are mostly waiting: more of them at once.
        for (low, high), lanes, seconds in zip(LENGTHS, (8, 16, 32), (280, 250, 600)):
            outage = f"at=2s..3s,length={low}..{high}" + ("" if how == "lost" else f",{how}")
            arguments = [*RADIO, "--outage", outage, "--tcp", "reno,cubic,bbr", "--schemes",
                         SCHEMES, "--size", "10MB", "--seeds", "30", "--no-prediction"]
            found.append(Table(outage_name(how, low), arguments, lanes, seconds, outage_table,
                               title=f"{words}: {low} to {high}"))
    return found


# Neighbours -------------------------------------------------------------------------------------

def neighbour_table(found):
    lines = []
    for row in found.rows:
        of = row["mobiles"]
        change, late = of["neighbour_change"], of["neighbour_latency_s"]
        lines.append([
            row["tcp"] + sack_of(row), row["loss"], row["scheme"],
            f"{of['goodput_bps'][0] / 1e6:.2f}", f"{of['neighbour_bps']['mean'] / 1e6:.2f}",
            "-" if change is None else f"{change['mean'] * 100:+.0f} ± {change['ci95'] * 100:.0f}",
            f"{of['jain']['mean']:.3f}",
            " / ".join(ms(late[share]) for share in ("p50", "p95", "p99")) if late else "-"])
    return markdown(["sender", "loss", "scheme", "first, Mbit/s", "neighbour, Mbit/s",
                     "against plain, %", "Jain", "neighbour's messages p50 / p95 / p99, ms"], lines)


def neighbour_tables():
    found = []
    for served in ("first", "all"):
        for traffic in ("bulk", "bulk+request:2kB,every=100ms"):
            name = f"neighbour-{served}-{traffic.split(':')[0].replace('+', '-')}"
            arguments = ["--rate", "10Mbit/s", "--delay", "10ms", "--wired-rate", "1Gbit/s",
                         "--wired-delay", "10ms", "--queue", "50p", "--ber", "none", "--loss",
                         "none,0.1%,1%", "--outage", "none", "--tcp", "cubic,bbr", "--schemes",
                         "plain,snoop,snoop-modern", "--mobiles", "2", "--served", served,
                         "--traffic", traffic, "--duration", "10s", "--seeds", "10",
                         "--no-prediction"]
            title = f"{'The first host alone' if served == 'first' else 'Both'} served, " \
                + ("bulk data" if traffic == "bulk" else "bulk data and messages")
            found.append(Table(name, arguments, 8, 250, neighbour_table, title=title))
    return found


# Latency under load -----------------------------------------------------------------------------

def latency_table(found):
    lines = []
    for row in found.rows:
        late = row["latency_s"]
        goodput = statistics.median(
            run["goodput_bps"] / 1e6
            for run in found.of(tcp=row["tcp"], scheme=row["scheme"], loss=row["loss"]))
        lines.append([row["tcp"], row["loss"], row["scheme"],
                      *(ms(late[share]) for share in ("p50", "p95", "p99", "max")), f"{goodput:.2f}"])
    return markdown(["sender", "loss", "scheme", "p50, ms", "p95", "p99", "max",
                     "goodput, Mbit/s"], lines)


def latency_tables():
    found = []
    for rate, lanes, seconds in ((2, 8, 220), (20, 4, 430), (100, 2, 460)):
        arguments = ["--rate", f"{rate}Mbit/s", "--delay", "12ms", "--wired-rate", "1Gbit/s",
                     "--rtt", "60ms", "--queue", f"{max(20, rate * 5)}p", "--ber", "none", "--loss",
                     "none,1%", "--outage", "none", "--tcp", "cubic,bbr", "--schemes", SCHEMES,
                     "--traffic", "bulk+request:500B,every=50ms", "--duration",
                     "5s" if rate == 100 else "10s", "--seeds", "10", "--no-prediction"]
        found.append(Table(f"latency-{rate}", arguments, lanes, seconds, latency_table,
                           title=f"{rate} Mbit/s"))
    return found


# Processor --------------------------------------------------------------------------------------

def processor_table(found):
    lines = []
    for row in found.rows:
        runs = found.of(scheme=row["scheme"], loss=row["loss"])
        goodput = statistics.median(run["goodput_bps"] for run in runs) / 1e6
        if runs[0]["daemon_cpu_s"] is None:
            per_packet, share, rate = "0 (no daemon)", "0", "-"
        else:
            packets = [run["packets"] for run in runs]
            spent = [run["daemon_cpu_s"] for run in runs]
            per_packet = f"{statistics.median(s / n for s, n in zip(spent, packets)) * 1e6:.1f}"
            share = f"{statistics.median(s / run['seconds'] for s, run in zip(spent, runs)):.1%}"
            rate = f"{statistics.median(n / run['seconds'] for n, run in zip(packets, runs)):.0f}"
        lines.append([row["loss"], row["scheme"], f"{goodput:.1f}", rate, per_packet, share])
    return markdown(["loss", "scheme", "Mbit/s", "packets/s", "us per packet",
                     "of a processor"], lines)


def bench_table(found):
    rows = found.more["rows"]
    return markdown(
        ["offloads", "", "Gbit/s", "of the kernel's", "ns per frame", "echo p50, us"],
        [["on" if row["offloads"] else "off", row["way"], f"{row['bits_per_second'] / 1e9:.2f}",
          f"{row['of_kernel']:.2f}", f"{row['frame_nanos']:.0f}", f"{row['echo_p50_micros']:.1f}"]
         for row in rows])


# MPTCP ------------------------------------------------------------------------------------------

def mptcp_table(found):
    runs, lines = found.more, []
    for arm in dict.fromkeys(run["arm"] for run in runs):
        own = [run for run in runs if run["arm"] == arm]
        waits = [run["stall_s"] for run in own if run["stall_s"] is not None]
        inside = [run["silent_s"] for run in own]
        spread = [ms(quantile(waits, share)) for share in (0.5, 0.95, 1)] if waits else ["-"] * 3
        lines.append([arm, str(len(waits)), *spread,
                      " / ".join(f"{quantile(inside, share):.2f}" for share in (0.5, 0.95, 1)),
                      f"{statistics.median(run['goodput_bps'] for run in own) / 1e6:.2f}",
                      f"{statistics.median(run['second_bytes'] for run in own) / 1e6:.1f}"])
    return markdown(["", "n", "after outage p50, ms", "p95", "max",
                     "longest silence p50 / p95 / max, s", "goodput, Mbit/s",
                     "over the second path, MB"], lines)


# When not ---------------------------------------------------------------------------------------

@dataclass
class WhenNot:
    when: str
    why: str
    table: Table

    def numbers(self, found):
        """Medians in Mbit/s and the ratio by pairs; and whether it helps all the same."""
        by_seed = {}
        for run in found.of():
            by_seed.setdefault(run["seed"], {})[run["scheme"]] = run["goodput_bps"]
        pairs = [of for of in by_seed.values() if len(of) == 2 and min(of.values()) > 0]
        if not pairs:
            return ["-", "-", "no run passed"], False
        medians = [statistics.median(of[scheme] for of in pairs) / 1e6
                   for scheme in ("plain", "snoop-modern")]
        mean, low, high = cells.gain([of["snoop-modern"] / of["plain"] for of in pairs])
        return [f"{medians[0]:.2f} Mbit/s", f"{medians[1]:.2f} Mbit/s",
                f"{mean:.2f} ({low:.2f}-{high:.2f})"], low > 1 + cells.MARGIN


def case(name, when, why, *more):
    arguments = ["--wired-rate", "1Gbit/s", "--ber", "none", *more, "--schemes",
                 "plain,snoop-modern", "--seeds", "10", "--no-prediction"]
    return WhenNot(when, why, Table(f"when-not-{name}", arguments, 4, 45, text, is_text=True))


def options(rate, trip_ms, queue, **more):
    base = {"rate": rate, "delay": f"{trip_ms / 5:g}ms", "rtt": f"{trip_ms}ms", "queue": queue,
            "loss": "none", "outage": "none", "tcp": "cubic", "duration": "10s", **more}
    return [part for key, value in base.items() for part in (f"--{key}", value)]


WHEN_NOT = [
    case("clean", "the link loses nothing and never goes away",
         "plain TCP is at the ceiling already", *options("20Mbit/s", 60, "100p")),
    case("held", "the radio holds packets during an outage",
         "they restart the sender by themselves; probes cost some bytes and gain nothing",
         *options("20Mbit/s", 60, "100p", outage="every=5s,length=0.1s..2s,hold")),
    case("queue", "losses come from a full queue",
         "they are the sender's to see, and the agent shows them",
         *options("20Mbit/s", 60, "20p")),
    case("near", "the sender is near, and losses are rare",
         "SACK repairs a loss in a round trip of 10 ms as fast as anybody could",
         *options("20Mbit/s", 10, "20p", loss="0.1%")),
    case("bbr", "the sender is bbr, and losses are rare",
         "bbr does not slow down for single losses",
         *options("20Mbit/s", 60, "100p", loss="0.1%", tcp="bbr")),
    case("indifferent", "the sender is bbr, near and with SACK, and losses are frequent",
         "it repairs them itself, and once that shows it is left alone",
         *options("100Mbit/s", 10, "83p", loss="3%", tcp="bbr")),
    case("up", "the mobile host sends a long transfer",
         "a stock sender halves its window for a loss, however early it is told",
         *options("20Mbit/s", 60, "100p", loss="1%", direction="up")),
    case("overrun", "no SACK, and a large window overruns a queue that nobody sees",
         "hundreds of holes, of which such a sender repairs one per round trip; on some links its "
         "own timeout is the faster way ([random-links.md](random-links.md))",
         *options("20Mbit/s", 60, "20p", tcp="reno", sack="off")),
]


# All of it --------------------------------------------------------------------------------------

LINK = ["--rate", "2Mbit/s", "--delay", "5ms", "--wired-rate", "100Mbit/s", "--wired-delay", "10ms"]
RADIO = ["--rate", "20Mbit/s", "--delay", "15ms", "--wired-rate", "1Gbit/s", "--wired-delay", "1ms",
         "--queue", "100p", "--ber", "none"]


def plain_table(name, seconds, *arguments):
    return Table(name, list(arguments), 8, seconds, text, is_text=True)


HERE = os.path.dirname(os.path.realpath(__file__))

SECTIONS = [
    Section(CELLS, """
Whether a scheme helps hangs on sender, SACK, loss, rate, round trip and way. In each of 240 cells
real kernels run 5 paired runs of every scheme, and 15 others where those were doubtful."""),
    Section("Bit errors, both worlds", """
2 Mbit/s, round trip 30 ms, a queue of 50 packets; 1 MB, medians of 5 paired seeds. `sim` is the
simulator's prediction with the same seeds; there is none for schemes it has no model of.""", [
        plain_table("errors", 300, *LINK, "--queue", "50p", "--ber",
                    "none,1/1Mbit,1/256Kbit,1/64Kbit", "--outage", "none", "--tcp",
                    "reno,cubic,bbr", "--schemes", SCHEMES, "--size", "1MB", "--seeds", "5")]),
    Section("A queue that overflows, both worlds", """
The rows above in which both worlds part, with 15 seeds: a queue that overflows without SACK. Which
packet overflows first hangs on when the receiver's memory grows, which is a matter of single packets
and so of a fraction of a millisecond (its round-trip time, in ticks of 1 ms, against the spacing of
packets, 6 ms), and each case goes on in its own way. Runs of strict `snoop` at 1/256Kbit (4.5 % of
full packets lost) spread over a factor of five, so that medians of 15 are up to a third apart. With
100 seeds they meet: the second table.""", [
        plain_table("overflow", 200, *LINK, "--queue", "50p", "--ber",
                    "none,1/1Mbit,1/256Kbit,1/64Kbit", "--outage", "none", "--tcp", "reno",
                    "--schemes", "plain,snoop,snoop-modern", "--size", "1MB", "--seeds", "15"),
        plain_table("overflow-100", 150, *LINK, "--queue", "50p", "--ber", "1/256Kbit", "--outage",
                    "none", "--tcp", "reno", "--schemes", "snoop", "--size", "1MB", "--seeds",
                    "100")]),
    Section("Simulator against lab", """
Kernel `reno`, SACK off, a window of 64 KiB (no queue overflows): the same channel in both worlds.""",
            [plain_table("worlds", 80, *LINK, "--queue", "100p", "--window", "64KiB", "--ber",
                         "none,1/8Mbit,1/4Mbit,1/2Mbit", "--outage", "none", "--tcp", "reno",
                         "--schemes", "plain,snoop,snoop-modern", "--size", "2MB", "--seeds",
                         "5")]),
    Section("Outages of 0.1 to 60 s", f"""
20 Mbit/s, round trip 32 ms; 10 MB and one outage per run. It begins 2 to 3 s into the flow, in any
phase of it, and its length is log-uniform within its class; 30 seeds, the same for every row of a
table. Packets are lost and nobody is told (*lost*); lost, and the base station is told (*notified*);
held by the radio, nobody is told (*hold*). *p50*, *p95*, *max*: ms from the link's return to the
first new ACK at the sender; *500 kB*: until so much more is acknowledged; *n*: runs that saw it;
*probes*: their bytes over what the link carries in the time of a run, at most. *Given up*: with
tcp_rto_max_ms=1000 a kernel has sent the same segment 15 times (tcp_retries2) after about 15 s, and
ends the connection. Where the radio *holds*, nothing is to be gained, and there is a price: probes
wait in its queue, too, which counts packets and is full, so that some of the sender's find no room.
Its next 500 kB are whole later then; while it is away, nothing tells such a radio from one that loses.""",
            outage_tables(), outage_summary(
        f"""p95 of `snoop-modern` against what is wanted: one round trip ({ROUND_TRIP_S * 1e3:.0f} ms)
and 60 ms more if nobody is told, 20 ms more if notified; and how many times shorter that is.""")),
    Section("Outages while the mobile host sends", """
The same radio; the data goes up. The sender is the mobile host's kernel, of whose data the base
station has nothing to send again. But the outage takes the last ACKs, too: the last of them, once more
when the link is back, is news to that sender, and it goes on at once. Where it was not lost, or without
SACK, the sender waits for its own timeout.""", upward_tables()),
    Section("Beside MPTCP", """
The same radio, cubic, outages of 0.1 to 10 s that lose and that nobody announces; 30 seeds, the same
for every row. Both ends have to speak MPTCP (this kernel's, `net.mptcp`), which no other row needs.
*One subflow* goes over the radio alone: MPTCP then has nothing to go on with. *Backup* and *both*
have a second path (4 Mbit/s, no delay of its own: better than any real second radio), used when the
kernel takes the first for dead, or all the time. Measured at the application. *After outage*: from
the radio's return to the next byte read; *longest silence*: without a byte, the outage included.
What arrived is not compared there.""", [
        Script("mptcp", lambda lasthop, out, lanes: [
            sys.executable, os.path.join(HERE, "mptcp.py"), lasthop, "--lanes", str(lanes), "--out",
            os.path.join(out, "mptcp.json")], "bench/mptcp.py lasthop", 420, mptcp_table,
               can_be_virtual=True)]),
    Section("A neighbour on the same radio", """
Two mobile hosts, 10 Mbit/s shared, round trip 40 ms, a queue of 50 packets for both; each loss rate
meets both alike. *First*: the base station serves the first host alone; *all*: both. *Against plain*:
the neighbour's goodput with the same seeds, mean and 95 % interval over 10 seeds. Why, and with
more hosts: [mobiles.md](mobiles.md).""",
            neighbour_tables()),
    Section("Latency under load", """
A message of 500 bytes every 50 ms beside a bulk transfer, 60 ms round trip, a queue of one
bandwidth-delay product (at least 20 packets); from write to read, all messages of 10 runs. Goodput
has the messages, too: 0.08 Mbit/s.""",
            latency_tables()),
    Section("Processor time per packet", """
`lasthop lab`: 100 Mbit/s, cubic, round trip 60 ms, the daemon inline: processor time of its process
over the packets that it took, both ways, medians of 5 runs. Few packets come at once there, and each
wakes it; at full speed (the second table, between plain veth, see [live-speed.md](live-speed.md))
many share a system call.""", [
        Table("processor", ["--rate", "100Mbit/s", "--delay", "12ms", "--wired-rate", "1Gbit/s",
                            "--rtt", "60ms", "--queue", "500p", "--ber", "none", "--loss",
                            "none,0.1%", "--outage", "none", "--tcp", "cubic", "--schemes",
                            "plain,observe,snoop,snoop-modern", "--duration", "5s", "--seeds", "5",
                            "--no-prediction"], 1, 250, processor_table, can_be_virtual=False),
        Script("bench-live", lambda _lasthop, out, _lanes: [
            "bash", os.path.join(HERE, "live.sh"), "--json", os.path.join(os.path.abspath(out),
                                                                          "bench.json")],
               "bench/live.sh", 200, bench_table)]),
]


def all_tables():
    return [table for section in SECTIONS for table in section.tables] \
        + [case.table for case in WHEN_NOT]
