"""Servers that do things that a gRPC server should not do, or rarely does. Each serves BenchmarkService's UnaryCall.

usage: misbehaving_server.py CASE PORT

It serves until SIGTERM, then prints what the client did; the exit code says whether that was right.
"""

import signal
import socket
import sys
import threading

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings
from hyperframe.frame import GoAwayFrame

from messages import fields, payload

# A client that never returns must not block a thread.
SOCKET_TIMEOUT_S = 20
PADDING_BYTES = 255
PADDED_DATA_BYTES = 5


class Case:
    """One misbehaviour. A case overrides what it does differently, and reports whether the client reacted correctly."""

    def __init__(self):
        self.lock = threading.Lock()
        self.connections = 0
        self.calls = 0
        self.violations: list[str] = []

    # Events.

    def connected(self, connection: "Connection") -> None:
        connection.h2.initiate_connection()

    def called(self, connection: "Connection", stream: int, request: bytes) -> None:
        connection.respond(stream, request)

    def ping_acknowledged(self, _data: bytes) -> None:
        pass

    # Expected reactions of the client.

    def is_content(self) -> bool:
        return self.calls > 0


class GoAwayAfterEachCall(Case):
    """GOAWAY after a response: the next call must use a new connection, and none may fail."""

    def called(self, connection, stream, request):
        if connection.is_leaving:
            # Above the last stream of the GOAWAY: never processed, as the client knows (RFC 9113 §6.8).
            self.calls -= 1
            return
        connection.respond(stream, request)
        connection.send_goaway(stream)

    def is_content(self):
        return self.calls > 1 and self.connections == self.calls


class RstAfterHeader(Case):
    def called(self, connection, stream, _request):
        connection.send_response_headers(stream)
        connection.h2.reset_stream(stream, h2.errors.ErrorCodes.NO_ERROR)


class RstDuringData(Case):
    def called(self, connection, stream, request):
        message = connection.message(request)
        connection.send_response_headers(stream)
        connection.h2.send_data(stream, message[: len(message) // 2])
        connection.h2.reset_stream(stream, h2.errors.ErrorCodes.NO_ERROR)


class RstAfterData(Case):
    def called(self, connection, stream, request):
        connection.send_response_headers(stream)
        connection.h2.send_data(stream, connection.message(request))
        connection.h2.reset_stream(stream, h2.errors.ErrorCodes.NO_ERROR)


class Ping(Case):
    """PINGs around each response: each must be acknowledged with its own bytes."""

    def __init__(self):
        super().__init__()
        self.sent: set[bytes] = set()

    def ping(self, connection, label: str):
        data = f"{label}{self.calls:07}".encode()[:8]
        self.sent.add(data)
        connection.h2.ping(data)

    def called(self, connection, stream, request):
        self.ping(connection, "a")
        connection.respond(stream, request)
        self.ping(connection, "b")

    def ping_acknowledged(self, data):
        self.sent.discard(data)

    def is_content(self):
        # The last response may be in transit when the client closes.
        return self.calls > 0 and len(self.sent) <= 1


class MaxStreams(Case):
    """One stream at a time is allowed: the client's calls must queue for it. h2 itself refuses a second stream."""

    def connected(self, connection):
        streams = {h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: 1}
        connection.h2.local_settings = h2.settings.Settings(client=False, initial_values=streams)
        connection.h2.initiate_connection()

    def is_content(self):
        return self.calls > 1


class DataFramePadding(Case):
    """DATA of 5 bytes with 255 of padding: padding counts against the windows and must be released."""

    def called(self, connection, stream, request):
        connection.respond(stream, request, padded=True)


class NoTrailers(Case):
    """The stream ends without grpc-status."""

    def called(self, connection, stream, request):
        connection.send_response_headers(stream)
        connection.h2.send_data(stream, connection.message(request), end_stream=True)


class NotGrpc(Case):
    """A proxy's response: 503 and a page."""

    def called(self, connection, stream, _request):
        connection.h2.send_headers(stream, [(":status", "503"), ("content-type", "text/html")])
        connection.h2.send_data(stream, b"<h1>no upstream</h1>", end_stream=True)


class MessageTooLong(Case):
    """The message's prefix promises almost 4 GiB and the stream ends."""

    def called(self, connection, stream, _request):
        connection.send_response_headers(stream)
        connection.h2.send_data(stream, b"\x00\xff\xff\xff\xff" + bytes(100), end_stream=False)
        connection.send_trailers(stream)


class Http1(Case):
    """Responds with HTTP/1.1 instead of HTTP/2."""

    opening = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

    def is_content(self):
        return self.connections > 0


class Tls(Http1):
    """A TLS server's alert (RFC 8446 §6): fatal, protocol_version."""

    opening = b"\x15\x03\x03\x00\x02\x02\x46"


class Garbage(Http1):
    opening = bytes(range(256)) * 64


class Closes(Http1):
    """Accepts and closes."""

    opening = b""


class Silent(Case):
    """Accepts and never sends anything."""

    def is_content(self):
        return self.connections > 0


class SilentCalls(Case):
    """Speaks HTTP/2 but never responds to a call."""

    def called(self, connection, stream, request):
        pass


CASES = {
    "goaway": GoAwayAfterEachCall,
    "rst_after_header": RstAfterHeader,
    "rst_during_data": RstDuringData,
    "rst_after_data": RstAfterData,
    "ping": Ping,
    "max_streams": MaxStreams,
    "data_frame_padding": DataFramePadding,
    "no_trailers": NoTrailers,
    "not_grpc": NotGrpc,
    "message_too_long": MessageTooLong,
    "http1": Http1,
    "tls": Tls,
    "garbage": Garbage,
    "closes": Closes,
    "silent": Silent,
    "silent_calls": SilentCalls,
}


class Connection:
    """One connection: reads frames, collects requests, sends as the windows allow."""

    def __init__(self, case: Case, sock: socket.socket):
        self.case = case
        self.sock = sock
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
        self.requests: dict[int, bytearray] = {}
        self.is_leaving = False
        # Bytes blocked by the windows, and whether to send them in small padded frames.
        self.waiting: dict[int, tuple[bytes, bool]] = {}

    def serve(self) -> None:
        self.case.connected(self)
        self.flush()
        while received := self.sock.recv(65_536):
            for event in self.h2.receive_data(received):
                self.handle(event)
            for stream in list(self.waiting):
                self.send_waiting(stream)
            self.flush()

    def handle(self, event: h2.events.Event) -> None:
        match event:
            case h2.events.RequestReceived():
                self.requests[event.stream_id] = bytearray()
            case h2.events.DataReceived():
                self.requests[event.stream_id] += event.data
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            case h2.events.StreamEnded():
                with self.case.lock:
                    self.case.calls += 1
                    self.case.called(self, event.stream_id, bytes(self.requests.pop(event.stream_id)))
            case h2.events.StreamReset():
                self.waiting.pop(event.stream_id, None)
            case h2.events.PingAckReceived():
                with self.case.lock:
                    self.case.ping_acknowledged(event.ping_data)

    def respond(self, stream: int, request: bytes, padded: bool = False) -> None:
        self.send_response_headers(stream)
        self.waiting[stream] = (self.message(request), padded)
        self.send_waiting(stream)

    def send_response_headers(self, stream: int) -> None:
        self.h2.send_headers(stream, [(":status", "200"), ("content-type", "application/grpc")])

    def send_trailers(self, stream: int) -> None:
        self.h2.send_headers(stream, [("grpc-status", "0")], end_stream=True)

    def send_waiting(self, stream: int) -> None:
        rest, padded = self.waiting[stream]
        while rest:
            window = self.h2.local_flow_control_window(stream)
            if padded:
                # RFC 9113 §6.1: the pad length's own byte counts too.
                if window < PADDED_DATA_BYTES + PADDING_BYTES + 1:
                    break
                self.h2.send_data(stream, rest[:PADDED_DATA_BYTES], pad_length=PADDING_BYTES)
                rest = rest[PADDED_DATA_BYTES:]
            else:
                size = min(window, self.h2.max_outbound_frame_size, len(rest))
                if size == 0:
                    break
                self.h2.send_data(stream, rest[:size])
                rest = rest[size:]
        self.waiting[stream] = (rest, padded)
        if not rest:
            del self.waiting[stream]
            self.send_trailers(stream)

    def send_goaway(self, last_stream: int) -> None:
        # Bypasses h2, which would accept no more frames from the client.
        self.flush()
        self.sock.sendall(GoAwayFrame(0, last_stream_id=last_stream).serialize())
        self.is_leaving = True

    def message(self, request: bytes) -> bytes:
        """The requested response, with gRPC's prefix."""
        body = payload(fields(request[5:]).get(2, 0), 1)
        return b"\x00" + len(body).to_bytes(4, "big") + body

    def flush(self) -> None:
        self.sock.sendall(self.h2.data_to_send())


def serve_connection(case: Case, sock: socket.socket) -> None:
    sock.settimeout(SOCKET_TIMEOUT_S)
    with sock:
        try:
            # A connection that only checks whether the port is open is not a client.
            if not sock.recv(1, socket.MSG_PEEK):
                return
            with case.lock:
                case.connections += 1
            match case:
                case Http1(opening=opening):
                    sock.recv(65_536)
                    sock.sendall(opening)
                case Silent():
                    while sock.recv(65_536):
                        pass
                case _:
                    Connection(case, sock).serve()
        except OSError:
            # The client closed; these cases do not check how.
            pass
        except h2.exceptions.ProtocolError as error:
            with case.lock:
                case.violations.append(f"{type(error).__name__}: {error}")


def main() -> int:
    case = CASES[sys.argv[1]]()
    listener = socket.create_server(("127.0.0.1", int(sys.argv[2])), backlog=128)

    def accept() -> None:
        while True:
            sock, _ = listener.accept()
            threading.Thread(target=serve_connection, args=(case, sock), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    signal.sigwait([signal.SIGTERM, signal.SIGINT])
    with case.lock:
        is_right = case.is_content() and not case.violations
        violations = "; ".join(case.violations) or "no violation"
        print(f"{case.connections} connections, {case.calls} calls, {violations}")
    return 0 if is_right else 1


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGINT])
    sys.exit(main())
