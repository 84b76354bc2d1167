"""Checks with CycloneDX's Python library that a bill of materials is valid and complete."""

import json
import sys
from pathlib import Path

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

text = Path(sys.argv[1]).read_text()
error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
if error is not None:
    sys.exit(f"not valid: {error}")
document = json.loads(text)
parts = document["components"]
references = {part["bom-ref"] for part in parts} | {document["metadata"]["component"]["bom-ref"]}
for part in parts:
    if not part["licenses"][0]["expression"]:
        sys.exit(f"{part['bom-ref']} has no licence")
    if "hashes" not in part and not part["name"].startswith("thalweg"):
        sys.exit(f"{part['bom-ref']} has no sum")
used = {reference for node in document["dependencies"] for reference in node["dependsOn"]}
if not used <= references:
    sys.exit(f"used, and not in it: {sorted(used - references)}")
alone = references - used - {document["metadata"]["component"]["bom-ref"]}
if alone:
    sys.exit(f"in it, and used by nothing: {sorted(alone)}")
print(f"{len(parts)} parts")
# Errors are detected.
document["components"][0].pop("name")
if JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(document)) is None:
    sys.exit("a part without a name was taken for valid")
