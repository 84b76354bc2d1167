"""Runs gRPC's interoperability tests: `interop_client.py blocking|aio ADDRESS`. It prints a line per case."""

import sys
import traceback

import chosen  # noqa: F401: before `grpc`
import protos

protos.use()

import interop_cases  # noqa: E402

if __name__ == "__main__":
    interface, address = sys.argv[1:]
    client = interop_cases.CLIENTS[interface](address)
    for case in interop_cases.CASES:
        try:
            client.run(case)
        except BaseException:
            print(f"FAIL {case}", flush=True)
            traceback.print_exc()
        else:
            print(f"ok {case}", flush=True)
