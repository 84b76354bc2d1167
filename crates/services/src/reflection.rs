//! `grpc.reflection.v1.ServerReflection`, and `v1alpha`, gRPC's [server reflection]: which services a server has, and
//! the descriptors of all that they use. grpcurl and its like need no .proto files then.
//!
//! The descriptors come from an encoded `google.protobuf.FileDescriptorSet`, which the build script writes:
//!
//! ```ignore
//! let out = std::path::PathBuf::from(std::env::var("OUT_DIR")?);
//! thalweg_build::configure()
//!     .file_descriptor_set_path(out.join("shop.bin"))
//!     .compile_protos(&["proto/shop.proto"], &["proto"])?;
//! ```
//!
//! and the server takes:
//!
//! ```no_run
//! # macro_rules! include_shop { ("shop") => { &[] as &'static [u8] } }
//! # use include_shop as include_file_descriptor_set;
//! use thalweg::Server;
//! use thalweg_services::reflection::{DescriptorError, Reflection};
//!
//! # fn example() -> Result<(), DescriptorError> {
//! // thalweg::include_file_descriptor_set!
//! let reflection = Reflection::builder().descriptors(include_file_descriptor_set!("shop")).build()?;
//! let server = Server::builder().add_service(reflection);
//! # Ok(()) }
//! ```
//!
//! The services that are listed are those that the server has. Those of this crate are described without being asked
//! for. Comments are in the descriptors if they are in the set; whoever does not want them told leaves out the source
//! info.
//!
//! [server reflection]: https://github.com/grpc/grpc/blob/master/doc/server-reflection.md

mod answers;
mod descriptors;
mod error;
mod known;
pub mod pb;
mod service;

pub use error::DescriptorError;
pub use service::{Reflection, ReflectionBuilder};
