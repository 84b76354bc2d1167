//! Settings of servers beyond tonic's interface: [`ServerExt`].

use std::time::Duration;

use super::builder::Server;

/// Settings of a [`Server`] beyond tonic's. Without them it behaves like tonic's.
pub trait ServerExt: sealed::Sealed {
    /// Sets how long calls may continue after the shutdown signal, before they are cancelled; unlimited by default.
    #[must_use]
    fn shutdown_grace(self, grace: Duration) -> Self;
}

impl<L> ServerExt for Server<L> {
    fn shutdown_grace(self, grace: Duration) -> Self {
        self.with_shutdown_grace(grace)
    }
}

mod sealed {
    pub trait Sealed {}

    impl<L> Sealed for super::Server<L> {}
}
