//! A window of calls with its outcome.

use std::ops::{Deref, DerefMut};

use serde::{Deserialize, Serialize};
use thalweg_measure::usage::Usage;
use thalweg_measure::validity::Validity;

use super::measurement::MeasuredLoad;
use super::validity::judge_window;
use crate::record::LoadResult;

/// One window: its request `R` and its result `F`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct WindowResult<R, F = LoadResult> {
    #[serde(flatten)]
    pub(crate) request: R,
    #[serde(flatten)]
    pub(crate) outcome: Outcome<F>,
    /// Resources used by both processes, as accounted by the kernel. They are comparable across stacks, unlike the
    /// driver's own [`LoadResult::client_cpu`]. `None` for bare sockets, for failed windows, and if the kernel does
    /// not report them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) usage: Option<Usage>,
    /// Why the figures must not be used, judged when the window ended. `None` in results of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) not_valid: Option<Validity>,
}

/// Outcome of a window. The aliases are from earlier schemas.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome<F = LoadResult> {
    /// The result.
    #[serde(alias = "load", alias = "counted", alias = "watched")]
    Measured(Box<F>),
    /// The reason for the failure.
    Failed(String),
}

impl<R> WindowResult<R> {
    /// Creates the result of a window of calls.
    pub(crate) fn of_calls(request: R, outcome: Result<MeasuredLoad, String>) -> Self {
        let (outcome, usage) = match outcome {
            Ok(MeasuredLoad { load, usage }) => (Outcome::Measured(Box::new(load)), usage),
            Err(reason) => (Outcome::Failed(reason), None),
        };
        let result = Self { request, outcome, usage, not_valid: None };
        Self { not_valid: Some(result.validity()), ..result }
    }

    /// Returns whether the figures may be used.
    pub(crate) fn validity(&self) -> Validity {
        let outcome = match &self.outcome {
            Outcome::Measured(result) => Ok(&**result),
            Outcome::Failed(reason) => Err(reason.as_str()),
        };
        self.not_valid.clone().unwrap_or_else(|| judge_window(outcome, self.usage.as_ref()))
    }

    /// Returns why the figures must not be used; `None` for a valid window.
    pub(crate) fn invalid_reason(&self) -> Option<String> {
        self.validity().invalid_reason()
    }

    /// Returns the driver's result if its figures may be used.
    pub(crate) fn valid(&self) -> Option<&LoadResult> {
        self.measured().filter(|_| self.validity().is_valid())
    }
}

impl<R, F> WindowResult<R, F> {
    /// Creates the result of a window that measured something other than figures of calls.
    pub(crate) fn of_other(request: R, outcome: Result<F, String>) -> Self {
        let outcome = outcome.map_or_else(Outcome::Failed, |measured| Outcome::Measured(Box::new(measured)));
        Self { request, outcome, usage: None, not_valid: None }
    }

    /// Returns the result, if there is one.
    pub(crate) fn measured(&self) -> Option<&F> {
        match &self.outcome {
            Outcome::Measured(measured) => Some(measured),
            Outcome::Failed(_) => None,
        }
    }
}

#[cfg(test)]
impl<R, F> WindowResult<R, F> {
    pub(crate) fn measured_mut(&mut self) -> Option<&mut F> {
        match &mut self.outcome {
            Outcome::Measured(measured) => Some(measured),
            Outcome::Failed(_) => None,
        }
    }
}

impl<R, F> Deref for WindowResult<R, F> {
    type Target = R;

    fn deref(&self) -> &R {
        &self.request
    }
}

impl<R, F> DerefMut for WindowResult<R, F> {
    fn deref_mut(&mut self) -> &mut R {
        &mut self.request
    }
}
