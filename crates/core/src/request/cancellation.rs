//! [`CancellationHandle`]: cancels a call that its request is for.

use tokio_util::sync::CancellationToken;

use super::value::Request;

impl<T> Request<T> {
    /// Returns a handle that cancels the call.
    pub fn cancellation_handle(&mut self) -> CancellationHandle {
        self.extensions_mut().get_or_insert_with(CancellationHandle::new).clone()
    }

    /// Takes the handle that cancels the call, if there is one.
    #[doc(hidden)]
    pub fn remove_cancellation_handle(&mut self) -> Option<CancellationHandle> {
        self.extensions_mut().remove()
    }
}

/// Cancels the call of a [`Request`].
#[derive(Clone, Debug)]
pub struct CancellationHandle {
    token: CancellationToken,
}

impl CancellationHandle {
    fn new() -> Self {
        Self { token: CancellationToken::new() }
    }

    /// Cancels the call. Calls that have ended are not affected.
    pub fn cancel(self) {
        self.token.cancel();
    }

    /// Returns the token to wait for.
    #[doc(hidden)]
    pub fn into_token(self) -> CancellationToken {
        self.token
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_of_a_request_cancel_the_same_call() {
        let mut request = Request::new(());
        assert!(request.remove_cancellation_handle().is_none());
        let handle = request.cancellation_handle();
        let other = request.cancellation_handle().into_token();
        let token = request.remove_cancellation_handle().unwrap().into_token();
        assert!(!token.is_cancelled());
        handle.cancel();
        assert!(token.is_cancelled() && other.is_cancelled());
    }
}
