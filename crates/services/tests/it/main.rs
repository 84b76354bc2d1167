//! The services, asked over real sockets.
