//! Services that are known at run time only.
//!
//! Descriptors come from `.proto` files and descriptor sets ([`files`]), or from the server itself, by gRPC's
//! reflection ([`Reflection`]). Either way a [`Catalogue`] answers which services there are, and gives a
//! [`Schema`](thalweg_protobuf::Schema) that has what is asked for. [`MethodName`] is a method as people write it.

mod catalogue;
pub mod files;
mod method_name;
mod near;
mod reflection;

pub use catalogue::Catalogue;
pub use method_name::{MethodName, MethodNameError};
pub use near::{listed, near};
pub use reflection::{Reflection, ReflectionError};
