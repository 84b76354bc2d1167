"""Compares our `.proto` front end with protoc: descriptors of what both accept, positions of what both refuse.

    oracle.py PROTOC INCLUDE OURS JOBS [CACHE] < trees.json > results.json

`trees.json` is a list of {"name", "roots": [folder], "files": [name within the roots]}. Each file is compiled alone by
both programs, then all files that protoc accepts as one set. `OURS` is the example `descriptor_set` of
crates/protobuf, which takes protoc's options. `CACHE` is a folder that keeps what protoc says of trees that never change.
"""

import hashlib
import json
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

ERROR = re.compile(r"^(?P<file>\S+?\.proto)(:(?P<line>\d+):(?P<column>\d+))?: ")
SECONDS = 600


class CompilerOutput:
    """One program's result for some files: a digest of an encoded FileDescriptorSet, or the errors."""

    def __init__(self, digest, lines, roots):
        self.digest, self.lines = digest, lines
        found = [match for match in map(ERROR.match, lines) if match]
        places = [(on_disk(match["file"], roots), match["line"], match["column"]) for match in found]
        self.positions = [position for position in places if position[1] is not None]
        self.first = (self.positions[:1] or places[:1] or [None])[0]
        self.file_without_position = places[0][0] if places and places[0][1] is None else None

    def is_at(self, other):
        """Returns whether the first errors of both are at the same position, or all of them in any order.

        protoc has errors of a file without a position. Any position in that file is right then.
        """
        if self.first is None or other.first is None:
            return False
        if self.first == other.first or (self.positions and set(self.positions) == set(other.positions)):
            return True
        return self.first[0] == other.file_without_position

    def brief(self):
        return "accepted" if self.digest else "\n".join(self.lines[:3]) or "failed without an error"


def on_disk(name, roots):
    """Returns the path of a file that one program names by its path and the other by its import name."""
    paths = [Path(root, name) for root in roots]
    return next((str(path) for path in paths if path.exists()), name)


class Oracle:
    def __init__(self, protoc, include, ours, folder, cache=None):
        self.protoc, self.include, self.ours = protoc, include, ours
        self.folder, self.cache = Path(folder), cache and Path(cache)
        self.known = {}

    def run(self, program, tree, files, name, with_imports):
        """Returns the set, or None, and the lines of errors."""
        out = self.folder / f"{name}.{Path(program).name}"
        out.unlink(missing_ok=True)
        command = [program, *[argument for root in self.roots(tree) for argument in ("-I", root)]]
        command += ["--include_imports"] if with_imports else []
        command += ["--include_source_info", "-o", str(out), *files]
        try:
            done = subprocess.run(command, capture_output=True, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return None, [f"no end within {SECONDS} s"]
        encoded = out.read_bytes() if done.returncode == 0 and out.exists() else None
        out.unlink(missing_ok=True)
        output_lines = (done.stdout + done.stderr).decode("utf-8", "replace").splitlines()
        return encoded, [line for line in output_lines if line.strip() and ": warning: " not in line]

    def roots(self, tree):
        # Both prefer the current files of Protobuf itself to copies in a tree.
        return [self.include] + tree["roots"]

    def run_compiler(self, program, tree, files, name, with_imports):
        encoded, lines = self.run(program, tree, files, name, with_imports)
        return encoded and hashlib.sha256(encoded).hexdigest(), lines

    def cached_protoc_output(self, tree, files, name, with_imports):
        key = hashlib.sha256(json.dumps([self.roots(tree), files, with_imports]).encode()).hexdigest()
        if key not in self.known:
            self.known[key] = self.run_compiler(self.protoc, tree, files, name, with_imports)
        return self.known[key]

    def compare(self, tree, files, name, with_imports=False):
        roots = self.roots(tree)
        theirs = CompilerOutput(*self.cached_protoc_output(tree, files, name, with_imports), roots)
        ours = CompilerOutput(*self.run_compiler(self.ours, tree, files, name, with_imports), roots)
        if theirs.digest is None or ours.digest is None:
            if (theirs.digest is None) != (ours.digest is None):
                return "verdict", f"protoc: {theirs.brief()}\nours: {ours.brief()}"
            if ours.is_at(theirs):
                return "refused", ""
            return "refused elsewhere", f"protoc: {theirs.brief()}\nours: {ours.brief()}"
        if theirs.digest == ours.digest:
            return "equal with source info", ""
        # Extensions of options are in the imports.
        both = [self.run(program, tree, files, name, True)[0] for program in (self.protoc, self.ours)]
        return compare_sets(*both)

    def tree(self, tree, jobs):
        numbered = list(enumerate(tree["files"]))
        prefix = re.sub(r"\W", "_", tree["name"])
        cache_file = self.cache and self.cache / f"{prefix}.json"
        self.known = json.loads(cache_file.read_text()) if cache_file and cache_file.exists() else {}
        with ThreadPoolExecutor(jobs) as pool:
            alone = list(pool.map(lambda one: self.compare(tree, [one[1]], f"{prefix}{one[0]}"), numbered))
        verdicts, findings = {}, []
        for file, (verdict, finding) in zip(tree["files"], alone):
            verdicts[verdict] = verdicts.get(verdict, 0) + 1
            if finding:
                findings.append({"file": file, "verdict": verdict, "finding": finding})
        accepted = [file for file, (verdict, _) in zip(tree["files"], alone) if verdict.startswith("equal")]
        set_verdict, finding = "none", ""
        if accepted:
            set_verdict, finding = self.compare(tree, accepted, f"{prefix}-whole", with_imports=True)
        if finding:
            findings.append({"file": "all as one set", "verdict": set_verdict, "finding": finding})
        if cache_file:
            cache_file.parent.mkdir(parents=True, exist_ok=True)
            cache_file.write_text(json.dumps(self.known))
        return {
            "name": tree["name"],
            "files": len(tree["files"]),
            "verdicts": verdicts,
            "whole": set_verdict,
            "findings": findings,
        }


def compare_sets(theirs, ours):
    """Sets with different bytes may still be equal: extensions of options have several encodings."""
    set_type = set_type_with_extensions(theirs)
    theirs, ours = set_type.FromString(theirs), set_type.FromString(ours)
    names = [[file.name for file in one.file] for one in (theirs, ours)]
    if names[0] != names[1]:
        return "different", f"files, protoc: {names[0]}\nours: {names[1]}"
    found = []
    for one, other in zip(theirs.file, ours.file):
        if one == other:
            continue
        difference(one.name, one, other, found)
    found.sort(key=lambda path: "source_code_info" in path)
    if not found:
        return "equal with source info", ""
    finding = "\n".join(found[:6]) + (f"\nand {len(found) - 6} more" if len(found) > 6 else "")
    return "equal" if "source_code_info" in found[0] else "different", finding


def set_type_with_extensions(encoded):
    """`FileDescriptorSet` of a pool that has the set's own files, so that it knows their extensions of options."""
    plain = descriptor_pb2.FileDescriptorSet.FromString(encoded)
    pool = descriptor_pool.DescriptorPool()
    names = {file.name for file in plain.file}
    descriptor = "google/protobuf/descriptor.proto"
    if descriptor not in names:
        pool.AddSerializedFile(descriptor_pb2.DESCRIPTOR.serialized_pb)
    try:
        for file in plain.file:
            file.ClearField("source_code_info")
            pool.AddSerializedFile(file.SerializeToString())
        found = pool.FindMessageTypeByName("google.protobuf.FileDescriptorSet")
        return message_factory.GetMessageClass(found)
    except Exception:  # Old copies of descriptor.proto, or names that Python's pool rejects: no extensions.
        return descriptor_pb2.FileDescriptorSet


def difference(path, one, other, found):
    """Appends the paths of fields that differ, with both values."""
    fields = {field.name: field for field, _ in one.ListFields()} | {field.name: field for field, _ in other.ListFields()}
    for name, field in fields.items():
        here = f"{path} {name}" if not field.is_extension else f"{path} [{field.full_name}]"
        both = [value(message, field) for message in (one, other)]
        if both[0] == both[1]:
            continue
        is_map = field.message_type is not None and field.message_type.GetOptions().map_entry
        if field.is_repeated and field.message_type is not None and not is_map:
            if name == "location":
                locations(here, both, found)
                continue
            for index in range(max(map(len, both))):
                pair = [values[index] if index < len(values) else None for values in both]
                if None in pair:
                    found.append(f"{here}[{index}]: protoc {brief(pair[0])}, ours {brief(pair[1])}")
                elif pair[0] != pair[1]:
                    label = getattr(pair[0], "name", "") or str(index)
                    difference(f"{here}[{label}]", pair[0], pair[1], found)
        elif not field.is_repeated and field.message_type is not None and None not in both:
            difference(here, both[0], both[1], found)
        else:
            found.append(f"{here}: protoc {brief(both[0])}, ours {brief(both[1])}")
    if not fields or one.SerializeToString(deterministic=True) == other.SerializeToString(deterministic=True):
        return
    if not found:
        found.append(f"{path}: protoc {brief(one)}, ours {brief(other)}")


def locations(path, both, found):
    key = lambda location: (tuple(location.path), tuple(location.span))
    known = [{key(location): location for location in values} for values in both]
    before = len(found)
    for where, location in known[0].items():
        other = known[1].get(where)
        if other is None:
            found.append(f"{path} path {list(where[0])} span {list(where[1])}: protoc only")
        elif location != other:
            found.append(f"{path} path {list(where[0])}: protoc {brief(location)}, ours {brief(other)}")
    for where in known[1]:
        if where not in known[0]:
            found.append(f"{path} path {list(where[0])} span {list(where[1])}: ours only")
    if len(found) == before:
        found.append(f"{path}: another order")


def value(message, field):
    if field.is_extension:
        value = message.Extensions
        if field.is_repeated:
            return list(value[field])
        return value[field] if message.HasExtension(field) else None
    if field.is_repeated:
        value = getattr(message, field.name)
        return dict(value) if hasattr(value, "items") else list(value)
    return getattr(message, field.name) if message.HasField(field.name) else None


def brief(it):
    text = "nothing" if it is None else re.sub(r"\s+", " ", str(it)) or "empty"
    return text if len(text) <= 300 else text[:300] + "…"


def main():
    protoc, include, ours, jobs, *cache = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        oracle = Oracle(protoc, include, ours, folder, *cache)
        results = []
        for tree in json.load(sys.stdin):
            results.append(oracle.tree(tree, int(jobs)))
            print(json.dumps(results[-1]["verdicts"]), tree["name"], results[-1]["whole"], file=sys.stderr, flush=True)
    json.dump(results, sys.stdout, indent=1, ensure_ascii=False)


if __name__ == "__main__":
    main()
