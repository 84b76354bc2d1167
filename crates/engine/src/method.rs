//! Names of methods, as called by clients.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::grpc::content_type;

/// One method of a service: `/package.Service/Method`.
///
/// Generated clients store them in `static`s; tools create them at run time with [`Method::from_path`].
///
/// ```
/// # use thalweg_engine as thalweg;
/// static SAY_HELLO: thalweg::Method = thalweg::Method::new("/helloworld.Greeter/SayHello");
/// assert_eq!(SAY_HELLO.service(), "helloworld.Greeter");
/// assert_eq!(SAY_HELLO.name(), "SayHello");
/// ```
#[derive(Debug)]
pub struct Method {
    path: Cow<'static, str>,
    /// Empty if unspecified.
    content_subtype: &'static str,
    has_side_effects: bool,
    /// Identifies the method in the caches of channels; 0 until first used.
    id: AtomicU32,
}

impl Clone for Method {
    /// Clones the method with its identity in the caches of channels.
    fn clone(&self) -> Self {
        let Self { content_subtype, has_side_effects, .. } = *self;
        Self { path: self.path.clone(), content_subtype, has_side_effects, id: AtomicU32::new(self.id()) }
    }
}

impl Method {
    /// Creates a method from `path`, which must be `/service/method`. Unlike [`Method::from_path`], it does not check
    /// it.
    pub const fn new(path: &'static str) -> Self {
        Self::of_path(Cow::Borrowed(path))
    }

    /// Sets the message format for methods that do not use Protobuf. With `json`, calls have the content type
    /// `application/grpc+json`.
    ///
    /// ```
    /// # use thalweg_engine as thalweg;
    /// static FIND: thalweg::Method = thalweg::Method::new("/quotes.Quotes/Find").with_content_subtype("json");
    /// assert_eq!(FIND.content_subtype(), "json");
    /// ```
    ///
    /// # Panics
    /// Panics if `subtype` is not a valid content-subtype token. For a `static` that is a compile-time error.
    #[must_use]
    pub const fn with_content_subtype(mut self, subtype: &'static str) -> Self {
        assert!(
            content_type::is_legal_subtype(subtype),
            "a content subtype can only have letters, digits and - . _ +"
        );
        self.content_subtype = subtype;
        // The method now has other request headers.
        self.id = AtomicU32::new(0);
        self
    }

    /// Marks the method as free of side effects: `idempotency_level = NO_SIDE_EFFECTS` in its `.proto` file. Some
    /// protocols then call it by GET.
    ///
    /// ```
    /// # use thalweg_engine as thalweg;
    /// static FIND: thalweg::Method = thalweg::Method::new("/quotes.Quotes/Find").without_side_effects();
    /// assert!(!FIND.has_side_effects());
    /// ```
    #[must_use]
    pub const fn without_side_effects(mut self) -> Self {
        self.has_side_effects = false;
        self
    }

    /// Parses a path given at run time: `/service/method`, `service/method` or `service.method`.
    pub fn from_path(path: &str) -> Result<Self, InvalidPath> {
        let invalid = || InvalidPath { path: path.to_owned() };
        let bare = path.strip_prefix('/').unwrap_or(path);
        let (service, name) = bare.split_once('/').or_else(|| bare.rsplit_once('.')).ok_or_else(invalid)?;
        let legal = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_graphic() && b != b'/');
        if !legal(service) || !legal(name) {
            return Err(invalid());
        }
        Ok(Self::of_path(Cow::Owned(format!("/{service}/{name}"))))
    }

    /// Creates a method for any HTTP path, gRPC or not.
    pub(crate) fn at(path: &str) -> Self {
        Self::of_path(Cow::Owned(path.to_owned()))
    }

    const fn of_path(path: Cow<'static, str>) -> Self {
        Self { path, content_subtype: "", has_side_effects: true, id: AtomicU32::new(0) }
    }

    /// Returns `/package.Service/Method`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the subtype after `application/grpc+` in content types; empty if unspecified.
    pub fn content_subtype(&self) -> &'static str {
        self.content_subtype
    }

    /// Returns whether the method may have side effects. True by default.
    pub fn has_side_effects(&self) -> bool {
        self.has_side_effects
    }

    /// Returns the path for storage.
    pub(crate) fn path_to_keep(&self) -> Cow<'static, str> {
        self.path.clone()
    }

    /// Returns the path if it is a compile-time constant.
    #[cfg(feature = "opentelemetry")]
    pub(crate) fn static_path(&self) -> Option<&'static str> {
        match self.path {
            Cow::Borrowed(path) => Some(path),
            Cow::Owned(_) => None,
        }
    }

    /// Returns `package.Service`.
    pub fn service(&self) -> &str {
        self.path.trim_start_matches('/').split_once('/').map_or("", |(service, _)| service)
    }

    /// Returns `Method`.
    pub fn name(&self) -> &str {
        self.path.rsplit_once('/').map_or("", |(_, name)| name)
    }

    /// Returns the method's identifier, unique in the process.
    #[inline]
    pub(crate) fn id(&self) -> u32 {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        match self.id.load(Ordering::Relaxed) {
            0 => {
                let fresh = NEXT.fetch_add(1, Ordering::Relaxed);
                match self.id.compare_exchange(0, fresh, Ordering::Relaxed, Ordering::Relaxed) {
                    Ok(_) => fresh,
                    Err(known) => known,
                }
            }
            known => known,
        }
    }
}

/// Error for a path that is not a method's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid method `{path}`; use package.Service/Method")]
pub struct InvalidPath {
    path: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        let check = |given: &str, path: Option<&str>| {
            assert_eq!(Method::from_path(given).ok().as_ref().map(Method::path), path, "{given}");
        };
        check("/a.B/C", Some("/a.B/C"));
        check("a.B/C", Some("/a.B/C"));
        check("a.B.C", Some("/a.B/C"));
        check("B/C", Some("/B/C"));
        check("C", None);
        check("/a.B/", None);
        check("/a.B/C/D", None);
        check("a b/C", None);
        check("", None);
    }
}
