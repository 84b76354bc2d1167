"""deploy/ray/thalweg_ray.py on a cluster of two nodes on this machine, against a running server.

    python two_nodes.py THALWEG ADDRESS

Prints a line that begins with `ok` for each case, and exits with 1 where one does not hold.
"""

import base64
import collections
import html
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import zlib
from unittest import mock

# Both nodes are this machine: with this they communicate only over the loopback interface, which is Ray's default on
# systems other than Linux.
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

from ray.cluster_utils import Cluster  # noqa: E402

DRIVER = os.path.join(os.path.dirname(__file__), "../../../deploy/ray/thalweg_ray.py")
# The length of the response identifies the call.
CALL = ["--call", "grpc.testing.TestService/UnaryCall", "-d", '{"response_size": {{.RequestNumber}}}']
# Connecting takes long on a machine that also builds.
LEAD_S = "4"
COUNTED = ("ok", "failed", "dropped", "messages_received", "bytes_sent", "bytes_received", "schedule")

thalweg, server = sys.argv[1:]
temporary = tempfile.TemporaryDirectory(prefix="two-nodes-")


def path(name):
    return os.path.join(temporary.name, name)


def read(name):
    with open(path(name), encoding="utf-8") as file:
        return json.load(file)


def command(address, options, load):
    return [sys.executable, DRIVER, "--address", address, "--lead", LEAD_S, *options, "--", server, *CALL, *load]


def drive(address, options, load):
    args = command(address, options, load)
    done = subprocess.run(args, capture_output=True, text=True, timeout=90, check=False)
    print(done.stdout, done.stderr, flush=True)
    return done


def counts(timing):
    """Returns the counts of a histogram in HdrHistogram's encoding V2, plain or compressed."""
    data = base64.b64decode(timing["histogram"])
    if int.from_bytes(data[:4], "big") & 0xFF == 0x04 or data[8:9] == b"\x78":
        data = zlib.decompress(data[8:])
    length = int.from_bytes(data[4:8], "big")
    encoded, place, position = data[40 : 40 + length], 0, 0
    found = collections.Counter()
    while position < len(encoded):
        # ZigZag LEB128, whose ninth byte has eight bits.
        number = 0
        for index in range(9):
            byte = encoded[position]
            position += 1
            number |= (byte if index == 8 else byte & 0x7F) << (7 * index)
            if index == 8 or byte < 0x80:
                break
        number = (number >> 1) ^ -(number & 1)
        if number < 0:
            place -= number
        else:
            found[place] += number
            place += 1
    return +found


def nodes(stderr):
    lines = [line for line in stderr.splitlines() if line.startswith("part ") and " on " in line]
    return [line.rsplit("(", 1)[1] for line in lines]


def check(what, condition, detail=""):
    if not condition:
        print(f"FAIL {what}: {detail}")
        sys.exit(1)
    print(f"ok {what}", flush=True)


def shared_load(address):
    load = ["--rps", "500..1500/1s", "-n", "1501", "--arrivals", "poisson", "--seed", "3"]
    whole = path("whole.json")
    subprocess.run([thalweg, "load", server, *CALL, *load, "-O", "json", "-o", whole], check=True, timeout=60)
    options = ["--parts", "2", "--strict", "--thalweg", thalweg]
    done = drive(address, [*options, "--parts-folder", path("parts"), "--output", path("merged.json")], load)
    check("a load of two parts ends well", done.returncode == 0, done.returncode)
    check("each part is on a node of its own", len(set(nodes(done.stderr))) == 2, done.stderr)
    merged, whole, parts = read("merged.json"), read("whole.json"), [read(f"parts/part-{n}.json") for n in range(2)]
    check("the parts make the calls of the whole", all(merged[it] == whole[it] for it in COUNTED), merged)
    check("each makes its share", sorted(part["ok"] for part in parts) == [750, 751], [part["ok"] for part in parts])
    check("they begin together", parts[0]["started"] == parts[1]["started"] == merged["started"])
    for name in ("latency", "service", "wait"):
        summed = sum((counts(part[name]) for part in parts), collections.Counter())
        is_sum = counts(merged[name]) == summed and sum(summed.values()) == 1501
        check(f"the histogram of {name} is the sum of theirs", is_sum, summed)
    notes = [note["text"] for note in merged["notes"]]
    check("no part is missing or apart", not any("missing" in it or "apart" in it for it in notes), notes)
    check("the result is printed", "grpc.testing.TestService/UnaryCall" in done.stdout, done.stdout)
    check_page_of_merged_run(merged)


def check_page_of_merged_run(merged):
    """The page of the joined run shows the run's figures."""
    args = [thalweg, "merge", path("merged.json")]
    subprocess.run([*args, "-O", "html", "-o", path("merged.html")], check=True, timeout=60)
    text = subprocess.run(args, check=True, timeout=60, capture_output=True, text=True).stdout
    p99 = re.search(r"^latency .* p99 ([^,]+),", text, re.MULTILINE)[1]
    with open(path("merged.html"), encoding="utf-8") as file:
        page = file.read()

    def spaceless(it):
        # The page joins figures and units with special spaces.
        return re.sub(r"\s", "", html.unescape(it))

    for said in (
        "0 of 1501 calls",
        "schedule <code>500..1500/1s</code>, poisson arrivals",
        f"p99 {p99}</h1>",
    ):
        check(f"the page says: {said}", spaceless(said) in spaceless(page))
    within = json.loads(re.search(r'<script type="application/json" id="json">(.*?)</script>', page, re.DOTALL)[1])
    same = ("ok", "failed", "schedule", "merged_of", "latency")
    check("the page has the run itself", all(within[it] == merged[it] for it in same), within)


def check_shipped_program(address):
    os.mkdir(path("input"))
    with open(path("input/rate"), "w", encoding="utf-8") as file:
        file.write("400/30s\n")
    # The program is on this PATH only.
    os.environ["PATH"] = path("bin") + ":" + os.environ["PATH"]
    os.mkdir(path("bin"))
    os.symlink(os.path.abspath(thalweg), path("bin/thalweg-shipped"))
    options = ["--parts", "3", "--thalweg", "thalweg-shipped", "--ship", "--working-dir", path("input")]
    load = ["--rps", "@rate", "-z", "500ms", "--expect", "p50<1ns"]
    done = drive(address, [*options, "--output", path("shipped.json")], load)
    check("a condition that is not kept is exit code 3", done.returncode == 3, done.returncode)
    check("it is said of which part", "part 1 on " in done.stderr and "condition failed: p50<1ns" in done.stderr, done.stderr)
    merged = read("shipped.json")
    # A call may find no processor before the end.
    check("there is a result all the same", merged["ok"] + merged["dropped"] == 200, merged["notes"])
    check("the parts are on both nodes", len(set(nodes(done.stderr)[:3])) == 2, done.stderr)


def failures(address):
    options = ["--parts", "2", "--thalweg", thalweg]
    done = drive(address, options, ["--rps", "fast"])
    is_reported = "ended with exit code 2" in done.stderr and "`fast` is not a number" in done.stderr
    check("arguments that make no load are exit code 2", done.returncode == 2 and is_reported, done.returncode)
    done = drive(address, ["--parts", "3", "--strict", "--placed-within", "2", "--thalweg", thalweg], ["-n", "1"])
    is_reported = "3 parts with 1 CPUs each were not placed within 2 s: there are 2 nodes" in done.stderr
    check("parts that find no node are said", done.returncode == 1 and is_reported, done.stderr)


def check_interrupt(address):
    options = ["--parts", "2", "--thalweg", thalweg, "--output", path("interrupted.json")]
    args = command(address, options, ["--rps", "100", "-z", "5m"])
    driver = subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    # Once the parts are placed they begin within the lead.
    for line in driver.stderr:
        print(line, end="")
        if line.startswith("part 1 "):
            break
    time.sleep(float(LEAD_S) + 3)
    driver.send_signal(signal.SIGINT)
    stderr = driver.communicate(timeout=60)[1]
    print(stderr)
    check("an interrupt stops the parts", driver.returncode == 130, driver.returncode)
    check("what there is is the result", read("interrupted.json")["ok"] > 50, read("interrupted.json")["ok"])


def interrupted_while_results_are_fetched():
    sys.path.insert(0, os.path.dirname(DRIVER))
    sys.dont_write_bytecode = True
    import thalweg_ray

    fetched = (0, "", "{}")
    with mock.patch.multiple(
        thalweg_ray.ray,
        wait=lambda runs, timeout: (runs, []),
        get=mock.Mock(side_effect=[KeyboardInterrupt, fetched, fetched]),
    ):
        outcomes = thalweg_ray.collect([mock.Mock(), mock.Mock()], ["here", "there"], ["one", "other"])
    check("no result is lost when an interrupt comes as it is fetched", outcomes == [fetched, fetched], outcomes)


def check_lost_node(cluster, node):
    options = ["--parts", "2", "--strict", "--thalweg", thalweg, "--output", path("lost.json")]
    args = command(cluster.address, options, ["--rps", "100", "-z", "4s"])
    driver = subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for line in driver.stderr:
        print(line, end="")
        if line.startswith("part 1 "):
            break
    time.sleep(float(LEAD_S) / 2)
    cluster.remove_node(node)
    stderr = driver.communicate(timeout=60)[1]
    print(stderr)
    is_reported = "ended with exit code 1:\nit was lost: " in stderr
    check("a part whose node is lost is said", driver.returncode == 1 and is_reported, driver.returncode)
    notes = [note["text"] for note in read("lost.json")["notes"]]
    check("the other part is the result, with a note", any("of 2 is missing" in note for note in notes), notes)


def main():
    node = {
        "num_cpus": 2,
        "include_dashboard": False,
        "node_ip_address": "127.0.0.1",
        "object_store_memory": 100 * 2**20,
    }
    cluster = Cluster(initialize_head=True, head_node_args=node)
    try:
        other = cluster.add_node(num_cpus=2, node_ip_address="127.0.0.1", object_store_memory=100 * 2**20)
        cluster.wait_for_nodes()
        shared_load(cluster.address)
        check_shipped_program(cluster.address)
        failures(cluster.address)
        check_interrupt(cluster.address)
        interrupted_while_results_are_fetched()
        check_lost_node(cluster, other)
    finally:
        cluster.shutdown()


main()
