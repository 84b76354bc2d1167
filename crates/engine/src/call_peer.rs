//! The server that a call was sent to: [`CallPeer`].

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The server that a call was sent to, set as [`CallOptions::peer`](crate::CallOptions::peer). Clones share it.
///
/// ```
/// # async fn example(channel: thalweg_engine::Channel) {
/// use thalweg_engine::{CallOptions, CallPeer};
///
/// let peer = CallPeer::new();
/// let options = CallOptions::default().peer(&peer);
/// // Calls with these options, one after the other.
/// println!("attempt {}, to {:?}", peer.attempts(), peer.address());
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct CallPeer(Arc<Mutex<Option<SentTo>>>);

/// The last attempt at the call.
#[derive(Debug)]
struct SentTo {
    address: Arc<str>,
    deadline: Option<Instant>,
    /// Number of attempts so far.
    attempts: u32,
}

impl CallPeer {
    /// Creates a cell for the calls of one caller: calls at the same time would overwrite each other's server.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the address of the server that the last attempt was sent to, as named in messages; `None` if no call was
    /// sent. With hedging, it is the server that answered, or else the last one that was tried.
    pub fn address(&self) -> Option<Arc<str>> {
        self.server().as_ref().map(|server| Arc::clone(&server.address))
    }

    /// Returns when the timeout of the endpoint ends that the last attempt was sent to, counted from its sending: the
    /// [`CallOptions::timeout`](crate::CallOptions) of the configuration that created it
    /// ([`ChannelConfig::endpoint`](crate::ChannelConfig::endpoint)). `None` if it has none, or no call was sent. The
    /// engine does not apply this timeout.
    pub fn endpoint_deadline(&self) -> Option<Instant> {
        self.server().as_ref()?.deadline
    }

    /// Returns the same as [`address`](Self::address), and forgets it.
    pub fn take(&self) -> Option<Arc<str>> {
        self.server().take().map(|server| server.address)
    }

    /// Returns the number of attempts, retries and hedged attempts included; 0 if no call was sent. The message of a
    /// failed call names the attempt only if the error arose on this side: a server's message is not changed.
    pub fn attempts(&self) -> u32 {
        self.server().as_ref().map_or(0, |sent| sent.attempts)
    }

    /// Forgets the server, before another call.
    pub fn clear(&self) {
        *self.server() = None;
    }

    /// Notes that an attempt is sent now to an endpoint with this timeout. `attempts` is the number of attempts so far.
    pub(crate) fn note(&self, address: &Arc<str>, timeout: Option<Duration>, attempts: u32) {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        *self.server() = Some(SentTo { address: Arc::clone(address), deadline, attempts });
    }

    fn server(&self) -> MutexGuard<'_, Option<SentTo>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
