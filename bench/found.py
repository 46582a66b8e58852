"""What `bench/measure.py` keeps of what a table's command found: docs/measurements/NAME.json."""
import glob
import json
import os
from dataclasses import dataclass

RECORDS = "docs/measurements"
# What is kept of a run, and of a row of the summary.
OF_RUN = ["scheme", "tcp", "sack", "loss", "seed", "checks", "finished", "seconds", "goodput_bps",
          "daemon_cpu_s"]
OF_ROW = ["world", "tcp", "sack", "scheme", "loss", "recovery_after_outage_s", "mobiles",
          "latency_s"]


def kept(run):
    """What is kept of a run."""
    daemon = run.get("daemon")
    late = run.get("radio_late_s")
    return {key: run[key] for key in OF_RUN if key in run} | {
        "late_s": late and late["p99"],
        "stalls_s": [stall for of in run["streams"]
                     for stall in of.get("stalls_after_outage_s", [])],
        "probe_bytes": (daemon.get("scheme") or {}).get("probe_bytes") if daemon else None,
        "packets": sum(daemon["packets"][key] for key in ("taken", "seen")) if daemon else None}


def load(path, otherwise):
    if not os.path.exists(path):
        return otherwise
    with open(path) as file:
        return json.load(file)


@dataclass
class Found:
    """What a table's command found: its record, its runs, and the rows of their summary."""
    record: dict
    runs: list
    rows: list
    # What a script found.
    more: object = None

    @staticmethod
    def of_runs(folder, record):
        """What the command left in a folder."""
        paths = sorted(glob.glob(os.path.join(folder, "*", "manifest.json")))
        summary = load(os.path.join(folder, "summary.json"), {"rows": []})
        rows = [{key: row[key] for key in OF_ROW if key in row} for row in summary["rows"]]
        more = next((load(path, None) for name in ("bench", "mptcp")
                     if os.path.exists(path := os.path.join(folder, f"{name}.json"))), None)
        return Found(record, [kept(load(path, None)) for path in paths], rows, more)

    @staticmethod
    def path(name):
        return os.path.join(RECORDS, f"{name}.json")

    @staticmethod
    def read(name):
        """What is known of a table; None if it was not measured."""
        found = load(Found.path(name), None)
        return found and Found(**found)

    @staticmethod
    def forget(name):
        if os.path.exists(Found.path(name)):
            os.remove(Found.path(name))

    def write(self, name):
        """Keeps it: a line for each run."""
        def lines(of):
            return "[" + ",".join("\n" + json.dumps(one) for one in of) + "]"
        os.makedirs(RECORDS, exist_ok=True)
        with open(Found.path(name) + ".part", "w") as file:
            file.write(f'{{"record": {json.dumps(self.record)},\n"more": {json.dumps(self.more)},\n'
                       f'"rows": {lines(self.rows)},\n"runs": {lines(self.runs)}}}\n')
        os.replace(Found.path(name) + ".part", Found.path(name))

    def of(self, **wanted):
        """The runs that passed and have these values."""
        return [run for run in self.runs if run.get("checks") == "passed"
                and all(run[key] == value for key, value in wanted.items())]

    def row(self, **wanted):
        rows = [row for row in self.rows if row["world"] == "lab"
                and all(row[key] == value for key, value in wanted.items())]
        return rows[0] if rows else None

    def values(self, key):
        """The values of a key in the order of the rows."""
        return list(dict.fromkeys(row[key] for row in self.rows))

    def late_s(self):
        return max((run["late_s"] for run in self.runs if run["late_s"]), default=None)

    def failures(self):
        return [f"{run['scheme']}, {run['tcp']}, seed {run['seed']}: {run.get('checks')}"
                for run in self.runs if run.get("checks") != "passed"]
