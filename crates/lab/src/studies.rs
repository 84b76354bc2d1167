//! The studies, each with its plan, analysis and reports.

pub mod channels;
pub mod codec;
pub mod connections;
pub mod json;
pub mod sizes;

use std::path::Path;

use crate::load::LabResults;
use crate::report::Report;
use crate::study::{Analyse, NotWritable, ReadError, ResultsDirectory, SavedResults, StudyKind};
use channels::ChannelsAnalysis;
use codec::{CodecAnalysis, CodecResults};
use connections::ConnectionsAnalysis;
use json::{JsonAnalysis, JsonResults};
use sizes::SizesAnalysis;

/// Saved results of any study.
#[derive(Clone, Debug, PartialEq)]
pub enum AnyResults {
    /// A study of calls.
    Calls(Box<LabResults>),
    /// A study of codecs.
    Codec(Box<CodecResults>),
    /// A JSON study: gRPC against a JSON API.
    Json(Box<JsonResults>),
}

impl AnyResults {
    /// Reads saved results.
    pub fn read(path: &Path) -> Result<Self, ReadError> {
        let saved = SavedResults::read(path)?;
        match saved.study {
            StudyKind::Codec => saved.parse().map(Box::new).map(Self::Codec),
            StudyKind::Json => saved.parse().map(Box::new).map(Self::Json),
            StudyKind::Sizes | StudyKind::Channels | StudyKind::Connections => {
                saved.parse().map(Box::new).map(Self::Calls)
            }
        }
    }

    /// Saves the results unchanged.
    pub fn save(&self, directory: &ResultsDirectory) -> Result<(), NotWritable> {
        match self {
            Self::Calls(results) => directory.save(results),
            Self::Codec(results) => directory.save(results),
            Self::Json(results) => directory.save(results),
        }
    }

    /// Analyses the results for all exporters.
    pub fn analyse(&self) -> Report {
        match self {
            Self::Calls(results) => results.analyse(),
            Self::Codec(results) => results.analyse(),
            Self::Json(results) => results.analyse(),
        }
    }
}

impl Analyse for LabResults {
    fn analyse(&self) -> Report {
        match self.study {
            StudyKind::Channels => channels::report(&ChannelsAnalysis::of(self)),
            StudyKind::Connections => connections::report(&ConnectionsAnalysis::of(self)),
            _ => sizes::report(&SizesAnalysis::of(self)),
        }
    }
}

impl Analyse for CodecResults {
    fn analyse(&self) -> Report {
        codec::report(&CodecAnalysis::of(self))
    }
}

impl Analyse for JsonResults {
    fn analyse(&self) -> Report {
        json::report(&JsonAnalysis::of(self))
    }
}
