//! Services and methods known only at run time.
//!
//! Descriptors come from `.proto` files and descriptor sets ([`files`]), or from server reflection ([`Reflection`]). A
//! [`Catalogue`] lists services and returns a [`Schema`](thalweg_protobuf::Schema) with the requested ones.
//! [`MethodName`] parses `package.Service/Method`, and [`look_up`] finds the method for a [call](ResolvedMethod::call).
//! [`list`] and [`describe`] show services and types, and [`completions`] completes names.
//!
//! [`texts`], [`delimited`] and [`metadata`] parse messages and metadata from text and pipes.
//!
//! ```
//! use thalweg_dynamic::{Catalogue, MethodName};
//! use thalweg_protobuf::{Schema, sources};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let text = "syntax = 'proto3'; package shop; message Order {} service Orders { rpc Get(Order) returns (Order); }";
//! let set = sources::compile(&["shop.proto"], move |name| (name == "shop.proto").then(|| text.to_owned()))?;
//! let schema = Schema::from_descriptor_set(&set)?;
//! let mut catalogue = Catalogue::Files { schema, set };
//! assert_eq!(catalogue.services().await?, ["shop.Orders"]);
//!
//! let name: MethodName = "shop.Orders/Get".parse()?;
//! let schema = catalogue.schema_of(name.service()).await?.ok_or("no such service")?;
//! let service = schema.service(name.service()).ok_or("no such service")?;
//! let method = service.method(name.method()).ok_or("no such method")?;
//! assert_eq!(method.input().full_name(), "shop.Order");
//! # Ok(()) }
//! ```

mod call;
mod catalogue;
pub mod delimited;
mod describe;
pub mod files;
mod message;
pub mod metadata;
mod method_name;
mod names;
mod reflection;
mod requests;
mod resolved_method;
mod responses;
mod status;
mod suggestions;
pub mod texts;

pub use call::{Outcome, Received};
pub use catalogue::Catalogue;
pub use describe::{describe, list};
pub use message::message;
pub use method_name::{MethodName, MethodNameError};
pub use names::{NameKind, completions};
pub use reflection::{Reflection, ReflectionError, ReflectionLimits};
pub use requests::{RequestError, RequestSource};
pub use resolved_method::{LookUpError, ResolvedMethod, look_up};
pub use responses::ResponsePrinter;
pub use status::{Detail, details, details_by, status_json};
pub use suggestions::suggest;
