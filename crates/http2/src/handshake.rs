//! SETTINGS that both sides send first (RFC 9113 §3.4, §6.5.3).

use std::time::Instant;

/// How far the exchange of the first SETTINGS has come.
#[derive(Debug)]
pub(crate) struct Handshake {
    /// The peer's first SETTINGS have come.
    pub(crate) settings_received: bool,
    pub(crate) acknowledgement: Acknowledgement,
}

/// The acknowledgement of our SETTINGS.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Acknowledgement {
    Awaited {
        /// `None`: a time beyond all times is no deadline.
        deadline: Option<Instant>,
    },
    /// Our SETTINGS hold.
    Received,
}

impl Handshake {
    pub(crate) fn new(deadline: Option<Instant>) -> Handshake {
        Handshake { settings_received: false, acknowledgement: Acknowledgement::Awaited { deadline } }
    }

    pub(crate) fn is_acknowledged(&self) -> bool {
        self.acknowledgement == Acknowledgement::Received
    }

    /// When the acknowledgement must have come.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match self.acknowledgement {
            Acknowledgement::Awaited { deadline } => deadline,
            Acknowledgement::Received => None,
        }
    }
}
