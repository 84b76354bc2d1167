//! The server that a call was sent to: [`CallPeer`].

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The server that a call was sent to, set as [`CallOptions::peer`](crate::CallOptions::peer). Clones share it.
///
/// ```
/// # async fn example(channel: thalweg_engine::Channel) {
/// use thalweg_engine::{CallOptions, CallPeer};
///
/// let peer = CallPeer::new();
/// let options = CallOptions::default().peer(&peer);
/// // Calls with these options, one after the other.
/// println!("{:?}", peer.address());
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct CallPeer(Arc<Mutex<Option<Arc<str>>>>);

impl CallPeer {
    /// Creates a cell for the calls of one caller: calls at the same time would overwrite each other's server.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the address of the server that the last attempt was sent to, as named in messages; `None` if no call was
    /// sent. With hedging, it is the server that answered, or else the last one that was tried.
    pub fn address(&self) -> Option<Arc<str>> {
        self.server().clone()
    }

    /// Forgets the server, before another call.
    pub fn clear(&self) {
        *self.server() = None;
    }

    pub(crate) fn note(&self, peer: &Arc<str>) {
        *self.server() = Some(Arc::clone(peer));
    }

    fn server(&self) -> MutexGuard<'_, Option<Arc<str>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
