//! The steps of `cargo xtask test`. The tables in `docs/testing.md` say what each one proves and needs.

use super::{
    book, call, conformance, connect, costs, decisions, dependencies, deploy, dist, examples, fleet, grpcio,
    h2spec, interop, layering, metrics, negative, oldest, openapi, packages, pages, peers, platforms, plugin,
    programs, protos, python, rebuild, report, rust, services, surface, tls, web, workflows,
};
use crate::failure::Result;

/// One check. It writes to its log and returns a short summary.
pub(super) struct Step {
    pub(super) name: &'static str,
    pub(super) tier: Tier,
    pub(super) sequence: Sequence,
    /// The steps that build its programs.
    pub(super) after: &'static [&'static str],
    pub(super) run: fn() -> Result<String>,
}

/// When a step runs. Each step belongs to one tier; a tier does not contain the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tier {
    Push,
    Pull,
    Nightly,
    Release,
}

pub(super) const TIERS: &[Tier] = &[Tier::Push, Tier::Pull, Tier::Nightly, Tier::Release];

impl Tier {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Push => "push",
            Self::Pull => "pull",
            Self::Nightly => "nightly",
            Self::Release => "release",
        }
    }

    /// Whether steps of this tier may be skipped if their tools are missing: `push` runs on any machine with Rust.
    pub(super) fn allows_missing(self) -> bool {
        self == Self::Push
    }
}

/// Steps of one sequence run one after the other, in parallel with the other sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sequence {
    /// Steps that compile or keep all processors busy.
    Builds,
    /// Steps that mostly wait for the network, for servers, or for a suite's time limits. None of them compiles in the
    /// workspace, so none waits for a build's lock.
    Suites,
}

use Sequence::{Builds, Suites};
use Tier::{Nightly, Pull, Push, Release};

/// In the order of each sequence: quick steps that find most come first, then those that others wait for.
pub(super) const STEPS: &[Step] = &[
    step("format", Push, Builds, &[], rust::format),
    step("layering", Push, Builds, &[], layering::check),
    step("surface", Push, Builds, &[], surface::check),
    step("dependencies", Push, Suites, &[], dependencies::check),
    step("build", Push, Builds, &[], rebuild::build),
    step("lints", Push, Builds, &["build"], rebuild::lints),
    step("tests", Push, Builds, &["build"], rust::tests),
    step("examples", Push, Suites, &["build"], examples::check),
    step("h2spec", Push, Suites, &["build"], h2spec::server),
    step("h2specd", Push, Suites, &["build"], h2spec::client),
    step("interop-server", Push, Suites, &["build"], interop::server),
    step("interop-client", Push, Suites, &["build"], interop::client),
    step("ignored", Pull, Builds, &["build"], rust::ignored),
    step("docs", Pull, Builds, &["build"], rust::docs),
    step("rebuild", Pull, Builds, &["build"], rebuild::check),
    step("python", Pull, Builds, &["build"], python::check),
    step("costs", Pull, Builds, &[], costs::check),
    step("api", Pull, Builds, &[], crate::api::check),
    step("licences", Pull, Suites, &[], dist::sbom_and_licences),
    step("deny", Pull, Suites, &[], dependencies::deny),
    step("links", Pull, Suites, &[], book::links),
    step("workflows", Pull, Suites, &[], workflows::check),
    step("grpcio-server", Pull, Suites, &["build"], grpcio::server),
    step("grpcio-client", Pull, Suites, &["build"], grpcio::client),
    step("decisions", Pull, Suites, &["build"], decisions::check),
    step("services", Pull, Suites, &["build"], services::check),
    step("call", Pull, Suites, &["build"], call::check),
    step("deploy", Pull, Suites, &["build"], deploy::check),
    step("metrics", Pull, Suites, &["build"], metrics::check),
    step("tls", Pull, Suites, &["build"], tls::check),
    step("negative", Pull, Suites, &["build"], negative::check),
    step("web", Pull, Suites, &["build"], web::check),
    step("conformance", Pull, Suites, &["build"], conformance::check),
    step("openapi", Pull, Suites, &["build"], openapi::check),
    step("protos", Pull, Suites, &["build"], protos::corpus),
    step("plugin", Pull, Suites, &["build"], plugin::check),
    step("connect", Pull, Suites, &["build"], connect::check),
    step("simulations", Nightly, Builds, &["build"], rust::simulations),
    step("features", Nightly, Builds, &[], rust::features),
    step("release", Nightly, Builds, &[], rebuild::release),
    step("report", Nightly, Builds, &["release"], report::check),
    step("python-long", Nightly, Builds, &[], python::long),
    step("packages", Nightly, Builds, &[], packages::check),
    step("pages", Nightly, Builds, &["packages"], pages::check),
    step("oldest", Nightly, Builds, &[], oldest::check),
    step("platforms", Nightly, Builds, &[], platforms::check),
    step("peers", Nightly, Suites, &["release"], peers::check),
    step("fleet", Nightly, Suites, &["build", "peers"], fleet::check),
    step("programs", Nightly, Suites, &["peers"], programs::check),
    step("patched", Nightly, Suites, &[], rust::patched),
    step("trees", Nightly, Suites, &["build"], protos::trees),
    step("book", Nightly, Suites, &[], book::check),
    step("advisories", Nightly, Suites, &[], dependencies::advisories),
    step("dist", Release, Suites, &[], dist::check),
];

const fn step(
    name: &'static str,
    tier: Tier,
    sequence: Sequence,
    after: &'static [&'static str],
    run: fn() -> Result<String>,
) -> Step {
    Step { name, tier, sequence, after, run }
}

/// Each step with its tier and purpose, from the page.
pub(super) fn list() -> String {
    let line = |step: &Step| format!("{:<8} {:<14} {}\n", step.tier.name(), step.name, what_it_proves(step));
    STEPS.iter().map(line).collect()
}

/// The second cell of the step's row in the table of its tier.
fn what_it_proves(step: &Step) -> &'static str {
    rows(step.tier).find(|(name, _)| *name == step.name).map_or("", |(_, what_it_proves)| what_it_proves)
}

/// The rows of a tier's table: each step and what it proves.
fn rows(tier: Tier) -> impl Iterator<Item = (&'static str, &'static str)> {
    const PAGE: &str = include_str!("../../../docs/testing.md");
    let sections = PAGE.split("\n#").map(str::lines);
    let section = sections.filter_map(move |mut lines| {
        (lines.next()?.strip_prefix("## `")?.strip_suffix('`')? == tier.name()).then_some(lines)
    });
    section.flatten().filter_map(|line| {
        let (name, cells) = line.strip_prefix("| `")?.split_once("` | ")?;
        Some((name, cells.split(" | ").next()?))
    })
}

#[cfg(test)]
mod tests {
    use super::{STEPS, TIERS, rows};

    #[test]
    fn page_has_a_table_for_each_tier() {
        for tier in TIERS {
            let steps = STEPS.iter().filter(|step| step.tier == *tier).map(|step| step.name);
            assert!(
                rows(*tier).map(|(name, _)| name).eq(steps),
                "docs/testing.md has other steps of {tier:?}"
            );
        }
    }

    #[test]
    fn steps_wait_only_for_earlier_steps() {
        for (position, step) in STEPS.iter().enumerate() {
            for name in step.after {
                let earlier =
                    STEPS[..position].iter().any(|other| other.name == *name && other.tier <= step.tier);
                assert!(earlier, "{} waits for {name}", step.name);
            }
        }
    }
}
