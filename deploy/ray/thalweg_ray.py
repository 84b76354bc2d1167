#!/usr/bin/env python3
"""Runs one `thalweg load` jointly on the nodes of a Ray cluster.

    python thalweg_ray.py --parts 4 --output merged.json -- \\
        server:50051 --call shop.Orders/Get --rps 100k -z 1m

Each part is an actor that runs the command with `--share PART/PARTS`. They begin together at a time that is agreed on
once all of them are placed; `thalweg merge` joins their results. docs/distributed.md has the whole.

The exit code is the command's: 0, or that of a part which failed (1, 2, 3, 130).
"""

import argparse
import collections
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import zlib

import ray
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

# Length of a failed part's stderr that is shown.
STDERR_CHARS = 2000
# Larger clock differences are reported, because they make parts start too early or too late by as much.
CLOCKS_DIFFER_S = 0.02
# If parts failed with different exit codes, the first code in this list wins.
CODES_BY_WEIGHT = [2, 130, 1, 3]

Outcome = collections.namedtuple("Outcome", "code stderr result")


def before_start():
    """In the command's process."""
    # If the actor is lost, the kernel stops the command, so that it makes no more calls.
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGTERM)
    # Ray blocks SIGINT in its threads, and child processes inherit that.
    signal.pthread_sigmask(signal.SIG_SETMASK, set())


class Part:
    """Runs one part on the node where it was placed. It has two threads: one waits for the command, one may stop it."""

    def __init__(self, program, shipped):
        self.folder = tempfile.mkdtemp(prefix="thalweg-")
        self.program = program
        self.child = None
        self.is_stopped = False
        if shipped is not None:
            self.program = os.path.join(self.folder, "thalweg")
            with open(self.program, "wb") as file:
                file.write(zlib.decompress(shipped))
            os.chmod(self.program, 0o700)

    def place(self):
        """Returns the node of the part."""
        return f"{socket.gethostname()} ({ray.get_runtime_context().get_node_id()[:12]})"

    def clock(self):
        return time.time()

    def run(self, arguments):
        try:
            return self.outcome([self.program, "load", *arguments, "--quiet", "--format", "json"])
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def outcome(self, words):
        output = os.path.join(self.folder, "result.json")
        try:
            self.child = subprocess.Popen(
                [*words, "--output", output],
                stdin=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                preexec_fn=before_start,
            )
        except OSError as error:
            return Outcome(1, f"failed to start {self.program}: {error.strerror}", None)
        if self.is_stopped:
            self.child.send_signal(signal.SIGINT)
        stderr = self.child.communicate()[1]
        result = None
        if os.path.exists(output):
            with open(output, encoding="utf-8") as file:
                result = file.read()
        return Outcome(self.child.returncode, stderr[-STDERR_CHARS:].strip(), result)

    def stop(self):
        """Stops it like Ctrl-C: the result covers the time so far."""
        self.is_stopped = True
        if self.child is not None and self.child.poll() is None:
            self.child.send_signal(signal.SIGINT)


def arguments():
    parser = argparse.ArgumentParser(
        description="Runs one `thalweg load` jointly on the nodes of a Ray cluster.",
        epilog="Behind -- stands what `thalweg load` is told: TARGET --call METHOD …; rates and -n are those of all "
        "parts together.",
        usage="%(prog)s [options] -- TARGET --call METHOD …",
    )
    parser.add_argument("--parts", type=int, required=True, metavar="N", help="parts of the load")
    parser.add_argument("--output", metavar="FILE", help="write the joined result to this file, as JSON")
    parser.add_argument("--parts-folder", metavar="FOLDER", help="keep the results of the parts there")
    parser.add_argument(
        "--address", default="auto", help="the cluster's address [default: RAY_ADDRESS, or this node's]"
    )
    parser.add_argument(
        "--strict",
        action="store_true",
        help="each part on a node of its own, or none at all [default: as far as it goes]",
    )
    parser.add_argument(
        "--cpus", type=float, default=1, metavar="N", help="processors that a part is given [default: 1]"
    )
    parser.add_argument(
        "--thalweg", default="thalweg", metavar="PATH", help="the command, here and on the nodes [default: on the PATH]"
    )
    parser.add_argument("--ship", action="store_true", help="send this machine's command to the nodes, which need none")
    parser.add_argument(
        "--working-dir", metavar="FOLDER", help="send this folder to the nodes: files in the load's arguments lie there"
    )
    parser.add_argument(
        "--placed-within", type=float, default=60, metavar="SECONDS", help="give up when it takes longer [default: 60]"
    )
    parser.add_argument(
        "--lead",
        type=float,
        default=5,
        metavar="SECONDS",
        help="from when all parts are placed to when they begin to measure; the warm-up must fit in [default: 5]",
    )
    parser.add_argument("load", nargs="+", metavar="ARGUMENT", help=argparse.SUPPRESS)
    parsed = parser.parse_args()
    if parsed.parts < 1:
        parser.error("--parts is at least 1")
    return parsed


def say(text):
    print(text, file=sys.stderr, flush=True)


def fail(text, code=1):
    say(f"error: {text}")
    sys.exit(code)


def place(options, shipped):
    """Starts the parts, spread over the nodes, and returns the node of each."""
    settings = {"num_cpus": options.cpus, "max_concurrency": 2, "scheduling_strategy": "SPREAD"}
    began = time.monotonic()
    try:
        if options.strict:
            group = placement_group([{"CPU": options.cpus}] * options.parts, strategy="STRICT_SPREAD")
            ray.get(group.ready(), timeout=options.placed_within)
            settings["scheduling_strategy"] = PlacementGroupSchedulingStrategy(group)
        part = ray.remote(Part).options(**settings)
        parts = [part.remote(options.thalweg, shipped) for _ in range(options.parts)]
        left = max(options.placed_within - (time.monotonic() - began), 1)
        return parts, ray.get([part.place.remote() for part in parts], timeout=left)
    except ray.exceptions.GetTimeoutError:
        nodes = [node for node in ray.nodes() if node["Alive"]]
        free = ray.available_resources().get("CPU", 0)
        fail(
            f"{options.parts} parts with {options.cpus:g} CPUs each were not placed within "
            f"{options.placed_within:g} s: there are {len(nodes)} nodes, and {free:g} CPUs are free"
        )


def compare_clocks(parts, places):
    """Parts begin by their own clocks."""
    for number, (part, where) in enumerate(zip(parts, places)):
        # The fastest response gives the most accurate reading.
        readings = []
        for _ in range(5):
            before = time.time()
            theirs = ray.get(part.clock.remote())
            after = time.time()
            readings.append((after - before, theirs - (before + after) / 2))
        took, ahead = min(readings)
        if abs(ahead) > CLOCKS_DIFFER_S + took / 2:
            direction = "ahead of" if ahead > 0 else "behind"
            say(f"warning: the clock of part {number} on {where} is {abs(ahead) * 1000:.0f} ms {direction} this one's")


def collect(parts, places, runs):
    """Returns the outcome of each; Ctrl-C stops all of them."""
    outcomes = [None] * len(parts)
    waiting = {run: number for number, run in enumerate(runs)}
    while waiting:
        try:
            ended, _ = ray.wait(list(waiting), timeout=1)
            for run in ended:
                try:
                    outcomes[waiting[run]] = Outcome(*ray.get(run))
                except ray.exceptions.RayError as error:
                    outcomes[waiting[run]] = Outcome(1, f"it was lost: {error}", None)
                # Removed last: after a Ctrl-C at any point, missing results are still waited for.
                del waiting[run]
        except KeyboardInterrupt:
            say("interrupted: the parts are stopped")
            for part in parts:
                part.stop.remote()
    for number, (where, outcome) in enumerate(zip(places, outcomes)):
        if outcome.code != 0:
            stderr = f":\n{outcome.stderr}" if outcome.stderr else ""
            say(f"part {number} on {where} ended with exit code {outcome.code}{stderr}")
    return outcomes


def merge(options, outcomes):
    """Joins the available results and prints them."""
    with tempfile.TemporaryDirectory(prefix="thalweg-") as scratch:
        folder = options.parts_folder or scratch
        os.makedirs(folder, exist_ok=True)
        files = []
        for number, outcome in enumerate(outcomes):
            if outcome.result is not None:
                files.append(os.path.join(folder, f"part-{number}.json"))
                with open(files[-1], "w", encoding="utf-8") as file:
                    file.write(outcome.result)
        if not files:
            return 1
        merged = options.output or os.path.join(scratch, "merged.json")
        for words in (files + ["--format", "json", "--output", merged], [merged]):
            code = subprocess.run([options.thalweg, "merge", *words], check=False).returncode
            if code != 0:
                return code
    return 0


def main():
    options = arguments()
    program = shutil.which(options.thalweg)
    if program is None:
        fail(f"`{options.thalweg}` not found on this machine; set its path with --thalweg", 2)
    environment = {"working_dir": options.working_dir} if options.working_dir else {}
    ray.init(address=options.address, runtime_env=environment, log_to_driver=False, logging_level="ERROR")
    shipped = None
    if options.ship:
        with open(program, "rb") as file:
            # Compresses to a third, for the network and the object store.
            shipped = ray.put(zlib.compress(file.read(), level=1))
    parts, places = place(options, shipped)
    for number, where in enumerate(places):
        say(f"part {number} of {options.parts} on {where}")
    compare_clocks(parts, places)
    start_at = f"{time.time() + options.lead:.3f}"
    runs = [
        part.run.remote([*options.load, "--share", f"{number}/{options.parts}", "--start-at", start_at])
        for number, part in enumerate(parts)
    ]
    outcomes = collect(parts, places, runs)
    failed = {outcome.code for outcome in outcomes} - {0}
    merged = merge(options, outcomes)
    if failed:
        return next((code for code in CODES_BY_WEIGHT if code in failed), 1)
    return merged


if __name__ == "__main__":
    sys.exit(main())
