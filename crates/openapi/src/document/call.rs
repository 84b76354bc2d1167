//! A callable binding, from which an operation is built.

use thalweg_protobuf::Method;

use crate::info::Info;
use crate::rules::{Binding, BodyMapping};

/// The HTTP methods of OpenAPI 3.1, as it writes them.
const METHODS: [&str; 8] = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];

/// A binding and its context.
pub(super) struct Call<'r> {
    pub(super) info: &'r Info,
    pub(super) binding: &'r Binding,
    pub(super) method: Method<'r>,
    /// The operation id.
    pub(super) id: String,
}

impl Call<'_> {
    /// Returns the HTTP method, or `None` if OpenAPI does not support it.
    pub(super) fn http_method(&self) -> Option<&'static str> {
        let Some(method) = self.binding.http_method() else {
            return Some(if self.binding.body() == BodyMapping::Absent { "get" } else { "post" });
        };
        METHODS.into_iter().find(|known| known.eq_ignore_ascii_case(method.as_str()))
    }
}
