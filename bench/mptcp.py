#!/usr/bin/env python3
"""MPTCP (RFC 8684, this kernel's) beside the schemes: what an outage of the radio costs.

    bench/mptcp.py LASTHOP --out FILE [--seeds N] [--lanes N] [--arms NAME,...]

Each run is a `lasthop lab ... -- bench/mptcp.py --inside` with one outage, its begin and length
drawn from the seed, the same for every arm. A server at the fixed host sends as fast as it can;
what is measured is measured at the mobile host's application. The file has a list of runs. Needs
root (or user namespaces), iproute2, and nsenter of util-linux.
"""
import argparse
import json
import math
import os
import random
import socket
import struct
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

RADIO = ["--rate", "20Mbit/s", "--delay", "15ms", "--wired-rate", "1Gbit/s", "--wired-delay", "1ms",
         "--queue", "100p", "--ber", "none", "--tcp", "cubic"]
# Name: the lab's scheme, whether both ends speak MPTCP, and the flags of a second path's endpoint.
ARMS = {
    "plain": ("plain", False, None),
    "tuned sysctls": ("plain-tuned", False, None),
    "snoop-modern": ("snoop-modern", False, None),
    "MPTCP, one subflow": ("plain", True, None),
    "MPTCP, backup": ("plain", True, ["subflow", "backup"]),
    "MPTCP, both": ("plain", True, ["subflow"]),
}
SECOND_RATE = "4mbit"
IPPROTO_MPTCP = 262
CHUNK = 64 << 10


def drawn(seed):
    """When the radio goes away, uniform in 2 to 3 s, and for how long, log-uniform: seconds."""
    of = random.Random(seed)
    return of.uniform(2, 3), math.exp(of.uniform(math.log(0.1), math.log(10)))


def one(lasthop, arm, seed, lock):
    """A run in a lab of its own; its record."""
    scheme, _, _ = ARMS[arm]
    at, length = drawn(seed)
    # Whatever waits for its timeout has waited as long as the outage once more.
    lasts = at + 2 * length + 6
    command = [lasthop, "lab", *RADIO, "--outage", f"at={at * 1e3:.0f}ms,length={length * 1e3:.0f}ms",
               "--schemes", scheme, "--seed", str(seed), "--", sys.executable,
               os.path.realpath(__file__), "--inside", arm, str(lasts)]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        raise SystemExit(f"mptcp: {' '.join(command)}\n{result.stderr}")
    reads = json.loads(result.stdout)
    end = round(at * 1e3) / 1e3 + round(length * 1e3) / 1e3
    after = [when for when, _ in reads["reads"] if when > end]
    times = [0.0] + [when for when, _ in reads["reads"]] + [lasts]
    received = sum(count for _, count in reads["reads"])
    with lock:
        print(f"mptcp: {arm}, seed {seed}, away for {length:.2f} s", file=sys.stderr)
    return {"arm": arm, "seed": seed, "at_s": at, "length_s": length,
            "stall_s": min(after) - end if after else None,
            "silent_s": max(b - a for a, b in zip(times, times[1:])),
            "goodput_bps": received * 8 / lasts, "second_bytes": reads["second_bytes"],
            "radio": result.stderr.strip()}


def listener(address, is_mptcp):
    server = socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP if is_mptcp else 0)
    server.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
    server.bind((address, 0))
    server.listen(1)
    return server


def serve(address, is_mptcp):
    """At the fixed host: says its port, then sends until nobody listens any more."""
    server = listener(address, is_mptcp)
    print(server.getsockname()[1], flush=True)
    peer, _ = server.accept()
    # What is left to send when the run ends would stay in the kernel's memory, run after run, until
    # it gives every window less.
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    try:
        while True:
            peer.sendall(bytes(CHUNK))
    except OSError:
        pass


def ip(namespace, *lines):
    subprocess.run(["ip", "-n", namespace, "-batch", "-"], input="\n".join(lines) + "\n",
                   text=True, check=True)


def second_path(fixed, mobile, flags):
    """Joins the hosts by another way and has MPTCP use it."""
    ip(fixed, f"link add lh-second type veth peer name lh-second netns {mobile}",
       "address add 10.79.0.1/24 dev lh-second", "link set lh-second up",
       "mptcp limits set subflows 1 add_addr_accepted 0")
    ip(mobile, "address add 10.79.0.2/24 dev lh-second", "link set lh-second up",
       "rule add from 10.79.0.2 table 79", "route add default via 10.79.0.1 table 79",
       "mptcp limits set subflows 1 add_addr_accepted 0",
       f"mptcp endpoint add 10.79.0.2 dev lh-second {' '.join(flags)}")
    for namespace in (fixed, mobile):
        subprocess.run(["tc", "-n", namespace, "qdisc", "add", "dev", "lh-second", "root", "tbf",
                        "rate", SECOND_RATE, "burst", "16kb", "latency", "100ms"], check=True)


def inside(arm, lasts):
    """At the mobile host, with the lab around it."""
    _, is_mptcp, flags = ARMS[arm]
    fixed, mobile = os.environ["LH_NS_FIXED"], os.environ["LH_NS_MOBILE"]
    began = int(os.environ["LH_BEGAN_NS"])
    if flags:
        second_path(fixed, mobile, flags)
    address = os.environ["LH_FIXED_HOST"]
    server = subprocess.Popen(
        ["nsenter", f"--net=/run/netns/{fixed}", sys.executable, os.path.realpath(__file__),
         "--serve", address, "mptcp" if is_mptcp else "tcp"], stdout=subprocess.PIPE, text=True)
    try:
        port = int(server.stdout.readline())
        client = socket.socket(socket.AF_INET, socket.SOCK_STREAM,
                               IPPROTO_MPTCP if is_mptcp else 0)
        client.connect((address, port))
        reads = read_all(client, began, lasts)
        client.close()
    finally:
        server.kill()
        server.wait()
    second = 0
    if flags:
        shown = subprocess.run(["ip", "-n", mobile, "-s", "-j", "link", "show", "lh-second"],
                               capture_output=True, text=True, check=True).stdout
        second = json.loads(shown)[0]["stats64"]["rx"]["bytes"]
    json.dump({"reads": reads, "second_bytes": second}, sys.stdout)


def read_all(client, began, lasts):
    """When something was read, seconds since the run began, and how much."""
    reads = []
    end = began + int(lasts * 1e9)
    while True:
        left = (end - time.monotonic_ns()) / 1e9
        if left <= 0:
            return reads
        client.settimeout(left)
        try:
            count = len(client.recv(CHUNK))
        except TimeoutError:
            return reads
        if count == 0:
            return reads
        reads.append(((time.monotonic_ns() - began) / 1e9, count))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("lasthop")
    parser.add_argument("--out", required=True)
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--lanes", type=int, default=8)
    parser.add_argument("--arms", default=",".join(ARMS).replace(", ", "; "),
                        help="names, with ; for a comma in one")
    arguments = parser.parse_args()
    with open("/proc/sys/net/mptcp/enabled") as file:
        if file.read().strip() != "1":
            sys.exit("mptcp: net.mptcp.enabled is not 1; fix: sysctl net.mptcp.enabled=1")
    lasthop = os.path.realpath(arguments.lasthop)
    arms = [arm.replace("; ", ", ") for arm in arguments.arms.split(",")]
    unknown = [arm for arm in arms if arm not in ARMS]
    if unknown:
        sys.exit(f"mptcp: --arms {unknown[0]}: expected some of {'; '.join(ARMS)}")
    lock = threading.Lock()
    with ThreadPoolExecutor(arguments.lanes) as pool:
        runs = list(pool.map(lambda task: one(lasthop, task[1], task[0], lock),
                             [(seed, arm) for seed in range(1, arguments.seeds + 1)
                              for arm in arms]))
    with open(arguments.out, "w") as file:
        json.dump(runs, file)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        inside(sys.argv[2], float(sys.argv[3]))
    elif sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2], sys.argv[3] == "mptcp")
    else:
        main()
