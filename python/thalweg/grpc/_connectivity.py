"""Connectivity of channels: subscriptions, and futures of their readiness."""

import threading
import time
from typing import Any, Callable, Dict, List, Optional

from thalweg import _native
from thalweg.grpc import _threads
from thalweg.grpc._interfaces import Future
from thalweg.grpc._types import ChannelConnectivity, FutureCancelledError, FutureTimeoutError

#: The states by number.
_STATES: Dict[int, ChannelConnectivity] = {state.value[0]: state for state in ChannelConnectivity}
#: The number of no state.
_NONE = -1


class _Subscription:
    """A callback that gets the states of a channel: on the thread for callbacks, if it is the application's."""

    def __init__(self, channel: _native.Channel, callback: Callable[[ChannelConnectivity], Any]):
        self.callback = callback
        self._completions = _threads.events if isinstance(callback, _Listener) else _threads.callbacks
        self._channel = channel
        self._lock = threading.Lock()
        self._key: Optional[int] = None
        self._is_over = False

    def watch(self, last: int) -> None:
        """Waits for another state than `last`."""
        with self._lock:
            if not self._is_over:
                self._key = self._channel.on_state_change(self._completions(), last, self._changed)

    def end(self) -> None:
        with self._lock:
            self._is_over = True
            key, self._key = self._key, None
        if key is not None:
            self._channel.forget_state_change(key)

    def _changed(self, state: int) -> None:
        with self._lock:
            if self._is_over:
                return
        try:
            self.callback(_STATES[state])
        except Exception as error:
            _threads.log_callback_error(error)
        if state != ChannelConnectivity.SHUTDOWN.value[0]:
            self.watch(state)


class Subscriptions:
    """The subscriptions of a channel."""

    def __init__(self, channel: _native.Channel):
        self._channel = channel
        self._lock = threading.Lock()
        self._all: List[_Subscription] = []
        self._is_closed = False

    def add(self, callback: Callable[[ChannelConnectivity], Any], try_to_connect: bool) -> None:
        """Calls `callback` with the state of the channel, now and when it changes. A closed channel has no news."""
        subscription = _Subscription(self._channel, callback)
        with self._lock:
            if self._is_closed:
                return
            self._all.append(subscription)
        if try_to_connect:
            self._channel.state(True)
        subscription.watch(_NONE)

    def remove(self, callback: Callable[[ChannelConnectivity], Any]) -> None:
        """Ends the first subscription with this callback."""
        with self._lock:
            found = next((it for it in self._all if it.callback == callback), None)
            if found is None:
                return
            self._all.remove(found)
        found.end()

    def close(self) -> None:
        """Ends all subscriptions, and accepts no more."""
        with self._lock:
            self._is_closed = True
            subscriptions, self._all = self._all, []
        for subscription in subscriptions:
            subscription.end()


class _Listener:
    """Ends a future when its channel is ready. The application may wait for the future in a callback."""

    def __init__(self, future: "_ChannelReadyFuture"):
        self._future = future

    def __call__(self, state: ChannelConnectivity) -> None:
        if state is ChannelConnectivity.READY:
            self._future.end()


class _ChannelReadyFuture(Future):
    """The time at which a channel becomes ready."""

    def __init__(self, channel):
        self._channel = channel
        self._listener = _Listener(self)
        self._condition = threading.Condition()
        self._is_ready = False
        self._is_cancelled = False
        self._callbacks: Optional[list] = []

    def start(self) -> None:
        self._channel.subscribe(self._listener, try_to_connect=True)

    def end(self) -> None:
        """Notes that the channel is ready, and has the thread for callbacks run those of this future."""
        for callback in self._end(is_cancelled=False) or ():
            _threads.callbacks().push(callback, self)

    def _end(self, is_cancelled: bool) -> Optional[list]:
        """Ends the future and returns its callbacks. None: it had ended."""
        with self._condition:
            if self._is_ready or self._is_cancelled:
                return None
            self._is_ready, self._is_cancelled = not is_cancelled, is_cancelled
            callbacks, self._callbacks = self._callbacks, None
            self._condition.notify_all()
        self._channel.unsubscribe(self._listener)
        return callbacks

    def _wait(self, timeout: Optional[float]) -> None:
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._condition:
            while not self._is_ready:
                if self._is_cancelled:
                    raise FutureCancelledError()
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    raise FutureTimeoutError()
                self._condition.wait(left)

    def cancel(self):
        callbacks = self._end(is_cancelled=True)
        for callback in callbacks or ():
            try:
                callback(self)
            except Exception as error:
                _threads.log_callback_error(error)
        return callbacks is not None

    def cancelled(self):
        with self._condition:
            return self._is_cancelled

    def running(self):
        return not self.done()

    def done(self):
        with self._condition:
            return self._is_ready or self._is_cancelled

    def result(self, timeout=None):
        self._wait(timeout)

    def exception(self, timeout=None):
        self._wait(timeout)

    def traceback(self, timeout=None):
        self._wait(timeout)

    def add_done_callback(self, fn):
        with self._condition:
            if self._callbacks is not None:
                self._callbacks.append(fn)
                return
        fn(self)


def channel_ready_future(channel) -> Future:
    """Connects `channel` and returns a future that is done when it is ready. Its result is None."""
    future = _ChannelReadyFuture(channel)
    future.start()
    return future
