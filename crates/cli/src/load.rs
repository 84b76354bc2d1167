//! `thalweg load`.

mod any;
mod any_arguments;
mod arguments;
mod complete;
mod defaults;
mod export;
mod label;
mod live;
mod notices;
mod output;
mod plan;
mod progress;
mod scenario;
mod start_at;
mod verdict;
mod watching;

use std::process::ExitCode;

pub(crate) use self::arguments::LoadArgs;
pub(crate) use self::defaults::{DURATION_DEFAULT, IN_FLIGHT_DEFAULT, WARM_UP_DEFAULT};

use self::arguments::CallTarget;
use crate::failure::Failure;

pub(crate) fn run(args: &LoadArgs) -> Result<ExitCode, Failure> {
    any::run(args).map_err(|failure| args.tls.explain(failure))
}

/// Returns the methods that start with `typed`, if `--call` is `here`.
pub(crate) async fn complete(args: &LoadArgs, here: &str, typed: &str) -> Option<Vec<String>> {
    match &args.call {
        CallTarget::Method(name) if name.to_string() == here => complete::methods(args, typed).await,
        _ => None,
    }
}
