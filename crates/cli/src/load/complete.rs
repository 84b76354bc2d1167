//! Completions for `thalweg load`.

use thalweg_dynamic::{NameKind, completions};
use thalweg_load::record::LaneRule;
use thalweg_load::spec::Connecting;

use super::arguments::LoadArgs;

/// Returns the methods that start with `typed`, from files or the server.
pub(super) async fn methods(args: &LoadArgs, typed: &str) -> Option<Vec<String>> {
    let balancing = args.any.balancing.checked().ok()?;
    let set_up = |channel| args.tls.applied(&args.common.target, balancing.applied(channel));
    let connecting = Connecting {
        targets: std::slice::from_ref(&args.common.target),
        connections: 1,
        lanes: LaneRule::Fixed,
        timeout: args.common.connect_timeout(),
        authority: args.any.each.authority.as_deref(),
        set_up: &set_up,
    };
    let files = args.any.files.read().ok()?;
    let mut catalogue = connecting.catalogue(files, args.any.with.of_reflection()).await.ok()?;
    Some(completions(&mut catalogue, NameKind::Method, typed).await)
}
