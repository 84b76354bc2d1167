//! Generates Rust clients and servers for Thalweg from `.proto` files in `build.rs`, without `protoc`.
//!
//! `build.rs` compiles a file:
//!
//! ```no_run
//! fn main() -> Result<(), thalweg_build::Error> {
//!     thalweg_build::compile_protos("proto/helloworld.proto")
//! }
//! ```
//!
//! The crate includes the result:
//!
//! ```ignore
//! pub mod helloworld {
//!     thalweg::include_proto!("helloworld");
//! }
//! use helloworld::{HelloRequest, greeter_client::GreeterClient, greeter_server::{Greeter, GreeterServer}};
//! ```
//!
//! [`configure`] sets options: several files, include directories, attributes, external types. Its methods are those of
//! `tonic_prost_build::configure`, so most build scripts only change a name.
//!
//! Thalweg's own front end reads `.proto` files; it is tested to accept and reject the same files as protoc 36.
//! [prost-build] generates messages, and this crate generates services. Errors have file, line and column, and
//! show the line.
//!
//! For protoc and buf, `cargo install --git https://github.com/thalweg/thalweg thalweg-build` installs the plugin
//! `protoc-gen-thalweg`. Its options are the methods of [`Builder`].
//!
//! [prost-build]: https://docs.rs/prost-build
//!
//! # What is generated
//!
//! Each Protobuf package becomes a Rust file of the same name (`_.rs` without a package). For `service Greeter` it has
//! the messages and two modules:
//!
//! - `greeter_client`: `GreeterClient` with a function for each method, whose future is `Send`, and a static
//!   `thalweg::Method` for each method (`SAY_HELLO`) for calls on the channel itself;
//! - `greeter_server`: the trait `Greeter` to implement, and `GreeterServer`, which turns it into a service.
//!
//! [`Builder::embed_descriptors`] adds a static `FILE_DESCRIPTOR_SET` for JSON, reflection and other uses at run time.
//!
//! Comments of the `.proto` file become documentation. Deprecated methods and services are `#[deprecated]` in the
//! client. Reserved names get an underscore (`rpc New` becomes `new_`), and keywords are raw identifiers (`r#type`).
//!
//! Generated code depends on `thalweg` only ([`Builder::prost_path`] changes where it finds prost). Well-known types
//! other than the wrappers and `Empty` need `prost-types`.

mod aliases;
#[cfg(feature = "buffa")]
mod buffa;
mod builder;
mod client;
mod collisions;
mod descriptors;
mod editions;
mod error;
mod name;
mod server;
mod service;
mod stubs;

use std::path::Path;

pub use prost_build::Config;
pub use prost_types::FileDescriptorSet;

pub use crate::builder::{Builder, configure};
pub use crate::error::{Error, SourceError};

/// Compiles one `.proto` file with the default options; its folder is the include directory.
///
/// Imports are also resolved in that folder. [`configure`] offers more options.
pub fn compile_protos(proto: impl AsRef<Path>) -> Result<(), Error> {
    let proto = proto.as_ref();
    // The parent of a bare file name is the empty path, which would match no file.
    let folder = proto.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    configure().compile_protos(&[proto], &[folder])
}
