//! Dependencies: that they compile with our `rust-version`, and that `deny.toml` accepts their licences, sources,
//! advisories and duplicates.

use crate::job::{Failure, Job, Log, find};
use crate::metadata::{Metadata, Package};
use crate::tools;

pub(super) fn check(log: &Log) -> Result<String, Failure> {
    let metadata = Metadata::load(log)?;
    let minor = msrv(&metadata, log)?;
    let packages = metadata.built_packages().count();
    // It takes minutes to compile: the step `advisories` installs it.
    let Some(deny) = find("cargo-deny") else {
        return Ok(format!("{packages} packages fit Rust 1.{minor}; deny.toml NOT checked: no cargo-deny"));
    };
    Job::new(deny).words(DENY).minutes(5).run(log)?;
    Ok(format!("{packages} packages fit Rust 1.{minor} and deny.toml"))
}

/// cargo-deny's checks that need no network.
const DENY: &str = "check licenses bans sources";

/// All of cargo-deny's checks.
pub(super) fn advisories(log: &Log) -> Result<String, Failure> {
    let deny = tools::cargo_deny(log)?;
    Job::new(&deny).words(DENY).minutes(5).run(log)?;
    if advisories_are_checked(&deny, log)? {
        Ok("no advisory applies; licences, sources and duplicates fit deny.toml".to_owned())
    } else {
        Err(Failure::missing("the advisory database cannot be fetched"))
    }
}

/// The minor number of our `rust-version`, which none of the packages may exceed. Our own code is held to it by clippy.
fn msrv(metadata: &Metadata, log: &Log) -> Result<u32, Failure> {
    let stated = metadata.member_packages().filter_map(|package| package.rust_version.as_deref());
    let ours = stated.map(release).min();
    let Some(ours) = ours else { return Err(Failure::failed("the workspace states no rust-version")) };
    let too_new: Vec<String> =
        metadata.built_packages().filter_map(|package| too_new(package, ours)).collect();
    for line in &too_new {
        log.line(line)?;
    }
    match too_new.len() {
        0 => Ok(ours.1),
        count => Err(Failure::failed(format!("{count} packages want a newer Rust than 1.{}", ours.1))),
    }
}

fn too_new(package: &Package, ours: (u32, u32)) -> Option<String> {
    let theirs = package.rust_version.as_deref()?;
    let message =
        || format!("{} {} wants Rust {theirs}, we promise 1.{}", package.name, package.version, ours.1);
    (release(theirs) > ours).then(message)
}

/// `1.88.0` and `1.88` are the same release.
fn release(version: &str) -> (u32, u32) {
    let mut parts = version.split('.').map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

/// Whether the advisories could be checked; that one applies is an error. Their database is fetched over the network,
/// which a build machine need not have.
fn advisories_are_checked(deny: &std::path::Path, log: &Log) -> Result<bool, Failure> {
    let check = Job::new(deny).words("check advisories");
    let output = check.output(log)?;
    if String::from_utf8_lossy(&output.stderr).contains("failed to fetch advisory database") {
        return Ok(false);
    }
    if output.status.success() {
        Ok(true)
    } else {
        Err(Failure::failed("advisories apply to what we build on"))
    }
}

#[cfg(test)]
mod tests {
    use super::release;

    #[test]
    fn releases_are_compared_without_the_patch() {
        assert_eq!(release("1.88"), release("1.88.3"));
        assert!(release("1.9") < release("1.88"));
    }
}
