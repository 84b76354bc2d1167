//! Trailing metadata from a handler: [`Trailers`].

use tonic::metadata::MetadataMap;

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
