//! What keeps a comparison from being measured.

/// Why it cannot begin, or go on.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// Another program would be measured.
    #[error(
        "{target} is already in use, and {name} should listen there; stop that process, or use another address"
    )]
    Taken {
        /// Which side.
        name: String,
        /// Where.
        target: String,
    },
    /// A server never came to listen.
    #[error("the server of {name}, `{command}`, does not listen at {target}: {why}")]
    Start {
        /// Which side.
        name: String,
        /// Its command.
        command: String,
        /// Where it was to listen.
        target: String,
        /// Why it does not, or the end of what it said.
        why: String,
    },
    /// A server ended by itself.
    #[error("the server of {name} ended while it was measured: {why}")]
    Ended {
        /// Which side.
        name: String,
        /// How, and the end of what it said.
        why: String,
    },
    /// The client did not say what it found.
    #[error("the load on {name} failed: {why}")]
    Client {
        /// Which side.
        name: String,
        /// What it said.
        why: String,
    },
    /// A revision could not be built.
    #[error("`{command}` failed for {name}: {why}")]
    Build {
        /// Which revision.
        name: String,
        /// What was to build it.
        command: String,
        /// The end of what it said.
        why: String,
    },
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
}
