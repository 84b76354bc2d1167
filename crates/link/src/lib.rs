//! A network of one's choosing, in user space.
//!
//! A [`Link`] listens at one address and opens a connection to another one for each that it accepts. What it forwards
//! takes a one-way time, in order, and as much as a rate permits; it can stall, cut connections, and refuse new ones,
//! while it runs. It works for any protocol, over TCP and UNIX domain sockets on either side, without privileges.
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
//! let mut client = TcpStream::connect(link.address().to_string())?;
//! let sent = Instant::now();
//! client.write_all(b"ping")?;
//! let (mut accepted, _) = server.accept()?;
//! accepted.read_exact(&mut [0; 4])?;
//! // The handshake takes a round trip, and the bytes half a one.
//! assert!(sent.elapsed() >= Duration::from_millis(6));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How it works
//!
//! Each link is one thread, which sleeps in `epoll_wait`; a timerfd wakes it when something is due. Every read gets the
//! time at which it may leave: when it arrived, or when the transmitter is done with what came before (if there is a
//! [rate](LinkOptions::rate)), and the one-way time from then; never earlier than what came before it. The thread does
//! not spin unless it is [told to](LinkOptions::spin), and how late it was is [measured](Stats::lateness_ns).

#![forbid(unsafe_code)]

#[cfg(not(target_os = "linux"))]
compile_error!("thalweg-link wants Linux: epoll and timerfd");

mod address;
mod connection;
mod control;
mod direction;
mod door;
mod link;
mod observe;
mod options;
mod queue;
mod rate;
mod shape;
mod stats;
mod thread;

pub use address::{Address, InvalidAddress};
pub use control::{Control, NotAControl};
pub use link::{Link, LinkError};
pub use options::{Cut, Jitter, LinkOptions, Loss, Misunderstood, StallPlan};
pub use rate::{NotARate, Rate};
pub use stats::{ConnectionCounts, DirectionStats, Distribution, Idle, Stats, Thread};
