//! Simulates network conditions in user space.
//!
//! A [`Link`] listens at one address, and opens a connection to another one for each that it accepts. Forwarded bytes
//! take a one-way delay, stay in order, and are limited by a rate. At run time, a link can stall, cut connections and
//! refuse new ones. It works for any protocol, over TCP and UNIX domain sockets on either side, without privileges.
//!
//! ```
//! use std::io::{Read, Write};
//! use std::net::{TcpListener, TcpStream};
//! use std::time::{Duration, Instant};
//! use thalweg_link::{Link, LinkOptions};
//!
//! let server = TcpListener::bind("127.0.0.1:0")?;
//! let options = LinkOptions::new("127.0.0.1:0".parse()?, server.local_addr()?.into());
//! let link = Link::start(options.delay(Duration::from_millis(2)))?;
//!
//! let started = Instant::now();
//! let mut client = TcpStream::connect(link.address().to_string())?;
//! client.write_all(b"ping")?;
//! let (mut accepted, _) = server.accept()?;
//! accepted.read_exact(&mut [0; 4])?;
//! // The handshake takes a round trip, the bytes another half.
//! assert!(started.elapsed() >= Duration::from_millis(6));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How it works
//!
//! Each link is one thread, which sleeps in `epoll_wait`; a timerfd wakes it when something is due. Each read gets a
//! release time: its arrival, or with a [rate](LinkOptions::rate) the end of its transmission, plus the one-way delay.
//! It is never earlier than that of the bytes before. The thread only spins if [configured](LinkOptions::spin). Its
//! lateness is [measured](Stats::lateness_ns).

#![forbid(unsafe_code)]

#[cfg(not(target_os = "linux"))]
compile_error!("thalweg-link supports Linux only");

mod address;
mod command;
mod connection;
mod direction;
mod link;
mod listening_socket;
mod observe;
mod options;
mod queue;
mod rate;
mod shape;
mod stats;
mod thread;

pub use address::{Address, InvalidAddress};
pub use command::{Command, ParseCommandError};
pub use link::{Link, LinkError};
pub use options::{Cut, Jitter, LinkOptions, Loss, ParseOptionError, StallPlan};
pub use rate::{ParseRateError, Rate};
pub use stats::{ConnectionCounts, DirectionStats, Distribution, Idle, Stats, Thread};
