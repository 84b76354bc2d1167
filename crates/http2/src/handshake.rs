//! The exchange of the first SETTINGS (RFC 9113 §3.4, §6.5.3).

use std::time::Instant;

/// State of the exchange of the first SETTINGS.
#[derive(Debug)]
pub(crate) struct Handshake {
    /// The peer's first SETTINGS have arrived.
    pub(crate) settings_received: bool,
    pub(crate) acknowledgement: Acknowledgement,
}

/// The acknowledgement of our SETTINGS.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Acknowledgement {
    Awaited {
        /// `None` if the time is unrepresentable.
        deadline: Option<Instant>,
    },
    /// Our SETTINGS are in effect.
    Received,
}

impl Handshake {
    pub(crate) fn new(deadline: Option<Instant>) -> Handshake {
        Handshake { settings_received: false, acknowledgement: Acknowledgement::Awaited { deadline } }
    }

    pub(crate) fn is_acknowledged(&self) -> bool {
        self.acknowledgement == Acknowledgement::Received
    }

    /// Returns the deadline of the acknowledgement.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match self.acknowledgement {
            Acknowledgement::Awaited { deadline } => deadline,
            Acknowledgement::Received => None,
        }
    }
}
