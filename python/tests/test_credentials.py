"""Credentials of channels, calls and servers."""

import asyncio
import contextlib
import socket
import ssl
import threading
from pathlib import Path

import echo
import grpc
import pytest

_FOLDER = Path(__file__).parent / "certificates"
CA = (_FOLDER / "ca.pem").read_bytes()

UNAVAILABLE = grpc.StatusCode.UNAVAILABLE


def pair(name):
    """Returns key and certificate."""
    return (_FOLDER / f"{name}.key").read_bytes(), (_FOLDER / f"{name}.pem").read_bytes()


def tls_server(**keywords):
    return echo.serving(grpc.ssl_server_credentials([pair("server")]), **keywords)


def mutual_server():
    return echo.serving(grpc.ssl_server_credentials([pair("server")], CA, require_client_auth=True))


def tls_channel(address, *options, call_credentials=()):
    credentials = grpc.ssl_channel_credentials(CA)
    if call_credentials:
        credentials = grpc.composite_channel_credentials(credentials, *call_credentials)
    return grpc.secure_channel(address, credentials, options)


def plugin(function):
    return grpc.metadata_call_credentials(function)


def adding(*metadata):
    """Returns call credentials that add this metadata."""
    return plugin(lambda context, callback: callback(metadata, None))


# TLS.


def test_tls_and_what_the_server_knows_of_it():
    with tls_server() as (address, seen), tls_channel(address) as channel:
        assert echo.call(channel) == b"request"
        assert seen.auth_context["transport_security_type"] == [b"ssl"]
        assert seen.auth_context["security_level"] == [b"TSI_PRIVACY_AND_INTEGRITY"]
        assert seen.auth_context["ssl_session_reused"] == [b"false"]
        assert seen.peer_identity_key is None
        assert seen.peer_identities is None


def test_mutual_tls_identifies_the_client():
    with mutual_server() as (address, seen):
        credentials = grpc.ssl_channel_credentials(CA, *pair("client"))
        with grpc.secure_channel(address, credentials) as channel:
            assert echo.call(channel) == b"request"
        names = [b"client.test", b"other.test", b"10.0.0.1", b"spiffe://test/a", b"a@b.test"]
        assert seen.peer_identity_key == "x509_subject_alternative_name"
        assert seen.peer_identities == names
        context = seen.auth_context
        assert context["x509_subject_alternative_name"] == names
        assert context["x509_common_name"] == [b"client.test"]
        assert context["x509_subject"] == [b"CN=client.test,O=Test"]
        assert context["x509_pem_cert"] == [pair("client")[1]]
        assert context["peer_dns"] == names[:2]
        assert context["peer_ip"] == names[2:3]
        assert context["peer_uri"] == context["peer_spiffe_id"] == names[3:4]
        assert context["peer_email"] == names[4:]


def test_mutual_tls_rejects_a_client_without_certificate():
    with mutual_server() as (address, seen), tls_channel(address) as channel:
        code, _ = echo.failure(channel)
        assert code is UNAVAILABLE
        assert seen.calls == 0


def test_insecure_connections_have_no_identity():
    with echo.serving() as (address, seen), grpc.insecure_channel(address) as channel:
        echo.call(channel)
        expected = {"transport_security_type": [b"insecure"], "security_level": [b"TSI_SECURITY_NONE"]}
        assert dict(seen.auth_context) == expected
        assert seen.peer_identity_key is None


def test_server_must_be_trusted_and_speak_the_same_protocol():
    with tls_server() as (address, _):
        with grpc.secure_channel(address, grpc.ssl_channel_credentials()) as channel:
            assert echo.failure(channel)[0] is UNAVAILABLE
        with grpc.insecure_channel(address) as channel:
            assert echo.failure(channel)[0] is UNAVAILABLE


@pytest.mark.parametrize("name", ["grpc.ssl_target_name_override", "grpc.default_authority"])
def test_option_replaces_the_name_of_the_server(name):
    with tls_server() as (address, seen):
        with tls_channel(address, (name, "server.test")) as channel:
            assert echo.call(channel) == b"request"
            assert seen.auth_context.get("ssl_requested_server_name") in ([b"server.test"], None)
        with tls_channel(address, (name, "other.test")) as channel:
            assert echo.failure(channel)[0] is UNAVAILABLE


def test_certificates_must_be_bytes_and_complete():
    key, chain = pair("server")
    with pytest.raises(TypeError):
        grpc.ssl_channel_credentials(CA.decode())
    with pytest.raises(ValueError):
        grpc.ssl_server_credentials([])
    with pytest.raises(ValueError):
        grpc.ssl_server_credentials([(key, chain)], require_client_auth=True)
    with pytest.raises(ValueError):
        grpc.ssl_server_certificate_configuration([])


def test_port_with_bad_certificates_is_not_added():
    server = grpc.server(None)
    with pytest.raises(RuntimeError):
        server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([(b"key", b"chain")]))


@pytest.mark.thalweg_only
def test_channel_with_bad_certificates_is_an_error():
    """grpcio fails each call, or ends the process."""
    key, chain = pair("client")
    with pytest.raises(ValueError, match="has no certificate"):
        grpc.secure_channel("localhost:1", grpc.ssl_channel_credentials(b"no certificate"))
    with pytest.raises(ValueError, match="the private key does not match"):
        grpc.secure_channel("localhost:1", grpc.ssl_channel_credentials(CA, key, pair("server")[1]))
    with pytest.raises(ValueError, match="certificate_chain was given without private_key"):
        grpc.ssl_channel_credentials(CA, None, chain)


@pytest.mark.thalweg_only
def test_environment_names_trusted_certificates(monkeypatch):
    """grpcio reads the variable once in a process."""
    monkeypatch.setenv("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", str(_FOLDER / "ca.pem"))
    with tls_server() as (address, _), grpc.secure_channel(address, grpc.ssl_channel_credentials()) as channel:
        assert echo.call(channel) == b"request"


def common_name(address):
    """Returns the name in the certificate that a server shows."""
    context = ssl.create_default_context(cadata=CA.decode())
    context.check_hostname = False
    context.set_alpn_protocols(["h2"])
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port))) as connection, context.wrap_socket(connection) as secure:
        return dict(field for fields in secure.getpeercert()["subject"] for field in fields)["commonName"]


def test_server_fetches_certificates_before_handshakes():
    first, second = (grpc.ssl_server_certificate_configuration([pair(it)], CA) for it in ("server", "server2"))
    results = [None, second, None, ValueError("for the test"), 5, first]
    fetched = []

    def fetch():
        result = results[len(fetched)]
        fetched.append(result)
        if isinstance(result, Exception):
            raise result
        return result

    with echo.serving(grpc.dynamic_ssl_server_credentials(first, fetch)) as (address, _):
        names = [common_name(address) for _ in results]
    assert fetched == results
    second_name = "server2.test"
    assert names == ["server.test", second_name, second_name, second_name, second_name, "server.test"]


def test_fetched_certificates_replace_the_authorities_of_clients():
    trusting = grpc.ssl_server_certificate_configuration([pair("server")], CA)
    # Its own certificate is no authority that has issued the client's.
    other = grpc.ssl_server_certificate_configuration([pair("server")], pair("server")[1])
    current = [trusting]
    credentials = grpc.dynamic_ssl_server_credentials(trusting, lambda: current[0], True)
    with echo.serving(credentials) as (address, _):
        for configuration, is_accepted in ((trusting, True), (other, False), (trusting, True)):
            current[0] = configuration
            client = grpc.ssl_channel_credentials(CA, *pair("client"))
            options = [("grpc.use_local_subchannel_pool", 1)]
            with grpc.secure_channel(address, client, options) as channel:
                if is_accepted:
                    assert echo.call(channel) == b"request"
                else:
                    assert echo.failure(channel)[0] is UNAVAILABLE


def test_dynamic_credentials_need_a_configuration():
    with pytest.raises(TypeError):
        grpc.dynamic_ssl_server_credentials(None, lambda: None)


# Connections within the machine.


def check_local(address, seen, kind):
    with grpc.secure_channel(address, grpc.local_channel_credentials(kind)) as channel:
        assert echo.call(channel, credentials=adding(("key", "value"))) == b"request"
    assert seen.value("key") == "value"
    assert seen.auth_context["transport_security_type"] == [b"local"]
    assert seen.peer_identity_key == "transport_security_type"
    assert seen.peer_identities == [b"local"]


def test_local_credentials_over_tcp():
    kind = grpc.LocalConnectionType.LOCAL_TCP
    with echo.serving(grpc.local_server_credentials()) as (address, seen):
        check_local(address, seen, kind)


def test_local_credentials_over_a_unix_socket(tmp_path):
    kind = grpc.LocalConnectionType.UDS
    address = f"unix:{tmp_path}/socket"
    with echo.serving(grpc.local_server_credentials(kind), address) as (address, seen):
        check_local(address, seen, kind)


@pytest.mark.thalweg_only
@pytest.mark.parametrize(
    "target, kind",
    [
        ("example.test:1", "LOCAL_TCP"),
        ("10.0.0.1:1", "LOCAL_TCP"),
        ("unix:/run/socket", "LOCAL_TCP"),
        ("localhost:1", "UDS"),
    ],
)
def test_local_credentials_refuse_other_targets(target, kind):
    """grpcio fails the calls."""
    with pytest.raises(ValueError, match="local credentials do not apply"):
        grpc.secure_channel(target, grpc.local_channel_credentials(grpc.LocalConnectionType[kind]))


@pytest.mark.thalweg_only
@pytest.mark.parametrize("target", ["localhost", "dns:///localhost:1", "127.0.0.2:1", "[::1]:1", "ipv6:[::1]:1"])
def test_local_credentials_accept_loopback_addresses(target):
    grpc.secure_channel(target, grpc.local_channel_credentials()).close()


# Call credentials.


def test_plugins_get_the_call_and_add_metadata():
    contexts = []

    def authenticate(context, callback):
        contexts.append((context.service_url, context.method_name))
        callback((("key", "value"), ("data-bin", b"\x01\xff")), None)

    with tls_server() as (address, seen), tls_channel(address) as channel:
        echo.call(channel, metadata=(("own", "1"),), credentials=plugin(authenticate))
        assert contexts == [(f"https://{address}/test.Echo", "Echo")]
        assert (seen.value("own"), seen.value("key"), seen.value("data-bin")) == ("1", "value", b"\x01\xff")


def test_service_url_has_the_name_that_replaces_the_target():
    contexts = []

    def authenticate(context, callback):
        contexts.append(context.service_url)
        callback((), None)

    with tls_server() as (address, _), tls_channel(address, ("grpc.ssl_target_name_override", "server.test")) as channel:
        echo.call(channel, credentials=plugin(authenticate))
    assert contexts == ["https://server.test/test.Echo"]


def test_a_plugin_may_be_a_class_and_call_back_later_from_a_thread():
    class Later(grpc.AuthMetadataPlugin):
        def __call__(self, context, callback):
            threading.Timer(0.1, callback, ((("key", "later"),), None)).start()

    with tls_server() as (address, seen), tls_channel(address) as channel:
        echo.call(channel, credentials=plugin(Later()))
        assert seen.value("key") == "later"


def test_credentials_of_channel_and_call_are_added_in_order():
    composite = grpc.composite_call_credentials(adding(("c", "3")), adding(("d", "4"), ("e", "5")))
    of_channel = [adding(("a", "1")), grpc.access_token_call_credentials("token")]
    with tls_server() as (address, seen), tls_channel(address, call_credentials=of_channel) as channel:
        echo.call(channel, credentials=composite)
        added = [pair for pair in map(tuple, seen.metadata) if pair[0] != "user-agent"]
        expected = [("a", "1"), ("authorization", "Bearer token"), ("c", "3"), ("d", "4"), ("e", "5")]
        assert added == expected


def raising(context, callback):
    raise ValueError("for the test")


def failing(context, callback):
    callback(None, ValueError("for the test"))


def invalid(context, callback):
    callback((("Not Valid", "value"),), None)


def test_a_failing_plugin_fails_the_call():
    failed = "Getting metadata from plugin failed with error: for the test"
    with tls_server() as (address, seen), tls_channel(address) as channel:
        assert echo.failure(channel, credentials=plugin(raising)) == (UNAVAILABLE, failed)
        assert echo.failure(channel, credentials=plugin(failing)) == (UNAVAILABLE, failed)
        assert echo.failure(channel, credentials=plugin(invalid)) == (UNAVAILABLE, "Illegal metadata")
        assert seen.calls == 0


def test_a_plugin_without_metadata_adds_none():
    with tls_server() as (address, seen), tls_channel(address) as channel:
        assert echo.call(channel, credentials=plugin(lambda context, callback: callback(None, None))) == b"request"
        assert [key for key, _ in seen.metadata] == ["user-agent"]


def test_a_plugin_that_never_calls_back_ends_with_the_deadline():
    with tls_server() as (address, _), tls_channel(address) as channel:
        code, _ = echo.failure(channel, timeout=0.3, credentials=plugin(lambda context, callback: None))
        assert code is grpc.StatusCode.DEADLINE_EXCEEDED


def test_a_plugin_may_call_back_once():
    errors = []

    def twice(context, callback):
        callback((("key", "value"),), None)
        with contextlib.suppress(AssertionError), pytest.raises(RuntimeError) as raised:
            callback((), None)
        errors.append(raised)

    with tls_server() as (address, seen), tls_channel(address) as channel:
        echo.call(channel, credentials=plugin(twice))
        assert len(errors) == 1 and seen.value("key") == "value"


def test_call_credentials_need_a_secure_channel():
    insecure = grpc.experimental.insecure_channel_credentials()
    composite = grpc.composite_channel_credentials(insecure, adding(("key", "value")))
    text = "Established channel does not have a sufficient security level to transfer call credential."
    with echo.serving() as (address, seen):
        with grpc.insecure_channel(address) as channel:
            expected = (grpc.StatusCode.UNAUTHENTICATED, text)
            assert echo.failure(channel, credentials=adding(("key", "value"))) == expected
        with grpc.secure_channel(address, composite) as channel:
            assert echo.failure(channel) == expected
        with grpc.secure_channel(address, insecure) as channel:
            assert echo.call(channel) == b"request"
        assert seen.calls == 1


# Those that need what only grpcio has.


@pytest.mark.thalweg_only
@pytest.mark.parametrize(
    "make, instead",
    [
        (lambda: grpc.alts_channel_credentials(), "ssl_channel_credentials"),
        (lambda: grpc.alts_server_credentials(), "ssl_server_credentials"),
        (lambda: grpc.compute_engine_channel_credentials(adding()), "composite_channel_credentials"),
    ],
)
def test_credentials_that_are_not_supported_name_others(make, instead):
    with pytest.raises(NotImplementedError, match=instead):
        make()


def test_credentials_of_xds_fall_back_for_other_targets():
    server = grpc.xds_server_credentials(grpc.ssl_server_credentials([pair("server")]))
    client = grpc.xds_channel_credentials(grpc.ssl_channel_credentials(CA))
    with echo.serving(server) as (address, _), grpc.secure_channel(address, client) as channel:
        assert echo.call(channel) == b"request"


# Coroutines.


@pytest.mark.thalweg_only
def test_metadata_for_coroutines():
    """Tests what `grpc.aio` gets its metadata from."""
    from thalweg.grpc import _credentials

    context = _credentials.CallContext("https://server/test.Echo", "Echo")
    loop_thread = threading.get_ident()
    threads = []

    def blocking(context, callback):
        threads.append(threading.get_ident())
        callback((("key", context.method_name),), None)

    async def check():
        token = grpc.access_token_call_credentials("token")
        credentials = grpc.composite_call_credentials(plugin(blocking), token)
        metadata = await _credentials.metadata_of_async(credentials, context)
        assert metadata == [("key", "Echo"), ("authorization", "Bearer token")]
        for function in (raising, failing):
            with pytest.raises(_credentials.CredentialsError, match="failed with error: for the test"):
                await _credentials.metadata_of_async(plugin(function), context)
        never = _credentials.metadata_of_async(plugin(lambda context, callback: None), context)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(never, 0.1)

    asyncio.run(check())
    assert loop_thread not in threads


@pytest.mark.thalweg_only
@pytest.mark.parametrize(
    "target, settings, expected",
    [
        ("localhost:1", {}, "localhost:1"),
        ("dns:///localhost:1", {}, "localhost:1"),
        ("dns:localhost:1", {}, "localhost:1"),
        ("dns://10.0.0.53/name:1", {}, "name:1"),
        ("ipv4:1.2.3.4:5,1.2.3.5:5", {}, "1.2.3.4:5"),
        ("ipv6:[::1]:5", {}, "[::1]:5"),
        ("unix:/run/socket", {}, "localhost"),
        ("localhost:1", {"tls_name": "name"}, "name"),
        ("localhost:1", {"tls_name": "name", "authority": "other"}, "other"),
    ],
)
def test_authority_of_targets(target, settings, expected):
    from thalweg.grpc import _credentials

    assert _credentials.authority_of(target, settings) == expected


@pytest.mark.thalweg_only
def test_service_url_is_without_the_default_port():
    from thalweg.grpc import _credentials

    credentials = grpc.ssl_channel_credentials(CA)
    context = _credentials.context_of(credentials, "shop.test:443", b"/shop.Cart/Add")
    assert context == ("https://shop.test/shop.Cart", "Add")
