"""Published libraries on grpcio run unchanged: Google Cloud Pub/Sub, the OTLP exporter, Qdrant's client.

Their servers are stubs on the tested implementation.
"""

import asyncio
import threading

import grpc
import pytest
import servers

pytestmark = pytest.mark.long


def test_google_cloud_pubsub():
    """Publishes in batches, and receives by a stream in both directions."""
    pubsub = pytest.importorskip("google.cloud.pubsub_v1")
    from google.pubsub_v1.services.publisher.transports import PublisherGrpcTransport
    from google.pubsub_v1.services.subscriber.transports import SubscriberGrpcTransport
    from google.pubsub_v1 import types

    published, acknowledged = [], []
    has_all = threading.Event()

    class Stub(grpc.GenericRpcHandler):
        def service(self, details):
            name = details.method.rsplit("/", 1)[1]
            handlers = {
                "Publish": (grpc.unary_unary_rpc_method_handler, self.publish, types.PublishRequest),
                "StreamingPull": (grpc.stream_stream_rpc_method_handler, self.pull, types.StreamingPullRequest),
                "Acknowledge": (grpc.unary_unary_rpc_method_handler, self.acknowledge, types.AcknowledgeRequest),
                "ModifyAckDeadline": (grpc.unary_unary_rpc_method_handler, self.modify, types.ModifyAckDeadlineRequest),
            }
            if name not in handlers:
                return None
            make, function, request = handlers[name]
            serializer = lambda message: type(message).serialize(message) if hasattr(message, "_pb") else message
            return make(function, request_deserializer=request.deserialize, response_serializer=serializer)

        def publish(self, request, context):
            first = len(published)
            published.extend(request.messages)
            return types.PublishResponse(message_ids=[str(first + index) for index in range(len(request.messages))])

        def pull(self, requests, context):
            ended = threading.Event()
            context.add_callback(ended.set)
            next(requests)
            for number in range(5):
                message = types.PubsubMessage(data=str(number).encode(), message_id=str(number))
                received = types.ReceivedMessage(ack_id=f"ack-{number}", message=message)
                yield types.StreamingPullResponse(received_messages=[received])
            ended.wait(20)

        def acknowledge(self, request, context):
            acknowledged.extend(request.ack_ids)
            return b""

        def modify(self, request, context):
            return b""

    with servers.blocking(lambda server: server.add_generic_rpc_handlers((Stub(),))) as address:
        transport = PublisherGrpcTransport(channel=grpc.insecure_channel(address))
        publisher = pubsub.PublisherClient(transport=transport)
        futures = [publisher.publish("projects/p/topics/t", str(number).encode()) for number in range(100)]
        assert sorted(int(future.result(timeout=20)) for future in futures) == list(range(100))
        assert sorted(int(message.data) for message in published) == list(range(100))
        publisher.stop()

        subscriber = pubsub.SubscriberClient(transport=SubscriberGrpcTransport(channel=grpc.insecure_channel(address)))
        received = []

        def callback(message):
            received.append(message.data)
            message.ack()
            if len(received) == 5:
                has_all.set()

        pulling = subscriber.subscribe("projects/p/subscriptions/s", callback=callback)
        assert has_all.wait(20)
        pulling.cancel()
        pulling.result(timeout=20)
        assert sorted(received) == [b"0", b"1", b"2", b"3", b"4"]
        subscriber.close()


def test_otlp_exporter():
    """Exports spans to a collector, by gzip."""
    exporters = pytest.importorskip("opentelemetry.exporter.otlp.proto.grpc.trace_exporter")
    from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    names, metadata = [], []

    class Collector(trace_service_pb2_grpc.TraceServiceServicer):
        def Export(self, request, context):
            metadata.extend(context.invocation_metadata())
            for resource in request.resource_spans:
                for scope in resource.scope_spans:
                    names.extend(span.name for span in scope.spans)
            return trace_service_pb2.ExportTraceServiceResponse()

    def add(server):
        trace_service_pb2_grpc.add_TraceServiceServicer_to_server(Collector(), server)

    with servers.blocking(add) as address:
        exporter = exporters.OTLPSpanExporter(
            endpoint=address, insecure=True, headers=(("tenant", "a"),), compression=grpc.Compression.Gzip
        )
        provider = TracerProvider()
        provider.add_span_processor(BatchSpanProcessor(exporter))
        tracer = provider.get_tracer("test")
        for number in range(1000):
            with tracer.start_as_current_span(f"span {number}"):
                pass
        provider.shutdown()
    assert sorted(names) == sorted(f"span {number}" for number in range(1000))
    assert ("tenant", "a") in [tuple(pair) for pair in metadata]


def _qdrant_stub(points_pb2, points_grpc):
    class Points(points_grpc.PointsServicer):
        def Upsert(self, request, context):
            result = points_pb2.UpdateResult(operation_id=len(request.points), status=points_pb2.Completed)
            return points_pb2.PointsOperationResponse(result=result)

        def Query(self, request, context):
            context.abort(grpc.StatusCode.NOT_FOUND, f"no collection {request.collection_name}")

    return Points()


def test_qdrant_client():
    """Writes points and gets a failure, by the blocking and the asyncio client."""
    qdrant = pytest.importorskip("qdrant_client")
    import qdrant_client.grpc as protos

    def add(server):
        protos.add_PointsServicer_to_server(_qdrant_stub(protos, protos), server)

    with servers.blocking(add) as address:
        port = int(address.rsplit(":", 1)[1])
        arguments = {"host": "localhost", "grpc_port": port, "prefer_grpc": True, "check_compatibility": False}
        points = [qdrant.models.PointStruct(id=number, vector=[0.1] * 64) for number in range(200)]
        client = qdrant.QdrantClient(**arguments)
        assert client.upsert("a", points).operation_id == 200
        with pytest.raises(grpc.RpcError) as raised:
            client.query_points("missing", query=[0.1] * 64)
        assert raised.value.code() is grpc.StatusCode.NOT_FOUND
        client.close()

        async def by_asyncio():
            client = qdrant.AsyncQdrantClient(**arguments)
            results = await asyncio.gather(*(client.upsert("a", points[:size]) for size in range(1, 20)))
            assert [result.operation_id for result in results] == list(range(1, 20))
            with pytest.raises(grpc.RpcError):
                await client.query_points("missing", query=[0.1] * 64)
            await client.close()

        asyncio.run(by_asyncio())
