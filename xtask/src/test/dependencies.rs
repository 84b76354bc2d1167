//! Dependencies compile with our `rust-version`, and `deny.toml` accepts their licences, sources, advisories and
//! duplicates.

use crate::failure::Result;
use crate::job::Job;
use crate::log;
use crate::metadata::{Metadata, Package};
use crate::tools;

/// Checks that no package needs a newer Rust than our `rust-version`. clippy checks our own code.
pub(super) fn check() -> Result<String> {
    let metadata = Metadata::load()?;
    let documented = metadata.member_packages().filter_map(|package| package.rust_version.as_deref());
    let ours =
        documented.map(release).min().ok_or_else(|| failed!("the workspace states no rust-version"))?;
    let mut packages_too_new = 0;
    for Package { name, version, rust_version, .. } in metadata.built_packages() {
        if let Some(required) = rust_version.as_deref().filter(|required| release(required) > ours) {
            log::line(format_args!("{name} {version} needs Rust {required}, we promise 1.{}", ours.1))?;
            packages_too_new += 1;
        }
    }
    ensure!(packages_too_new == 0, "{packages_too_new} packages need a newer Rust than 1.{}", ours.1);
    Ok(format!("{} packages fit Rust 1.{}", metadata.built_packages().count(), ours.1))
}

/// Checks `deny.toml`, except advisories.
pub(super) fn deny() -> Result<String> {
    Job::new(tools::compiled("cargo-deny")?).words("check licenses bans sources").minutes(5).run()?;
    Ok("licences, sources and duplicates fit deny.toml".to_owned())
}

/// Checks advisories. Their database needs a network, which a build machine may not have.
pub(super) fn advisories() -> Result<String> {
    let output = Job::new(tools::compiled("cargo-deny")?).words("check advisories").minutes(5).output()?;
    if output.err.contains("failed to fetch advisory database") {
        return Err(missing!("failed to fetch the advisory database"));
    }
    ensure!(output.status.success(), "advisories apply to our dependencies");
    Ok("no advisory applies".to_owned())
}

/// Parses a version to its release: `1.88.0` and `1.88` are the same.
fn release(version: &str) -> (u32, u32) {
    let mut parts = version.split('.').map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::release;

    #[test]
    fn releases_are_compared_without_patch() {
        assert_eq!(release("1.88"), release("1.88.3"));
        assert!(release("1.9") < release("1.88"));
    }
}
