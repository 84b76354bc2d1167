//! Prepares servers: checks out and builds revisions, and assigns addresses.

use std::env;

use thalweg_measure::interrupt::Interrupt;

use super::build::build;
use super::checkout::{Checkout, Repository};
use super::error::MeasureError;
use super::event::Event;
use super::plan::{Plan, Servers, SidePlan, SidePlans};
use super::target::{FreePorts, Target};
use crate::comparison::Revision;

/// Number of shown digits of a commit's hash.
const COMMIT_DIGITS: usize = 12;

/// Returns both sides, and the checkouts, which must outlive the servers.
pub(super) fn prepare(
    plan: &Plan,
    interrupt: &Interrupt,
    observe: &mut impl FnMut(Event<'_>),
) -> Result<(SidePlans, Vec<Checkout>), MeasureError> {
    let checkouts = match &plan.servers {
        Servers::Commands(_) => Vec::new(),
        Servers::Revisions { revisions, build, .. } => {
            checkouts(revisions, build.as_deref(), interrupt, observe)?
        }
    };
    let mut ports = FreePorts::default();
    let mut side = |index: usize| {
        let (default, command) = match &plan.servers {
            Servers::Commands(commands) => (["A", "B"][index], &commands[index]),
            Servers::Revisions { revisions: [a, b], command, .. } if a == b => (["A", "B"][index], command),
            Servers::Revisions { revisions, command, .. } => (revisions[index].as_str(), command),
        };
        let (target, command) = Target::of(command, plan.targets[index].as_deref(), &mut ports)?;
        let checkout = checkouts.get(index);
        let revision = match (&plan.servers, checkout) {
            (Servers::Revisions { revisions, build, .. }, Some(checkout)) => Some(Revision {
                name: revisions[index].clone(),
                commit: checkout.commit().to_owned(),
                build: build.clone(),
            }),
            _ => None,
        };
        Ok::<_, MeasureError>(SidePlan {
            name: plan.names.get(index).cloned().unwrap_or_else(|| default.to_owned()),
            command,
            directory: checkout.map(Checkout::folder),
            target,
            revision,
        })
    };
    let sides = SidePlans { a: side(0)?, b: side(1)? };
    if sides.a.target == sides.b.target {
        return Err(MeasureError::OneTarget(sides.a.target));
    }
    Ok((sides, checkouts))
}

/// Checks out and builds both revisions.
fn checkouts(
    revisions: &[String; 2],
    build_command: Option<&str>,
    interrupt: &Interrupt,
    observe: &mut impl FnMut(Event<'_>),
) -> Result<Vec<Checkout>, MeasureError> {
    let repository = Repository::at(&env::current_dir().map_err(MeasureError::Folder)?)?;
    // An unknown revision is reported before anything is built.
    let commits = revisions.iter().map(|revision| repository.commit(revision));
    let commits = commits.collect::<Result<Vec<_>, _>>()?;
    let checkouts = commits.iter().map(|commit| repository.checkout(commit));
    let checkouts = checkouts.collect::<Result<Vec<_>, _>>()?;
    if let Some(command) = build_command {
        for (revision, checkout) in revisions.iter().zip(&checkouts) {
            let commit = checkout.commit();
            observe(Event::Builds { revision, commit: &commit[..COMMIT_DIGITS.min(commit.len())] });
            build(revision, command, &checkout.folder(), interrupt)?;
        }
    }
    Ok(checkouts)
}
