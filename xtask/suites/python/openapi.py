"""Validates OpenAPI documents: each given file.

A validator that accepts everything would prove nothing: the first document is also broken in several ways, each of
which must be found.
"""

import copy
import json
import sys

from openapi_spec_validator import OpenAPIV31SpecValidator


def problems(document):
    return list(OpenAPIV31SpecValidator(document).iter_errors())


def operations(document):
    return [operation for item in document["paths"].values() for operation in item.values()]


def break_reference(document):
    del document["components"]["schemas"]["google.rpc.Status"]


def break_parameter(document):
    next(operation for operation in operations(document) if operation.get("parameters")).pop("parameters")


def break_responses(document):
    operations(document)[0]["responses"] = {"good": {}}


def break_operation_id(document):
    first, second = operations(document)[:2]
    second["operationId"] = first["operationId"]


def break_schema(document):
    next(iter(document["components"]["schemas"].values()))["type"] = "text"


def break_title(document):
    del document["info"]["title"]


BREAKS = [break_reference, break_parameter, break_responses, break_operation_id, break_schema, break_title]


def is_found(document, damage):
    broken = copy.deepcopy(document)
    damage(broken)
    try:
        return bool(problems(broken))
    except Exception:  # A broken reference raises an exception in the resolving library.
        return True


def main():
    failed = False
    documents = []
    for name in sys.argv[1:]:
        with open(name, encoding="utf-8") as file:
            document = json.load(file)
        documents.append(document)
        found = problems(document)
        failed |= bool(found)
        for problem in found:
            print(f"{name}: {list(problem.absolute_path)}: {problem.message}")
        print(f"{'not valid' if found else 'valid'} {name}: {len(operations(document))} operations")
    for damage in BREAKS:
        found = is_found(documents[0], damage)
        failed |= not found
        print(f"{'found' if found else 'NOT FOUND'}: {damage.__name__}")
    sys.exit(failed)


main()
