//! `grpc.reflection.v1.ServerReflection` and `v1alpha`, gRPC [server reflection]: a server's services and their
//! descriptors. Tools such as grpcurl then need no .proto files.
//!
//! Descriptors come from an encoded `google.protobuf.FileDescriptorSet`, written by the build script:
//!
//! ```ignore
//! let out = std::path::PathBuf::from(std::env::var("OUT_DIR")?);
//! thalweg_build::configure()
//!     .file_descriptor_set_path(out.join("shop.bin"))
//!     .compile_protos(&["proto/shop.proto"], &["proto"])?;
//! ```
//!
//! The server uses it:
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
//! The server's own services are listed. Services of this crate are described automatically. Descriptors include
//! comments if the set does; omit source info to hide them.
//!
//! [server reflection]: https://github.com/grpc/grpc/blob/master/doc/server-reflection.md

mod data;
mod descriptors;
mod error;
pub mod pb;
mod responses;
mod service;

pub use error::DescriptorError;
pub use service::{Reflection, ReflectionBuilder};
