//! A way to call a method, of which an operation is made.

use thalweg_protobuf::Method;

use crate::info::Info;
use crate::rules::{Binding, Body};

/// The methods of HTTP that OpenAPI 3.1 knows, as it writes them.
const METHODS: [&str; 8] = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];

/// A binding, and all that is known of it.
pub(super) struct Call<'r> {
    pub(super) info: &'r Info,
    pub(super) binding: &'r Binding,
    pub(super) method: Method<'r>,
    /// The name of the operation.
    pub(super) id: String,
}

impl Call<'_> {
    /// `None` for one that OpenAPI does not know.
    pub(super) fn http_method(&self) -> Option<&'static str> {
        let Some(method) = self.binding.http_method() else {
            return Some(if self.binding.body() == Body::Absent { "get" } else { "post" });
        };
        METHODS.into_iter().find(|known| known.eq_ignore_ascii_case(method.as_str()))
    }
}
