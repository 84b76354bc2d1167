//! Trailing metadata from a handler: [`Trailers`], [`LateTrailers`].

use std::fmt;
use std::sync::Arc;

use thalweg_core::metadata::MetadataMap;

/// Trailing metadata of a call that ends with OK: insert it into the response's extensions. A failed call carries its
/// metadata in the [`Status`](crate::Status).
///
/// ```
/// use thalweg::metadata::MetadataMap;
/// use thalweg::{Response, server::Trailers};
///
/// let mut trailers = MetadataMap::new();
/// trailers.insert("x-rows-read", "42".parse().unwrap());
/// let mut response = Response::new(());
/// response.extensions_mut().insert(Trailers(trailers));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Trailers(pub MetadataMap);

/// Trailing metadata of a stream of responses that is known only at its end: insert it into the response's extensions.
/// It is added to the [`Trailers`], or to the status that the stream ends with.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU32, Ordering};
///
/// use thalweg::metadata::MetadataMap;
/// use thalweg::{Response, server::LateTrailers};
///
/// let rows_read = Arc::new(AtomicU32::new(0));
/// # let stream = ();
/// let mut response = Response::new(stream);
/// response.extensions_mut().insert(LateTrailers::new(move || {
///     let mut trailers = MetadataMap::new();
///     trailers.insert("x-rows-read", rows_read.load(Ordering::Relaxed).into());
///     trailers
/// }));
/// ```
#[derive(Clone)]
pub struct LateTrailers(Arc<dyn Fn() -> MetadataMap + Send + Sync>);

impl LateTrailers {
    /// Creates trailers from a function that is called once the stream has ended.
    pub fn new(trailers: impl Fn() -> MetadataMap + Send + Sync + 'static) -> Self {
        Self(Arc::new(trailers))
    }

    /// Returns the trailers as they are now.
    pub fn get(&self) -> MetadataMap {
        (self.0)()
    }
}

impl fmt::Debug for LateTrailers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LateTrailers").field(&self.get()).finish()
    }
}
