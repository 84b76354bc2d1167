"""gRPC's own health and reflection clients for Python.

usage: grpcio_services.py HOST:PORT PID

The last case ends the server, whose process is PID.
"""

import difflib
import os
import signal
import sys

import grpc
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_channelz.v1 import channelz_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

TIMEOUT_S = 30
SERVICES = [
    "grpc.testing.BenchmarkService",
    "grpc.testing.TestService",
    "thalweg.lab.v1.Echo",
    "thalweg.lab.v1.EchoShapes",
]


def check(what: str, found, expected) -> None:
    if found != expected:
        raise AssertionError(f"{what}: {found}, expected {expected}")


def code_of(call) -> grpc.StatusCode:
    try:
        result = call()
    except grpc.RpcError as error:
        return error.code()
    raise AssertionError(f"an error was expected, and there is {result}")


def health_request(service: str) -> health_pb2.HealthCheckRequest:
    return health_pb2.HealthCheckRequest(service=service)


def health_check(channel: grpc.Channel) -> None:
    health = health_pb2_grpc.HealthStub(channel)
    for service in ["", *SERVICES]:
        status = health.Check(health_request(service), timeout=TIMEOUT_S).status
        check(f"status of {service!r}", status, health_pb2.HealthCheckResponse.SERVING)
    code = code_of(lambda: health.Check(health_request("a.B"), timeout=TIMEOUT_S))
    check("status of a service that is unknown", code, grpc.StatusCode.NOT_FOUND)


def health_list(channel: grpc.Channel) -> None:
    listed = health_pb2_grpc.HealthStub(channel).List(health_pb2.HealthListRequest(), timeout=TIMEOUT_S)
    check("services that are listed", sorted(listed.statuses), ["", *SERVICES])


def reflection_services(channel: grpc.Channel) -> None:
    listed = list(ProtoReflectionDescriptorDatabase(channel).get_services())
    own_services = ["grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"]
    check("services that are listed", listed, own_services + SERVICES)


def reflection_unknown(channel: grpc.Channel) -> None:
    pool = DescriptorPool(ProtoReflectionDescriptorDatabase(channel))
    try:
        found = pool.FindServiceByName("a.B")
    except KeyError:
        return
    raise AssertionError(f"there is no service a.B, and one was found: {found}")


def reflection_call(channel: grpc.Channel) -> None:
    """Calls a method of which only the name is known."""
    pool = DescriptorPool(ProtoReflectionDescriptorDatabase(channel))
    method = pool.FindMethodByName("grpc.testing.TestService.UnaryCall")
    request, response = GetMessageClass(method.input_type), GetMessageClass(method.output_type)
    path = f"/{method.containing_service.full_name}/{method.name}"
    call = channel.unary_unary(path, request.SerializeToString, response.FromString)
    check("bytes of the response", len(call(request(response_size=3), timeout=TIMEOUT_S).payload.body), 3)


def interfaces(channel: grpc.Channel) -> None:
    """Our .proto files declare the same as gRPC's, except for file names, options and comments."""
    pool = DescriptorPool(ProtoReflectionDescriptorDatabase(channel))
    for published, name in [
        (channelz_pb2, "grpc.channelz.v1.Channelz"),
        (health_pb2, "grpc.health.v1.Health"),
        (reflection_pb2, "grpc.reflection.v1.ServerReflection"),
        (reflection_pb2, "grpc.reflection.v1alpha.ServerReflection"),
    ]:
        ours, theirs = FileDescriptorProto(), FileDescriptorProto()
        pool.FindServiceByName(name).file.CopyToProto(ours)
        published.DESCRIPTOR.CopyToProto(theirs)
        differences = list(difflib.ndiff(declared(ours), declared(theirs)))
        check(f"differences in {name}", [line for line in differences if line[0] in "+-"], [])


def declared(file: FileDescriptorProto) -> list[str]:
    """Messages and services, sorted by name. The two versions of reflection differ only in their names.

    Names in JSON follow from the fields' names, and are not in every descriptor.
    """
    parts = sorted([*file.message_type, *file.service], key=lambda part: part.name)
    for part in file.service:
        part.method.sort(key=lambda method: method.name)
    lines = "".join(map(str, parts)).replace(".v1alpha.", ".v1.").splitlines()
    return [line for line in lines if "json_name" not in line]


def health_watch(channel: grpc.Channel) -> None:
    """Watches the server stop."""
    responses = health_pb2_grpc.HealthStub(channel).Watch(health_request(""), timeout=TIMEOUT_S)
    check("status at once", next(responses).status, health_pb2.HealthCheckResponse.SERVING)
    os.kill(int(sys.argv[2]), signal.SIGTERM)
    check("status when it stops", next(responses).status, health_pb2.HealthCheckResponse.NOT_SERVING)
    check("the end of the watch", code_of(lambda: next(responses)), grpc.StatusCode.UNAVAILABLE)


def main() -> int:
    failed = 0
    cases = (
        health_check,
        health_list,
        reflection_services,
        reflection_unknown,
        reflection_call,
        interfaces,
        health_watch,
    )
    with grpc.insecure_channel(sys.argv[1]) as channel:
        for case in cases:
            try:
                case(channel)
                print(f"ok    {case.__name__}", flush=True)
            except (AssertionError, KeyError, StopIteration, grpc.RpcError) as error:
                failed += 1
                print(f"FAIL  {case.__name__}: {error!r}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
