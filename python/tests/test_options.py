"""Options of channels and servers by grpcio's names, and compression."""

import json
import socket
import struct
import threading
import time

import echo
import grpc
import pytest

MIB = 1 << 20


def channel_to(address, *options, **keywords):
    return grpc.insecure_channel(address, options=options, **keywords)


# Messages.


@pytest.mark.parametrize(
    "options, size, is_received",
    [
        ((), 4 * MIB, True),
        ((), 4 * MIB + 1, False),
        ((("grpc.max_receive_message_length", 1000),), 1000, True),
        ((("grpc.max_receive_message_length", 1000),), 1001, False),
        ((("grpc.max_receive_message_length", -1),), 5 * MIB, True),
        (((b"grpc.max_receive_message_length", 1000),), 1001, False),
    ],
)
def test_channel_limits_received_messages(options, size, is_received):
    unlimited = [("grpc.max_receive_message_length", -1)]
    with echo.serving(options=unlimited) as (address, _), channel_to(address, *options) as channel:
        if is_received:
            assert echo.call(channel, bytes(size)) == bytes(size)
        else:
            code, _ = echo.failure(channel, bytes(size))
            assert code is grpc.StatusCode.RESOURCE_EXHAUSTED


@pytest.mark.parametrize("size, is_sent", [(1000, True), (1001, False)])
def test_channel_limits_sent_messages(size, is_sent):
    with echo.serving() as (address, seen), channel_to(address, ("grpc.max_send_message_length", 1000)) as channel:
        if is_sent:
            assert echo.call(channel, bytes(size)) == bytes(size)
        else:
            code, _ = echo.failure(channel, bytes(size))
            assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert seen.calls == int(is_sent)


@pytest.mark.parametrize(
    "options, size, is_received",
    [
        ([], 4 * MIB + 1, False),
        ([("grpc.max_receive_message_length", 1000)], 1000, True),
        ([("grpc.max_receive_message_length", 1000)], 1001, False),
        ([("grpc.max_send_message_length", 1000)], 1001, False),
    ],
)
def test_server_limits_messages(options, size, is_received):
    with echo.serving(options=options) as (address, _), channel_to(address) as channel:
        if is_received:
            assert echo.call(channel, bytes(size)) == bytes(size)
        else:
            code, _ = echo.failure(channel, bytes(size))
            assert code is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_metadata_is_limited_to_16_kib_unless_the_option_is_set():
    metadata = (("key", "x" * 20_000),)
    with echo.serving() as (address, _), channel_to(address) as channel:
        code, _ = echo.failure(channel, metadata=metadata)
        assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
    options = [("grpc.absolute_max_metadata_size", 64 * 1024), ("grpc.max_metadata_size", 64 * 1024)]
    with echo.serving(options=options) as (address, seen), channel_to(address) as channel:
        echo.call(channel, metadata=metadata)
        assert seen.value("key") == "x" * 20_000


# Compression. Zeros are compressed to a thousandth.


def transferred(channel_compression=None, server_compression=None, channel_options=(), server_options=(), **keywords):
    """Returns the bytes sent to and by a server for a message of 100,000 zeros and the same response."""
    with (
        echo.serving(options=server_options, compression=server_compression) as (address, _),
        echo.Relay(address) as relay,
        channel_to(relay.address, *channel_options, compression=channel_compression) as channel,
    ):
        assert echo.call(channel, bytes(100_000), **keywords) == bytes(100_000)
        return relay.to_server, relay.to_client


def is_small(size):
    return size < 20_000


@pytest.mark.parametrize("compression", [grpc.Compression.Gzip, grpc.Compression.Deflate])
def test_compression_of_channel_server_and_call(compression):
    def check(expected, **keywords):
        assert tuple(map(is_small, transferred(**keywords))) == expected

    check((False, False))
    check((True, False), channel_compression=compression)
    check((True, False), compression=compression)
    check((False, True), server_compression=compression)
    check((False, False), channel_compression=grpc.Compression.NoCompression)
    option = ("grpc.default_compression_algorithm", int(compression))
    check((True, True), channel_options=[option], server_options=[option])


@pytest.mark.thalweg_only
def test_call_turns_off_the_compression_of_its_channel():
    """grpcio takes it for no setting."""
    gzip, none = grpc.Compression.Gzip, grpc.Compression.NoCompression
    assert not is_small(transferred(channel_compression=gzip, compression=none)[0])


def test_compression_level_is_an_option_of_servers():
    _, to_client = transferred(server_options=[("grpc.default_compression_level", 2)])
    assert is_small(to_client)


def test_server_rejects_a_compression_that_it_does_not_accept():
    with echo.serving(options=[("grpc.compression_enabled_algorithms_bitset", 1)]) as (address, seen):
        with channel_to(address, compression=grpc.Compression.Gzip) as channel:
            code, _ = echo.failure(channel, bytes(100_000))
            assert code is grpc.StatusCode.UNIMPLEMENTED
            assert seen.calls == 0


# Names.


def test_user_agent_has_the_application_first():
    with echo.serving() as (address, seen):
        with channel_to(address, ("grpc.primary_user_agent", "first/1"), ("grpc.secondary_user_agent", "last/2")) as it:
            echo.call(it)
            assert seen.value("user-agent").startswith("first/1 grpc-python")
            assert " last/2" in seen.value("user-agent")
        with channel_to(address) as channel:
            echo.call(channel)
            assert seen.value("user-agent").startswith("grpc-python")


# Connections.


def peers(channel, seen, pause):
    """Returns the client's addresses of two calls with a pause in between."""
    found = []
    for _ in range(2):
        echo.call(channel)
        found.append(seen.peer)
        time.sleep(pause)
    return found


def test_server_closes_old_connections():
    options = [("grpc.max_connection_age_ms", 1000), ("grpc.max_connection_age_grace_ms", 1000)]
    with echo.serving(options=options) as (address, seen), channel_to(address) as channel:
        first, second = peers(channel, seen, 3)
        assert first != second


def test_server_closes_idle_connections():
    with echo.serving(options=[("grpc.max_connection_idle_ms", 1000)]) as (address, seen), channel_to(address) as channel:
        first, second = peers(channel, seen, 3)
        assert first != second


def test_connections_stay_by_default():
    with echo.serving() as (address, seen), channel_to(address) as channel:
        first, second = peers(channel, seen, 0.5)
        assert first == second


def test_servers_share_a_port_unless_one_does_not_allow_it():
    with echo.serving() as (address, _):
        with echo.serving(address=address) as (same, _):
            assert same == address
        with pytest.raises(RuntimeError):
            with echo.serving(address=address, options=[("grpc.so_reuseport", 0)]):
                pass


def test_round_robin_uses_all_addresses():
    with echo.serving() as (first, seen), echo.serving() as (second, also_seen):
        with channel_to(f"ipv4:{first},{second}", ("grpc.lb_policy_name", "round_robin")) as channel:
            deadline = time.monotonic() + 10
            while not (seen.calls and also_seen.calls):
                assert time.monotonic() < deadline, (seen.calls, also_seen.calls)
                echo.call(channel)


# Name servers.


class NameServer:
    """A name server that knows one name.

    Args:
        name: The name, with the address 127.0.0.1.
        service_config: The service config of the name in JSON.
    """

    _A, _TXT = 1, 16

    def __init__(self, name, service_config):
        self._records = {
            (name, self._A): bytes((127, 0, 0, 1)),
            ("_grpc_config." + name, self._TXT): self._text("grpc_config=" + service_config),
        }
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"
        self._is_stopped = False
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._is_stopped = True
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as waker:
            waker.sendto(b"", self._socket.getsockname())
        self._thread.join()
        self._socket.close()

    @staticmethod
    def _text(text):
        """Returns the data of a TXT record, in strings of at most 255 bytes."""
        parts = [text[start : start + 255].encode() for start in range(0, len(text), 255)]
        return b"".join(bytes((len(part),)) + part for part in parts)

    def _serve(self):
        while True:
            query, client = self._socket.recvfrom(4096)
            if self._is_stopped:
                return
            labels, at = [], 12
            while length := query[at]:
                labels.append(query[at + 1 : at + 1 + length].decode())
                at += 1 + length
            question = query[12 : at + 5]
            kind = int.from_bytes(query[at + 1 : at + 3], "big")
            data = self._records.get((".".join(labels).lower(), kind))
            known = any(name == ".".join(labels).lower() for name, _ in self._records)
            flags = 0x8580 if known else 0x8583
            header = query[:2] + struct.pack("!HHHHH", flags, 1, 0 if data is None else 1, 0, 0)
            record = b"" if data is None else struct.pack("!HHHIH", 0xC00C, kind, 1, 60, len(data)) + data
            self._socket.sendto(header + question + record, client)


@pytest.mark.parametrize("reads_config", [False, True])
def test_target_names_a_name_server_and_its_service_config_is_read_if_asked_for(reads_config):
    choices = json.dumps([{"serviceConfig": json.loads(RETRIES)}])
    options = [("grpc.service_config_disable_resolution", 0)] if reads_config else []
    with NameServer("shop.test", choices) as server, echo.serving(behavior=FailsFirst(1)) as (address, seen):
        target = f"dns://{server.address}/shop.test:{address.rpartition(':')[2]}"
        with channel_to(target, *options) as channel:
            if reads_config:
                assert echo.call(channel) == b"request"
                assert seen.calls == 2
            else:
                assert echo.failure(channel) == (grpc.StatusCode.UNAVAILABLE, "try again")
                assert seen.calls == 1


# Service config and retries.

RETRIES = json.dumps(
    {
        "methodConfig": [
            {
                "name": [{"service": "test.Echo"}],
                "retryPolicy": {
                    "maxAttempts": 3,
                    "initialBackoff": "0.01s",
                    "maxBackoff": "0.1s",
                    "backoffMultiplier": 1,
                    "retryableStatusCodes": ["UNAVAILABLE"],
                },
            }
        ]
    }
)


class FailsFirst:
    """A behavior that fails the first calls with UNAVAILABLE."""

    def __init__(self, failures):
        self._left = failures
        self._lock = threading.Lock()

    def __call__(self, request, context):
        with self._lock:
            self._left -= 1
            is_failure = self._left >= 0
        if is_failure:
            context.abort(grpc.StatusCode.UNAVAILABLE, "try again")
        return request


def test_service_config_retries_calls():
    with echo.serving(behavior=FailsFirst(2)) as (address, seen):
        with channel_to(address, ("grpc.service_config", RETRIES)) as channel:
            assert echo.call(channel) == b"request"
            assert seen.calls == 3


def test_retries_can_be_turned_off():
    with echo.serving(behavior=FailsFirst(1)) as (address, seen):
        with channel_to(address, ("grpc.service_config", RETRIES), ("grpc.enable_retries", 0)) as channel:
            assert echo.failure(channel) == (grpc.StatusCode.UNAVAILABLE, "try again")
            assert seen.calls == 1


def test_service_config_sets_timeouts():
    config = {"methodConfig": [{"name": [{"service": "test.Echo"}], "timeout": "0.2s"}]}
    with echo.serving(behavior=lambda request, context: time.sleep(1) or request) as (address, _):
        with channel_to(address, ("grpc.service_config", json.dumps(config))) as channel:
            code, _ = echo.failure(channel)
            assert code is grpc.StatusCode.DEADLINE_EXCEEDED


# Values that are not valid. grpcio logs most of them, and ignores them.


@pytest.mark.parametrize("options", [[("name",)], [("a", "b", "c")], ["grpc.enable_retries"]])
def test_options_must_be_pairs(options):
    with pytest.raises(ValueError):
        echo.call(grpc.insecure_channel("127.0.0.1:1", options=options))


def test_options_must_have_a_value():
    with pytest.raises(TypeError):
        grpc.insecure_channel("127.0.0.1:1", options=[("grpc.enable_retries", None)])


@pytest.mark.thalweg_only
@pytest.mark.parametrize(
    "name, value, error",
    [
        ("grpc.max_receive_message_length", "1", TypeError),
        ("grpc.max_receive_message_length", 1.5, TypeError),
        ("grpc.max_receive_message_length", 1 << 31, ValueError),
        ("grpc.enable_retries", 2, ValueError),
        ("grpc.keepalive_time_ms", -1, ValueError),
        ("grpc.http2.max_frame_size", 1000, ValueError),
        ("grpc.primary_user_agent", 5, TypeError),
        ("grpc.default_compression_algorithm", 3, ValueError),
        ("grpc.lb_policy_name", "unknown", ValueError),
        ("grpc.service_config", "{", ValueError),
        ("grpc.http_proxy", "ftp://proxy", ValueError),
    ],
)
def test_a_wrong_value_is_an_error_that_names_its_option(name, value, error):
    with pytest.raises(error, match=f"option {name}"):
        grpc.insecure_channel("127.0.0.1:1", options=[(name, value)])


@pytest.mark.thalweg_only
def test_an_environment_variable_without_effect_is_logged_once(caplog, monkeypatch):
    from thalweg.grpc import _options

    monkeypatch.setattr(_options, "_is_environment_logged", False)
    monkeypatch.setenv("GRPC_SSL_CIPHER_SUITES", "HIGH")
    for _ in range(2):
        _options.channel_settings(None)
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert "GRPC_SSL_CIPHER_SUITES has no effect" in record.getMessage()


@pytest.mark.thalweg_only
def test_each_option_tells_how_it_differs():
    from thalweg.grpc._options import OPTIONS, Support

    for name, option in OPTIONS.items():
        assert option.support is Support.SAME or option.note, name
        assert option.channel or option.server, name


@pytest.mark.thalweg_only
@pytest.mark.parametrize(
    "name, value, side, text",
    [
        ("grpc.misspelled", 1, "channel", "unknown"),
        ("grpc.max_connection_age_ms", 1000, "channel", "no effect on a channel"),
        ("grpc.enable_retries", 1, "server", "no effect on a server"),
        ("grpc.socket_mutator", 1, "channel", "not given to the application"),
        ("grpc.keepalive_time_ms", 500, "channel", "10000 ms apply"),
        ("grpc.enable_channelz", 0, "server", "always listed"),
        ("grpc.http2.max_pings_without_data", 5, "channel", "grpc.keepalive_time_ms"),
    ],
)
def test_an_option_that_is_not_applied_is_logged_once(name, value, side, text, caplog, monkeypatch):
    from thalweg.grpc import _options

    monkeypatch.setattr(_options, "_logged", set())
    read = _options.channel_settings if side == "channel" else _options.server_settings
    for _ in range(2):
        read([(name, value)])
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert name in record.getMessage() and text in record.getMessage()


@pytest.mark.thalweg_only
@pytest.mark.parametrize(
    "name, value, expected",
    [
        ("grpc.keepalive_time_ms", 20_000, {"keepalive_ms": 20_000}),
        ("grpc.keepalive_permit_without_calls", 1, {"keepalive_without_calls": True}),
        ("grpc.service_config_disable_resolution", 0, {"service_config_from_dns": True}),
        ("grpc.inhibit_health_checking", 1, {"health_checks": False}),
        ("grpc.max_metadata_size", 40_000, {"max_header_list_size": 50_000}),
        ("grpc.max_metadata_size", 1_000, {"max_header_list_size": 16_384}),
        ("grpc.testing.fixed_reconnect_backoff_ms", 7,
         {"backoff_base_ms": 7, "backoff_max_ms": 7, "backoff_multiplier": 1.0}),
        ("grpc.http2.max_pings_without_data", 0, {}),
        ("grpc.use_local_subchannel_pool", 1, {}),
    ],
)  # fmt: skip
def test_settings_of_options(name, value, expected, caplog):
    from thalweg.grpc import _options

    settings = _options.channel_settings([(name, value)])
    del settings["user_agent"]
    assert settings == expected
    assert not caplog.records


@pytest.mark.thalweg_only
def test_the_native_module_knows_the_settings_of_all_options():
    """Applies each option with a valid value to a channel and a server."""
    from thalweg import _native
    from thalweg.grpc import _options

    texts = {
        "grpc.lb_policy_name": "round_robin",
        "grpc.service_config": "{}",
        "grpc.http_proxy": "http://proxy:1",
    }
    numbers = {"grpc.http2.max_frame_size": 20_000, "grpc.http2.lookahead_bytes": 100_000}
    settings = {"channel": {}, "server": {}}
    for name, option in _options.OPTIONS.items():
        for side, apply in (("channel", option.channel), ("server", option.server)):
            if apply:
                try:
                    apply(settings[side], name, numbers.get(name, 1))
                except TypeError:
                    apply(settings[side], name, texts.get(name, "text"))
    channel = settings["channel"]
    assert channel.pop("primary_user_agent") and channel.pop("secondary_user_agent")
    _native.Channel("localhost:1", channel)
    with pytest.raises(ValueError, match="unknown setting `misspelled`"):
        _native.Channel("localhost:1", {"misspelled": 1})


INT_MAX = (1 << 31) - 1


def test_times_may_be_unlimited():
    times = [
        "grpc.keepalive_time_ms",
        "grpc.keepalive_timeout_ms",
        "grpc.max_connection_idle_ms",
        "grpc.max_connection_age_ms",
        "grpc.max_connection_age_grace_ms",
        "grpc.http2.min_ping_interval_without_data_ms",
        "grpc.client_idle_timeout_ms",
        "grpc.initial_reconnect_backoff_ms",
        "grpc.min_reconnect_backoff_ms",
        "grpc.max_reconnect_backoff_ms",
        "grpc.dns_min_time_between_resolutions_ms",
        "grpc.server_handshake_timeout_ms",
        "grpc.http2.settings_timeout",
    ]
    options = [(name, INT_MAX) for name in times]
    with echo.serving(options=options) as (address, _), channel_to(address, *options) as channel:
        assert echo.call(channel) == b"request"
