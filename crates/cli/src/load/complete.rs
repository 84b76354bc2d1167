//! What may come next on the command line of `thalweg load`.

use super::arguments::AnyArgs;
use super::connecting::Connecting;
use crate::names::{self, Place};

/// The methods that begin with `typed`, by the files or by the server.
pub(super) async fn methods(args: &AnyArgs, connecting: &Connecting<'_>, typed: &str) -> Option<Vec<String>> {
    let files = args.files.read().ok()?;
    let mut catalogue = connecting.catalogue(files, args.metadata_of_reflection()).await.ok()?;
    Some(names::beginning(&mut catalogue, Place::Method, typed).await)
}
