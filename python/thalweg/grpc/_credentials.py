"""Credentials of channels, calls and servers.

Clients get the metadata of call credentials by `metadata_of`, or in a coroutine by `metadata_of_async`, and refuse them
on an insecure channel by `call_credentials_of`.
"""

from __future__ import annotations

import abc
import asyncio
import concurrent.futures
import contextvars
import logging
import os
import re
import threading
import time
from typing import Any, Callable, NamedTuple, Optional, Sequence, Union

from thalweg import _native
from thalweg.grpc._status import StatusCode
from thalweg.grpc._types import LocalConnectionType

_LOGGER = logging.getLogger("thalweg.grpc")

#: Environment variable with the path of trusted certificates, as in grpcio.
_ROOTS_PATH = "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH"

Metadata = list[tuple[str, Union[str, bytes]]]


class ChannelCredentials:
    """Credentials of a channel, for `secure_channel`. Made by functions such as `ssl_channel_credentials`."""

    def __init__(self, credentials: Any) -> None:
        self._credentials = credentials


class CallCredentials:
    """Credentials of calls, which add metadata. Made by functions such as `metadata_call_credentials`."""

    def __init__(self, credentials: Any) -> None:
        self._credentials = credentials


class ServerCredentials:
    """Credentials of a server's port, for `add_secure_port`. Made by functions such as `ssl_server_credentials`."""

    def __init__(self, credentials: Any) -> None:
        self._credentials = credentials


class ServerCertificateConfiguration:
    """Certificates of a server. Made by `ssl_server_certificate_configuration`."""

    def __init__(self, certificate_configuration: Any) -> None:
        self._certificate_configuration = certificate_configuration


class AuthMetadataContext(abc.ABC):
    """The call that an `AuthMetadataPlugin` adds metadata to.

    Attributes:
        service_url: URL of the service, such as `https://shop.example/shop.Cart`.
        method_name: Name of the method, such as `Add`.
    """

    service_url: str
    method_name: str


class AuthMetadataPluginCallback(abc.ABC):
    """Takes the result of an `AuthMetadataPlugin`."""

    @abc.abstractmethod
    def __call__(self, metadata: Any, error: Optional[Exception]) -> None:
        """Takes the metadata, or the error that fails the call. To be called once, from any thread.

        Args:
            metadata: Pairs of a key and a value; not used with an error.
            error: None, or why there is no metadata.
        """
        raise NotImplementedError()


class AuthMetadataPlugin(abc.ABC):
    """Makes metadata that authenticates calls. Any function with the same arguments is one, too."""

    @abc.abstractmethod
    def __call__(self, context: AuthMetadataContext, callback: AuthMetadataPluginCallback) -> None:
        """Calls `callback` with the metadata of a call, now or later.

        It may block: it runs on the thread of a blocking call, and for a coroutine on a thread of its own.

        Args:
            context: The call.
            callback: Takes the metadata.
        """
        raise NotImplementedError()


class _CallContext(NamedTuple):
    service_url: str
    method_name: str


class CallContext(_CallContext, AuthMetadataContext):  # type: ignore[misc]
    """The `AuthMetadataContext` of a call."""


class CredentialsError(Exception):
    """Call credentials that fail their call.

    Attributes:
        code: The `StatusCode` that the call ends with.
        details: The text of its status.
    """

    def __init__(self, code: StatusCode, details: str) -> None:
        super().__init__(details)
        self.code = code
        self.details = details


class _ChannelSecurity(NamedTuple):
    """The inner part of `ChannelCredentials`."""

    native: Any
    #: Whether call credentials may be sent.
    is_secure: bool
    #: Scheme of `AuthMetadataContext.service_url`; grpcio has none for local connections.
    scheme: str
    #: Plugins of the channel's own call credentials.
    plugins: tuple["_Plugin", ...] = ()


class _Plugin(NamedTuple):
    """An `AuthMetadataPlugin`, or a function like it."""

    call: Callable[[AuthMetadataContext, AuthMetadataPluginCallback], None]
    name: str
    #: Whether it calls back at once, so that it needs no thread.
    is_immediate: bool = False


# Channels.


def _require_bytes(name: str, value: Any) -> None:
    if value is not None and not isinstance(value, bytes):
        raise TypeError(f"{name} must be bytes in PEM, not {type(value).__name__}")


def ssl_channel_credentials(
    root_certificates: Optional[bytes] = None,
    private_key: Optional[bytes] = None,
    certificate_chain: Optional[bytes] = None,
) -> ChannelCredentials:
    """Returns credentials of TLS.

    Args:
        root_certificates: The certificates of trusted authorities, in PEM. By default those of the file that the
            environment variable `GRPC_DEFAULT_SSL_ROOTS_FILE_PATH` names, or else the platform's and Mozilla's.
        private_key: The client's private key, in PEM; with `certificate_chain` only.
        certificate_chain: The client's certificate and those that lead to its authority, in PEM.

    Raises:
        TypeError: An argument is not bytes.
        ValueError: There is a key without a certificate, or a certificate without a key.
    """
    _require_bytes("root_certificates", root_certificates)
    _require_bytes("private_key", private_key)
    _require_bytes("certificate_chain", certificate_chain)
    path = os.environ.get(_ROOTS_PATH) or None
    native = _native.ChannelCredentials.ssl(root_certificates, path, private_key, certificate_chain)
    return ChannelCredentials(_ChannelSecurity(native, True, "https"))


def local_channel_credentials(
    local_connect_type: LocalConnectionType = LocalConnectionType.LOCAL_TCP,
) -> ChannelCredentials:
    """Returns credentials of connections within the machine, which need no TLS. Call credentials may be sent.

    A channel to another target than a loopback address, or a Unix socket with `LocalConnectionType.UDS`, is refused
    when it is created.
    """
    is_uds = _local_kind(local_connect_type) is LocalConnectionType.UDS
    return ChannelCredentials(_ChannelSecurity(_native.ChannelCredentials.local(is_uds), True, ""))


def _local_kind(kind: Any) -> LocalConnectionType:
    if not isinstance(kind, LocalConnectionType):
        raise TypeError(f"local_connect_type must be a LocalConnectionType, not {kind!r}")
    return kind


_INSECURE = ChannelCredentials(_ChannelSecurity(_native.ChannelCredentials.insecure(), False, "http"))


def insecure_channel_credentials() -> ChannelCredentials:
    """Returns the credentials of an insecure channel, always the same object."""
    return _INSECURE


def composite_channel_credentials(
    channel_credentials: ChannelCredentials, *call_credentials: CallCredentials
) -> ChannelCredentials:
    """Returns credentials of a channel whose calls all have call credentials, too."""
    security = _security(channel_credentials)
    added = tuple(plugin for credentials in call_credentials for plugin in _plugins(credentials))
    return ChannelCredentials(security._replace(plugins=security.plugins + added))


def compute_engine_channel_credentials(call_credentials: CallCredentials) -> ChannelCredentials:
    """Raises `NotImplementedError`: they need ALTS."""
    raise NotImplementedError(
        "compute_engine_channel_credentials needs ALTS, which is not supported; use "
        "composite_channel_credentials(ssl_channel_credentials(), call_credentials)"
    )


def alts_channel_credentials(service_accounts: Optional[Sequence[str]] = None) -> ChannelCredentials:
    """Raises `NotImplementedError`: ALTS is a protocol of Google's cloud."""
    raise NotImplementedError("ALTS is not supported; use ssl_channel_credentials")


def xds_channel_credentials(fallback_credentials: Optional[ChannelCredentials] = None) -> ChannelCredentials:
    """Returns `fallback_credentials`, or those of `ssl_channel_credentials()`.

    As in grpcio, these are used for all targets but `xds:` ones, which are not supported.
    """
    if fallback_credentials is None:
        return ssl_channel_credentials()
    _security(fallback_credentials)
    return fallback_credentials


def _security(credentials: Any) -> _ChannelSecurity:
    if not isinstance(credentials, ChannelCredentials):
        raise TypeError(f"channel credentials must be grpc.ChannelCredentials, not {type(credentials).__name__}")
    return credentials._credentials


# Calls.


def metadata_call_credentials(metadata_plugin: Any, name: Optional[str] = None) -> CallCredentials:
    """Returns call credentials from an `AuthMetadataPlugin`, or a function like it.

    Args:
        metadata_plugin: Called for each call.
        name: Name in messages; by default that of the plugin.
    """
    if not callable(metadata_plugin):
        raise TypeError(f"metadata_plugin must be callable, not {type(metadata_plugin).__name__}")
    if name is None:
        name = getattr(metadata_plugin, "__name__", type(metadata_plugin).__name__)
    return CallCredentials((_Plugin(metadata_plugin, name),))


def access_token_call_credentials(access_token: str) -> CallCredentials:
    """Returns call credentials that send `authorization: Bearer` and the token."""
    metadata = (("authorization", f"Bearer {access_token}"),)

    def add_token(context: AuthMetadataContext, callback: AuthMetadataPluginCallback) -> None:
        callback(metadata, None)

    return CallCredentials((_Plugin(add_token, "access token", is_immediate=True),))


def composite_call_credentials(*call_credentials: CallCredentials) -> CallCredentials:
    """Returns call credentials with the metadata of all given ones, in their order."""
    return CallCredentials(tuple(plugin for credentials in call_credentials for plugin in _plugins(credentials)))


def _plugins(credentials: Any) -> tuple[_Plugin, ...]:
    if not isinstance(credentials, CallCredentials):
        raise TypeError(f"call credentials must be grpc.CallCredentials, not {type(credentials).__name__}")
    return credentials._credentials


# Servers.


def ssl_server_credentials(
    private_key_certificate_chain_pairs: Sequence[tuple[bytes, bytes]],
    root_certificates: Optional[bytes] = None,
    require_client_auth: bool = False,
) -> ServerCredentials:
    """Returns credentials of TLS.

    Args:
        private_key_certificate_chain_pairs: Pairs of a private key and its certificate chain, in PEM. The first one is
            for all clients that ask for no name of the others (SNI).
        root_certificates: The certificates of the clients' authorities, in PEM.
        require_client_auth: Whether clients have to present a certificate. Otherwise they are not asked for one.

    Raises:
        TypeError: A key or certificate is not bytes.
        ValueError: There is no pair, or clients are required to authenticate without `root_certificates`.
    """
    if require_client_auth and root_certificates is None:
        raise ValueError("require_client_auth needs root_certificates to verify clients against")
    configuration = _configuration(private_key_certificate_chain_pairs, root_certificates)
    return ServerCredentials(_native.ServerCredentials.ssl(configuration, bool(require_client_auth)))


def ssl_server_certificate_configuration(
    private_key_certificate_chain_pairs: Sequence[tuple[bytes, bytes]], root_certificates: Optional[bytes] = None
) -> ServerCertificateConfiguration:
    """Returns certificates for `dynamic_ssl_server_credentials`, with arguments as of `ssl_server_credentials`."""
    return ServerCertificateConfiguration(_configuration(private_key_certificate_chain_pairs, root_certificates))


def _configuration(pairs: Any, root_certificates: Any) -> tuple[list[tuple[bytes, bytes]], Optional[bytes]]:
    _require_bytes("root_certificates", root_certificates)
    checked = [(key, chain) for key, chain in pairs or ()]
    if not checked:
        raise ValueError("private_key_certificate_chain_pairs is empty; give at least one pair")
    for key, chain in checked:
        if not isinstance(key, bytes) or not isinstance(chain, bytes):
            raise TypeError("private_key_certificate_chain_pairs must be pairs of bytes in PEM")
    return checked, root_certificates


def dynamic_ssl_server_credentials(
    initial_certificate_configuration: ServerCertificateConfiguration,
    certificate_configuration_fetcher: Callable[[], Optional[ServerCertificateConfiguration]],
    require_client_authentication: bool = False,
) -> ServerCredentials:
    """Returns credentials of TLS with certificates that can change.

    Args:
        initial_certificate_configuration: The certificates to start with.
        certificate_configuration_fetcher: Called before each handshake, on a thread of its own. Returns other
            certificates, or None to keep the current ones. They also stay if it raises, which is logged.
        require_client_authentication: Whether clients have to present a certificate.

    Raises:
        TypeError: An argument has a wrong type.
        ValueError: Clients are required to authenticate without root certificates to verify them against.
    """
    configuration = _certificates(initial_certificate_configuration)
    if not callable(certificate_configuration_fetcher):
        raise TypeError("certificate_configuration_fetcher must be callable")
    if require_client_authentication and configuration[1] is None:
        raise ValueError("require_client_authentication needs root certificates in the certificate configuration")

    def fetch() -> Any:
        try:
            fetched = certificate_configuration_fetcher()
            if fetched is None:
                return None
            certificates = _certificates(fetched)
            if require_client_authentication and certificates[1] is None:
                raise ValueError("the certificate configuration has no root certificates to verify clients against")
            return certificates
        except Exception:
            _LOGGER.exception("failed to fetch a server's certificates; the previous ones stay in use")
            return None

    native = _native.ServerCredentials.ssl(configuration, bool(require_client_authentication), fetch)
    return ServerCredentials(native)


def _certificates(configuration: Any) -> Any:
    if not isinstance(configuration, ServerCertificateConfiguration):
        raise TypeError(
            "a certificate configuration must be a grpc.ServerCertificateConfiguration, "
            f"not {type(configuration).__name__}"
        )
    return configuration._certificate_configuration


def local_server_credentials(
    local_connect_type: LocalConnectionType = LocalConnectionType.LOCAL_TCP,
) -> ServerCredentials:
    """Returns credentials of a port for clients on this machine, which need no TLS.

    The port's address must be a loopback address, or a Unix socket with `LocalConnectionType.UDS`.
    """
    is_uds = _local_kind(local_connect_type) is LocalConnectionType.UDS
    return ServerCredentials(_native.ServerCredentials.local(is_uds))


def insecure_server_credentials() -> ServerCredentials:
    """Returns the credentials of an insecure port."""
    return ServerCredentials(_native.ServerCredentials.insecure())


def alts_server_credentials() -> ServerCredentials:
    """Raises `NotImplementedError`: ALTS is a protocol of Google's cloud."""
    raise NotImplementedError("ALTS is not supported; use ssl_server_credentials")


def xds_server_credentials(fallback_credentials: ServerCredentials) -> ServerCredentials:
    """Returns `fallback_credentials`, which grpcio uses for all servers without `xds=True`."""
    native_server_credentials(fallback_credentials)
    return fallback_credentials


# For clients and servers of this package.


def native_channel_credentials(credentials: Any) -> Any:
    """Returns the native part of `ChannelCredentials`, for `_native.Channel`."""
    return _security(credentials).native


def native_server_credentials(credentials: Any) -> Any:
    """Returns the native part of `ServerCredentials`, for `_native.Server.add_port`."""
    if not isinstance(credentials, ServerCredentials):
        raise TypeError(f"server credentials must be grpc.ServerCredentials, not {type(credentials).__name__}")
    return credentials._credentials


def call_credentials_of(
    channel_credentials: Optional[ChannelCredentials], call_credentials: Optional[CallCredentials]
) -> Optional[CallCredentials]:
    """Returns all credentials of a call: those of its channel and its own. None if there are none.

    Args:
        channel_credentials: Of the channel; None for an insecure one.
        call_credentials: Of the call, or None.

    Raises:
        TypeError: `call_credentials` has a wrong type.
        CredentialsError: The channel is not secure.
    """
    security = _security(_INSECURE if channel_credentials is None else channel_credentials)
    plugins = security.plugins
    if call_credentials is not None:
        plugins += _plugins(call_credentials)
    if not plugins:
        return None
    if not security.is_secure:
        raise CredentialsError(
            StatusCode.UNAUTHENTICATED,
            "Established channel does not have a sufficient security level to transfer call credential.",
        )
    return CallCredentials(plugins)


def context_of(
    channel_credentials: Optional[ChannelCredentials], authority: str, method: Union[str, bytes]
) -> CallContext:
    """Returns the context of a call.

    Args:
        channel_credentials: Of the channel; None for an insecure one.
        authority: The `:authority` of the channel: see `authority_of`.
        method: Path of the method, `/package.Service/Method`.
    """
    security = _security(_INSECURE if channel_credentials is None else channel_credentials)
    path = method.decode() if isinstance(method, bytes) else method
    service, _, name = path.rpartition("/")
    if security.scheme == "https" and authority.endswith(":443"):
        authority = authority[: -len(":443")]
    return CallContext(f"{security.scheme}://{authority}{service}", name)


def authority_of(target: str, settings: Any) -> str:
    """Returns the `:authority` of a channel's calls.

    Args:
        target: The channel's target.
        settings: Those of `_options.channel_settings`.
    """
    own = settings.get("authority") or settings.get("tls_name")
    if own:
        return own
    if target.startswith(("unix:", "unix-abstract:")):
        return "localhost"
    for scheme in ("dns:", "ipv4:", "ipv6:", "passthrough:"):
        if target.startswith(scheme):
            target = target[len(scheme) :]
            if target.startswith("//"):
                # `//SERVER/NAME`: a name server comes first, or nothing.
                target = target[2:].partition("/")[2]
            target = target.lstrip("/").partition(",")[0]
    return target


_KEY = re.compile(r"[0-9a-z_.-]+")
_VALUE = re.compile(r"[\x20-\x7e]*")


def _checked(metadata: Any) -> Metadata:
    """Returns the metadata of a plugin as a list of pairs.

    Raises:
        CredentialsError: It is not valid.
    """
    pairs: Metadata = []
    try:
        for key, value in metadata or ():
            key = key.decode() if isinstance(key, bytes) else key
            if not key.endswith("-bin"):
                value = value.decode() if isinstance(value, bytes) else value
                if not _VALUE.fullmatch(value):
                    raise ValueError(value)
            if not _KEY.fullmatch(key):
                raise ValueError(key)
            pairs.append((key, value))
    except (AttributeError, TypeError, ValueError):
        raise CredentialsError(StatusCode.UNAVAILABLE, "Illegal metadata") from None
    return pairs


def _failed(error: BaseException) -> CredentialsError:
    return CredentialsError(StatusCode.UNAVAILABLE, f"Getting metadata from plugin failed with error: {error}")


class _Callback(AuthMetadataPluginCallback):
    """Passes the only result of a plugin on to `done`, which takes metadata and an exception."""

    def __init__(self, done: Callable[[Any, Optional[BaseException]], None]) -> None:
        self._done = done
        self._lock = threading.Lock()
        self._is_called = False

    def __call__(self, metadata: Any, error: Optional[BaseException]) -> None:
        with self._lock:
            if self._is_called:
                raise RuntimeError("the plugin has called back before, or has raised; it may call back once")
            self._is_called = True
        self._done(metadata, error)

    def fail(self, error: BaseException) -> None:
        """Passes on an exception that the plugin has raised, unless it had called back before."""
        with self._lock:
            was_called, self._is_called = self._is_called, True
        if not was_called:
            self._done(None, error)


def _run(plugin: _Plugin, context: AuthMetadataContext, callback: _Callback) -> None:
    try:
        plugin.call(context, callback)
    except Exception as error:
        _LOGGER.exception("the call credentials %s raised an exception", plugin.name)
        callback.fail(error)


def metadata_of(
    call_credentials: CallCredentials, context: AuthMetadataContext, timeout: Optional[float] = None
) -> Metadata:
    """Returns the metadata of call credentials. Their plugins run on the current thread.

    Args:
        call_credentials: Those that `call_credentials_of` returned.
        context: The call.
        timeout: Seconds to wait; forever if it is None.

    Raises:
        CredentialsError: A plugin has failed, or the time has passed.
    """
    left = _timer(timeout)
    metadata: Metadata = []
    for plugin in _plugins(call_credentials):
        result: concurrent.futures.Future = concurrent.futures.Future()
        _run(plugin, context, _Callback(_setter(result)))
        try:
            metadata += _checked(result.result(left()))
        except CredentialsError:
            raise
        except concurrent.futures.TimeoutError as error:
            if result.done() and result.exception() is not None:
                raise _failed(error) from None
            raise _late() from None
        except Exception as error:
            raise _failed(error) from None
    return metadata


def _setter(result: concurrent.futures.Future) -> Callable[[Any, Optional[BaseException]], None]:
    def done(metadata: Any, error: Optional[BaseException]) -> None:
        if error is None:
            result.set_result(metadata)
        else:
            result.set_exception(error if isinstance(error, BaseException) else RuntimeError(str(error)))

    return done


def _timer(timeout: Optional[float]) -> Callable[[], Optional[float]]:
    """Returns a function that returns the seconds that are left of a timeout; None without one."""
    if timeout is None:
        return lambda: None
    deadline = time.monotonic() + timeout
    return lambda: max(0.0, deadline - time.monotonic())


def _late() -> CredentialsError:
    return CredentialsError(StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded")


async def metadata_of_async(
    call_credentials: CallCredentials, context: AuthMetadataContext, timeout: Optional[float] = None
) -> Metadata:
    """Returns the metadata of call credentials. Their plugins run on other threads, since they may block.

    Cancelling gives up waiting; a plugin that has started goes on. See `metadata_of` for the arguments.

    Raises:
        CredentialsError: A plugin has failed, or the time has passed.
    """
    left = _timer(timeout)
    metadata: Metadata = []
    for plugin in _plugins(call_credentials):
        result: concurrent.futures.Future = concurrent.futures.Future()
        callback = _Callback(_setter(result))
        if plugin.is_immediate:
            _run(plugin, context, callback)
        else:
            _pool().submit(contextvars.copy_context().run, _run, plugin, context, callback)
        try:
            # Shielded: a cancelled future would make the plugin's callback raise.
            metadata += _checked(await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(result)), left()))
        except (CredentialsError, asyncio.CancelledError):
            raise
        except asyncio.TimeoutError as error:
            if result.done() and result.exception() is not None:
                raise _failed(error) from None
            raise _late() from None
        except Exception as error:
            raise _failed(error) from None
    return metadata


#: Threads that run plugins for coroutines. A call whose plugin blocks takes one.
_THREADS = 16
_threads: Optional[concurrent.futures.ThreadPoolExecutor] = None


def _pool() -> concurrent.futures.ThreadPoolExecutor:
    global _threads
    if _threads is None:
        _threads = concurrent.futures.ThreadPoolExecutor(_THREADS, "thalweg-credentials")
    return _threads


def _after_fork_in_child() -> None:
    # Its threads are the parent's.
    global _threads
    _threads = None


os.register_at_fork(after_in_child=_after_fork_in_child)
