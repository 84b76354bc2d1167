"""Options of channels and servers by grpcio's names, as settings of the native module.

`OPTIONS` is the table of all options: for each one, how it is supported, what differs, and how its value becomes a
setting. No option is ignored silently: one that is unknown, that is not supported, or that has no effect is logged once
in a process, with what to do instead, by the logger `thalweg.grpc`. A value of a wrong type raises `TypeError`, one out
of its range `ValueError`, where grpcio logs or ignores some.
"""

from __future__ import annotations

import enum
import logging
import math
import os
from typing import Any, Callable, Iterable, NamedTuple, Optional

from thalweg import _native

_LOGGER = logging.getLogger("thalweg.grpc")

_INT_MAX = 2**31 - 1

#: Settings by their names in the native module.
Settings = dict[str, Any]


class Support(enum.Enum):
    """How an option is supported."""

    #: As in grpcio.
    SAME = "same"
    #: As in grpcio or better, without the option's drawbacks.
    BETTER = "better"
    #: With a difference, which the note tells.
    OTHER = "other"
    #: Not at all. The note says what to do instead.
    UNSUPPORTED = "unsupported"


#: Adds the setting of an option with this name and value. Returns a text to log if the value is not applied as given.
Apply = Callable[[Settings, str, Any], Optional[str]]


class Option(NamedTuple):
    """An option of channels, servers or both."""

    support: Support
    #: The difference to grpcio, or what to do instead; may be empty.
    note: str
    #: Applies the option to a channel; None if it has no effect there.
    channel: Optional[Apply]
    #: Applies the option to a server; None if it has no effect there.
    server: Optional[Apply]


def integer(name: str, value: Any, minimum: int = -_INT_MAX - 1, maximum: int = _INT_MAX) -> int:
    """Returns the value of an option as an integer.

    Raises:
        TypeError: It is none.
        ValueError: It is out of range.
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, (str, bytes, float)) or not hasattr(value, "__index__"):
        raise TypeError(f"option {name} must be an integer, not {value!r}")
    number = value.__index__()
    if not minimum <= number <= maximum:
        raise ValueError(f"option {name} must be from {minimum} to {maximum}, not {number}")
    return number


def text(name: str, value: Any) -> str:
    """Returns the value of an option as text.

    Raises:
        TypeError: It is none.
    """
    if isinstance(value, bytes):
        value = value.decode()
    if not isinstance(value, str):
        raise TypeError(f"option {name} must be a str, not {value!r}")
    return value


def _number(setting: str, minimum: int = 0, maximum: int = _INT_MAX) -> Apply:
    """Sets an integer."""

    def apply(settings: Settings, name: str, value: Any) -> None:
        settings[setting] = integer(name, value, minimum, maximum)

    return apply


def _length(setting: str) -> Apply:
    """Sets a length, unlimited if it is negative."""
    return _number(setting, minimum=-_INT_MAX - 1)


def _flag(setting: str, inverted: bool = False) -> Apply:
    """Sets a bool by 0 or 1."""

    def apply(settings: Settings, name: str, value: Any) -> None:
        settings[setting] = bool(integer(name, value, 0, 1)) != inverted

    return apply


def _text(setting: str) -> Apply:
    """Sets a text. A setting that the native module may reject has the name of its option, which is in the error."""

    def apply(settings: Settings, name: str, value: Any) -> None:
        settings[setting] = text(name, value)

    return apply


def _only(accepted: int, hint: str) -> Apply:
    """Accepts one value, which is what always happens. Others are logged."""

    def apply(settings: Settings, name: str, value: Any) -> Optional[str]:
        return None if integer(name, value) == accepted else hint

    return apply


def _clamped(setting: str, minimum: int, unit: str) -> Apply:
    """Sets an integer, and logs if it is too small."""

    def apply(settings: Settings, name: str, value: Any) -> Optional[str]:
        number = integer(name, value, 0)
        settings[setting] = max(number, minimum)
        return f"{number} {unit} is too small; {minimum} {unit} apply" if number < minimum else None

    return apply


def _max_ping_strikes(settings: Settings, name: str, value: Any) -> Optional[str]:
    strikes = integer(name, value, 0)
    if strikes == 0:
        # No number of PINGs is too many.
        settings["ping_interval_min_ms"] = 0
        return None
    return None if strikes == 2 else "the third PING that comes too early closes the connection; set 0 to allow all"


def _fixed_backoff(settings: Settings, name: str, value: Any) -> None:
    delay = integer(name, value, 1)
    settings.update(backoff_base_ms=delay, backoff_max_ms=delay, backoff_multiplier=1.0)


def _compression_level(settings: Settings, name: str, value: Any) -> None:
    # Levels are none, low, medium and high; grpcio has one algorithm for the last three.
    settings["compression"] = 2 if integer(name, value, 0, 3) else 0


def _soft_metadata_limit(settings: Settings, name: str, value: Any) -> None:
    # Without a hard limit, grpcio's is a quarter higher than the soft one, and 16 KiB at least.
    hard = max(16 * 1024, math.ceil(integer(name, value, 0) * 1.25))
    settings.setdefault("max_header_list_size", hard)


def _user_agent(setting: str) -> Apply:
    return _text(setting)


_SERVICE_CONFIG = "a service config, as JSON in the option grpc.service_config"
_ALWAYS_LISTED = "channels and servers are always listed, at no cost; 0 does not hide them"
_NO_TCP_TUNING = "socket buffers are left to the kernel, which adapts them; remove the option"
_ONE_CHANNEL = "each grpc channel has connections of its own; share a channel to share its connections"

_SAME, _BETTER, _OTHER, _UNSUPPORTED = Support.SAME, Support.BETTER, Support.OTHER, Support.UNSUPPORTED


def _unsupported(note: str) -> Option:
    def apply(settings: Settings, name: str, value: Any) -> str:
        return note

    return Option(_UNSUPPORTED, note, apply, apply)


def _both(support: Support, note: str, apply: Apply) -> Option:
    return Option(support, note, apply, apply)


def _channel(support: Support, note: str, apply: Apply) -> Option:
    return Option(support, note, apply, None)


def _server(support: Support, note: str, apply: Apply) -> Option:
    return Option(support, note, None, apply)


#: All options by name. Those in the documentation of grpcio and of gRPC's core, and those that its library reads.
OPTIONS: dict[str, Option] = {
    # Messages.
    "grpc.max_receive_message_length": _both(_SAME, "", _length("max_receive_message_length")),
    "grpc.max_send_message_length": _both(_SAME, "", _length("max_send_message_length")),
    "grpc.default_compression_algorithm": _both(
        _BETTER, "messages below 1 KiB are not compressed", _number("compression", 0, 2)
    ),
    "grpc.default_compression_level": _both(_OTHER, "gzip for all levels but none", _compression_level),
    "grpc.compression_enabled_algorithms_bitset": _both(_SAME, "", _number("accepted_compression", 0)),
    "grpc.per_message_compression": _both(
        _OTHER, "messages are compressed if a compression is set", _only(1, "set no compression instead")
    ),
    "grpc.per_message_decompression": _both(
        _OTHER,
        "messages are always decompressed",
        _only(1, "to refuse compressed messages, set grpc.compression_enabled_algorithms_bitset to 1"),
    ),
    # Metadata.
    "grpc.max_metadata_size": _both(
        _OTHER, "sets the hard limit, a quarter higher; nothing is rejected at random below it", _soft_metadata_limit
    ),
    "grpc.absolute_max_metadata_size": _both(_SAME, "", _number("max_header_list_size", 1)),
    "grpc.primary_user_agent": _channel(_SAME, "", _user_agent("primary_user_agent")),
    "grpc.secondary_user_agent": _channel(
        _OTHER, "comes before the name of the transport", _user_agent("secondary_user_agent")
    ),
    "grpc.default_authority": _channel(_SAME, "", _text("authority")),
    "grpc.disable_client_authority_filter": _unsupported("calls need an authority; set grpc.default_authority"),
    "grpc.ssl_target_name_override": _channel(_SAME, "", _text("tls_name")),
    # Keepalive.
    "grpc.keepalive_time_ms": Option(
        _OTHER,
        "at least 10 s on a channel (gRFC A8), and 1 s on a server",
        _clamped("keepalive_ms", 10_000, "ms"),
        _clamped("keepalive_ms", 1_000, "ms"),
    ),
    "grpc.keepalive_timeout_ms": _both(_OTHER, "at least 1 s", _clamped("keepalive_timeout_ms", 1_000, "ms")),
    "grpc.http2.ping_timeout_ms": _both(
        _OTHER, "the same as grpc.keepalive_timeout_ms", _clamped("keepalive_timeout_ms", 1_000, "ms")
    ),
    "grpc.keepalive_permit_without_calls": Option(
        _SAME, "", _flag("keepalive_without_calls"), _flag("pings_without_calls")
    ),
    "grpc.http2.max_pings_without_data": _both(
        _OTHER,
        "keepalive PINGs are not limited",
        _only(0, "keepalive PINGs are limited by grpc.keepalive_time_ms only, as with 0"),
    ),
    "grpc.http2.min_ping_interval_without_data_ms": _server(_SAME, "", _number("ping_interval_min_ms")),
    "grpc.http2.min_recv_ping_interval_without_data_ms": _server(_SAME, "", _number("ping_interval_min_ms")),
    "grpc.http2.min_time_between_pings_ms": _unsupported("use grpc.keepalive_time_ms"),
    "grpc.http2.min_sent_ping_interval_without_data_ms": _unsupported("use grpc.keepalive_time_ms"),
    "grpc.http2.max_ping_strikes": _server(_OTHER, "0 and 2 only", _max_ping_strikes),
    "grpc.http2.max_inflight_pings": _unsupported("there is at most one keepalive PING at a time"),
    "grpc.http2.ping_on_rst_stream_percent": _unsupported("no PINGs are sent for resets"),
    "grpc.http2.ack_pings": _unsupported("HTTP/2 requires that PINGs are acknowledged"),
    # Life of connections.
    "grpc.client_idle_timeout_ms": _channel(
        _OTHER, "off by default, where grpcio closes connections after 30 minutes", _number("idle_timeout_ms", 1)
    ),
    "grpc.max_connection_idle_ms": _server(_OTHER, "to the second", _clamped("idle_ms", 1_000, "ms")),
    "grpc.max_connection_age_ms": _server(_OTHER, "to the second", _clamped("age_ms", 1_000, "ms")),
    "grpc.max_connection_age_grace_ms": _server(_OTHER, "to the second", _number("age_grace_ms")),
    "grpc.max_allowed_incoming_connections": _server(
        _BETTER, "the connection with the longest idle time makes room", _number("max_connections", 1)
    ),
    "grpc.server_handshake_timeout_ms": _server(_SAME, "of TLS", _number("handshake_timeout_ms", 1)),
    "grpc.so_reuseport": _server(_SAME, "", _flag("reuse_port")),
    "grpc.expand_wildcard_addrs": _unsupported("add the addresses one by one"),
    # Connecting.
    "grpc.initial_reconnect_backoff_ms": _channel(_SAME, "", _number("backoff_base_ms", 1)),
    "grpc.min_reconnect_backoff_ms": _channel(
        _SAME, "the timeout of an attempt to connect", _number("connect_timeout_ms", 1)
    ),
    "grpc.max_reconnect_backoff_ms": _channel(_SAME, "", _number("backoff_max_ms", 1)),
    "grpc.testing.fixed_reconnect_backoff_ms": _channel(_SAME, "", _fixed_backoff),
    "grpc.happy_eyeballs_connection_attempt_delay_ms": _unsupported("the delay is the one of RFC 8305"),
    "grpc.use_local_subchannel_pool": _channel(_BETTER, _ONE_CHANNEL, _only(1, _ONE_CHANNEL)),
    "grpc.max_connections_per_subchannel_cap": _channel(_SAME, "", _number("connections_max", 1)),
    "grpc.enable_http_proxy": _channel(
        _OTHER, "reads https_proxy and no_proxy, not grpc_proxy and http_proxy", _flag("uses_proxies")
    ),
    "grpc.http_proxy": _channel(_BETTER, "also https:// and socks5:// proxies", _text("grpc.http_proxy")),
    "grpc.address_http_proxy": _unsupported("use grpc.http_proxy"),
    "grpc.address_http_proxy_enabled_addresses": _unsupported("use grpc.http_proxy"),
    "grpc.http_connect_server": _unsupported("use grpc.http_proxy"),
    "grpc.http_connect_headers": _unsupported("put the proxy's user and password in the URL of grpc.http_proxy"),
    "grpc.dns_min_time_between_resolutions_ms": _channel(_SAME, "", _number("resolution_interval_ms")),
    "grpc.dns_enable_srv_queries": _channel(
        _OTHER, "SRV records are for grpclb, which is not supported", _only(0, "grpclb is not supported; use " + _SERVICE_CONFIG)
    ),
    "grpc.dns_ares_query_timeout": _unsupported("set grpc.min_reconnect_backoff_ms, which includes the resolution"),
    # Balancing, service config, retries.
    "grpc.lb_policy_name": _channel(_BETTER, "an unknown policy is an error", _text("grpc.lb_policy_name")),
    "grpc.service_config": _channel(_BETTER, "an invalid one is an error at once", _text("grpc.service_config")),
    "grpc.service_config_disable_resolution": _channel(
        _SAME, "service configs are read from DNS only with 0", _flag("service_config_from_dns", inverted=True)
    ),
    "grpc.enable_retries": _channel(_SAME, "", _flag("retries")),
    "grpc.experimental.enable_hedging": _channel(
        _BETTER, "a hedging policy in the service config applies without it", _only(1, "remove the hedging policy")
    ),
    "grpc.per_rpc_retry_buffer_size": _channel(_SAME, "", _number("retry_buffer_size")),
    "grpc.inhibit_health_checking": _channel(_SAME, "", _flag("health_checks", inverted=True)),
    "grpc.grpclb_call_timeout_ms": _unsupported("grpclb is not supported; use " + _SERVICE_CONFIG),
    "grpc.grpclb_fallback_timeout_ms": _unsupported("grpclb is not supported; use " + _SERVICE_CONFIG),
    "grpc.experimental.grpclb_channel_args": _unsupported("grpclb is not supported; use " + _SERVICE_CONFIG),
    "grpc.priority_failover_timeout_ms": _unsupported("xDS is not supported"),
    "grpc.xds_resource_does_not_exist_timeout_ms": _unsupported("xDS is not supported"),
    "grpc.server_config_fetcher": _unsupported("xDS is not supported"),
    # HTTP/2.
    "grpc.max_concurrent_streams": _server(
        _OTHER, "1,000 by default, where grpcio has no limit", _number("max_concurrent_streams")
    ),
    "grpc.http.max_concurrent_streams_reject_on_client": _unsupported("calls wait for a free stream"),
    "grpc.http2.max_frame_size": _both(_SAME, "", _number("max_frame_size", 16_384, 16_777_215)),
    "grpc.http2.lookahead_bytes": _both(_SAME, "the window of a stream", _number("stream_window", 5)),
    "grpc.http2.bdp_probe": _both(
        _BETTER,
        "windows are large from the start, 1 MiB for a stream",
        _only(1, "windows have a fixed size, which grpc.http2.lookahead_bytes sets"),
    ),
    "grpc.http2.hpack_table_size.decoder": _both(_SAME, "", _number("header_table_size")),
    "grpc.http2.hpack_table_size.encoder": _unsupported("the encoder uses what the peer permits, up to 4 KiB"),
    "grpc.http2.initial_sequence_number": _unsupported("streams start at 1"),
    "grpc.http2.write_buffer_size": _unsupported("writes are batched up to 512 KiB"),
    "grpc.http2.settings_timeout": _both(_SAME, "", _number("settings_timeout_ms", 1)),
    "grpc.http2.max_requests_per_read": _unsupported("reads yield by themselves"),
    "grpc.http2.true_binary": _unsupported("binary metadata is sent as Base64, which all peers read"),
    "grpc.http2_scheme": _unsupported("the scheme follows from the credentials"),
    "grpc.experimental.http2.enable_preferred_frame_size": _unsupported("set grpc.http2.max_frame_size"),
    "grpc.http.overload_protection": _unsupported("servers always have it"),
    "grpc.server.max_pending_requests": _unsupported("use maximum_concurrent_rpcs of grpc.server"),
    "grpc.server.max_pending_requests_hard_limit": _unsupported("use maximum_concurrent_rpcs of grpc.server"),
    "grpc.server_max_unrequested_time_in_server": _unsupported("use deadlines"),
    # Sockets.
    "grpc.tcp_receive_buffer_size": _unsupported(_NO_TCP_TUNING),
    "grpc.experimental.tcp_read_chunk_size": _unsupported(_NO_TCP_TUNING),
    "grpc.experimental.tcp_min_read_chunk_size": _unsupported(_NO_TCP_TUNING),
    "grpc.experimental.tcp_max_read_chunk_size": _unsupported(_NO_TCP_TUNING),
    "grpc.experimental.tcp_max_read_buffer_size": _unsupported(_NO_TCP_TUNING),
    "grpc.experimental.tcp_tx_zerocopy_enabled": _unsupported("there is no zero-copy sending"),
    "grpc.experimental.tcp_tx_zerocopy_send_bytes_threshold": _unsupported("there is no zero-copy sending"),
    "grpc.experimental.tcp_tx_zerocopy_max_simultaneous_sends": _unsupported("there is no zero-copy sending"),
    "grpc.dscp": _unsupported("set the class of traffic outside of the process"),
    "grpc.socket_mutator": _unsupported("sockets are not given to the application"),
    "grpc.socket_factory": _unsupported("sockets are not given to the application"),
    "grpc.resource_quota": _unsupported("memory is bounded by a budget of the process"),
    "grpc.tsi.max_frame_size": _unsupported("TLS records have the size of RFC 8446"),
    "grpc.ssl_session_cache": _channel(
        _BETTER, "a channel resumes its sessions without it", lambda settings, name, value: None
    ),
    # Observation.
    "grpc.enable_channelz": _both(_BETTER, _ALWAYS_LISTED, _only(1, _ALWAYS_LISTED)),
    "grpc.max_channel_trace_event_memory_per_node": _unsupported("the latest 32 events are kept"),
    "grpc.census": _unsupported("use an interceptor of OpenTelemetry"),
    "grpc.server_call_metric_recording": _unsupported("load reports are not sent"),
    "grpc.experimental.stats_plugins": _unsupported("use an interceptor of OpenTelemetry"),
    "grpc.experimental.server_call_tracer_factory": _unsupported("use an interceptor of OpenTelemetry"),
    "grpc.tcp_tracing_enabled": _unsupported("trace outside of the process"),
    "grpc.minimal_stack": _unsupported("remove the option; set the features that you do not need to off"),
    "grpc.authorization_policy_provider": _unsupported("check permissions in a server interceptor"),
    # grpcio's own.
    "SingleThreadedUnaryStream": _channel(
        _BETTER, "no stream has a thread of its own", lambda settings, name, value: None
    ),
}

_logged: set[tuple[str, str]] = set()


def _log(name: str, message: str) -> None:
    """Logs a text about an option, once in the process."""
    if (name, message) not in _logged:
        _logged.add((name, message))
        _LOGGER.warning("option %s: %s", name, message)


#: Environment variables of grpcio that have no effect here, and what to do instead.
ENVIRONMENT = {
    "grpc_proxy": "proxies are read from https_proxy and no_proxy; or set the option grpc.http_proxy",
    "no_grpc_proxy": "exceptions from proxies are read from no_proxy",
    "GRPC_SSL_CIPHER_SUITES": "the cipher suites are those of TLS 1.3, and of TLS 1.2 with forward secrecy and AEAD",
    "GRPC_SYSTEM_SSL_ROOTS_DIR": "set SSL_CERT_DIR",
    "GRPC_NOT_USE_SYSTEM_SSL_ROOTS": "give root_certificates to ssl_channel_credentials",
    "GRPC_TRACE": "there are no such traces",
    "GRPC_XDS_BOOTSTRAP": "xDS is not supported",
    "GRPC_XDS_BOOTSTRAP_CONFIG": "xDS is not supported",
}

_is_environment_logged = False


def _log_environment() -> None:
    """Logs environment variables that have no effect, once in the process."""
    global _is_environment_logged
    if not _is_environment_logged:
        _is_environment_logged = True
        for name, note in ENVIRONMENT.items():
            if os.environ.get(name):
                _LOGGER.warning("the environment variable %s has no effect: %s", name, note)


def _pairs(options: Any) -> Iterable[tuple[str, Any]]:
    for pair in options or ():
        try:
            name, value = pair
        except (TypeError, ValueError):
            raise ValueError(f"options must be pairs of a name and a value, not {pair!r}") from None
        if isinstance(name, bytes):
            name = name.decode()
        if not isinstance(name, str):
            raise TypeError(f"names of options must be str, not {name!r}")
        yield name, value


def _settings(options: Any, side: str, compression: Any) -> Settings:
    _log_environment()
    settings: Settings = {}
    for name, value in _pairs(options):
        if value is None:
            raise TypeError(f"option {name} must not be None; leave it out for its default")
        option = OPTIONS.get(name)
        if option is None:
            if isinstance(value, (int, str, bytes)):
                _log(name, "unknown, and ignored; check its spelling")
                continue
            raise TypeError(f"unknown option {name} must be an integer, str or bytes, not {value!r}")
        apply = option.channel if side == "channel" else option.server
        if apply is None:
            _log(name, f"has no effect on a {side}; remove it there")
            continue
        message = apply(settings, name, value)
        if message:
            _log(name, message)
    if compression is not None:
        settings["compression"] = compression_number(compression)
    return settings


def compression_number(compression: Any) -> int:
    """Returns the number of a `Compression`.

    Raises:
        TypeError: It is none.
        ValueError: Its number is unknown.
    """
    number = integer("compression", compression)
    if not 0 <= number <= 2:
        raise ValueError(f"unknown compression {number}; use a member of grpc.Compression")
    return number


def channel_settings(options: Any, compression: Any = None) -> Settings:
    """Returns the settings of a channel.

    Args:
        options: Pairs of an option's name and value, or None.
        compression: A `Compression` of all calls, or None. It takes precedence over the options.

    Raises:
        TypeError: A value is of the wrong type.
        ValueError: A value is out of range.
    """
    settings = _settings(options, "channel", compression)
    own = f"grpc-python-thalweg/{_native.VERSION}"
    names = (settings.pop("primary_user_agent", ""), own, settings.pop("secondary_user_agent", ""))
    settings["user_agent"] = " ".join(name for name in names if name)
    return settings


def server_settings(options: Any, compression: Any = None) -> Settings:
    """Returns the settings of a server. See `channel_settings`."""
    return _settings(options, "server", compression)
