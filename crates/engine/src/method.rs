//! The name of a method, as clients call it.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::grpc::content_type;

/// One method of a service: `/package.Service/Method`.
///
/// Generated clients keep theirs in `static`s; tools make them at run time with [`Method::from_path`].
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
    /// Empty if nothing is said of it.
    content_subtype: &'static str,
    has_side_effects: bool,
    /// 0 until asked for: names the method in the caches of channels.
    id: AtomicU32,
}

impl Clone for Method {
    /// The clone is the same method to the caches of channels.
    fn clone(&self) -> Self {
        let Self { content_subtype, has_side_effects, .. } = *self;
        Self { path: self.path.clone(), content_subtype, has_side_effects, id: AtomicU32::new(self.id()) }
    }
}

impl Method {
    /// The method at `path`, which must be `/service/method`; [`Method::from_path`] checks it.
    pub const fn new(path: &'static str) -> Self {
        Self::of_path(Cow::Borrowed(path))
    }

    /// The same method for messages of another format than Protobuf: its calls have the content type
    /// `application/grpc+json` if this is `json`.
    ///
    /// ```
    /// # use thalweg_engine as thalweg;
    /// static FIND: thalweg::Method = thalweg::Method::new("/quotes.Quotes/Find").with_content_subtype("json");
    /// assert_eq!(FIND.content_subtype(), "json");
    /// ```
    ///
    /// # Panics
    /// Where that can be no part of a content type; of a `static` that is an error of the compiler's.
    #[must_use]
    pub const fn with_content_subtype(mut self, subtype: &'static str) -> Self {
        assert!(content_type::is_legal_subtype(subtype), "a content subtype has letters, digits, - . _ +");
        self.content_subtype = subtype;
        // Its heads are others.
        self.id = AtomicU32::new(0);
        self
    }

    /// The same method, known to change nothing at its server: `idempotency_level = NO_SIDE_EFFECTS` in its `.proto`
    /// file. Protocols that can make use of that may call it by GET.
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

    /// The method at a path given at run time: `/service/method`, `service/method` or `service.method`.
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

    /// Whatever is at `path`, gRPC or not.
    pub(crate) fn at(path: &str) -> Self {
        Self::of_path(Cow::Owned(path.to_owned()))
    }

    const fn of_path(path: Cow<'static, str>) -> Self {
        Self { path, content_subtype: "", has_side_effects: true, id: AtomicU32::new(0) }
    }

    /// `/package.Service/Method`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What content types say its messages are, behind `application/grpc+`; empty where they say nothing.
    pub fn content_subtype(&self) -> &'static str {
        self.content_subtype
    }

    /// Whether it may change something at its server, as far as is known.
    pub fn has_side_effects(&self) -> bool {
        self.has_side_effects
    }

    /// The path, to keep.
    pub(crate) fn path_to_keep(&self) -> Cow<'static, str> {
        self.path.clone()
    }

    /// The path of a method that was known when the program was written.
    #[cfg(feature = "opentelemetry")]
    pub(crate) fn static_path(&self) -> Option<&'static str> {
        match self.path {
            Cow::Borrowed(path) => Some(path),
            Cow::Owned(_) => None,
        }
    }

    /// `package.Service`.
    pub fn service(&self) -> &str {
        self.path.trim_start_matches('/').split_once('/').map_or("", |(service, _)| service)
    }

    /// `Method`.
    pub fn name(&self) -> &str {
        self.path.rsplit_once('/').map_or("", |(_, name)| name)
    }

    /// A number of the process that is this method's alone.
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

/// A path that names no method.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{path}` is not a method: write package.Service/Method")]
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
