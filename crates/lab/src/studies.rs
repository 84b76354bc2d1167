//! The studies: each has its plan, its analysis and its reports.

pub mod channels;
pub mod codec;
pub mod connections;
pub mod json;
pub mod sizes;

use std::path::Path;

use crate::load::{LAB_SCHEMA, LabResults, StudyKind};
use crate::report::Report;
use crate::study::{NotWritable, ReadError, ResultsDirectory, ResultsText, Study};
use channels::Channels;
use codec::{CODEC_SCHEMA, Codec, CodecResults};
use connections::Connections;
use json::{JSON_SCHEMA, Json, JsonResults};
use sizes::Sizes;

/// What an earlier study saved, of whichever kind.
#[derive(Clone, Debug, PartialEq)]
pub enum AnyResults {
    /// A study of calls.
    Calls(Box<LabResults>),
    /// A study of codecs.
    Codec(Box<CodecResults>),
    /// A study of gRPC against a JSON API.
    Json(Box<JsonResults>),
}

impl AnyResults {
    /// Reads what a study saved.
    pub fn read(path: &Path) -> Result<Self, ReadError> {
        let text = ResultsText::read(path, &[LAB_SCHEMA, CODEC_SCHEMA, JSON_SCHEMA])?;
        match text.schema() {
            CODEC_SCHEMA => text.parse().map(Box::new).map(Self::Codec),
            JSON_SCHEMA => text.parse().map(Box::new).map(Self::Json),
            _ => text.parse().map(Box::new).map(Self::Calls),
        }
    }

    /// Saves them as they are.
    pub fn save(&self, directory: &ResultsDirectory) -> Result<(), NotWritable> {
        match self {
            Self::Calls(results) => directory.save(results),
            Self::Codec(results) => directory.save(results),
            Self::Json(results) => directory.save(results),
        }
    }

    /// What documents quote of them, as small JSON; `None` where there is nothing of the kind.
    pub fn condensed(&self) -> Option<String> {
        match self {
            Self::Calls(results) => match results.study {
                StudyKind::Sizes => Sizes::analyse(results).condensed(),
                StudyKind::Channels => Some(Channels::analyse(results).condensed()),
                StudyKind::Connections => Some(Connections::analyse(results).condensed()),
            },
            Self::Codec(results) => Some(Codec::analyse(results).condensed()),
            Self::Json(results) => Some(Json::analyse(results).condensed()),
        }
    }

    /// What they say, for every exporter.
    pub fn analyse(&self) -> Box<dyn Report + '_> {
        match self {
            Self::Calls(results) => match results.study {
                StudyKind::Sizes => Box::new(Sizes::analyse(results)),
                StudyKind::Channels => Box::new(Channels::analyse(results)),
                StudyKind::Connections => Box::new(Connections::analyse(results)),
            },
            Self::Codec(results) => Box::new(Codec::analyse(results)),
            Self::Json(results) => Box::new(Json::analyse(results)),
        }
    }
}
