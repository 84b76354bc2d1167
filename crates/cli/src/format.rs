//! What figures are written as.

use clap::ValueEnum;
use thalweg_load::LoadRun;

use crate::failure::Failure;
use crate::output::OutputFile;
use crate::terminal::Syntax;
use crate::{report_text, run_text};

/// Figures of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Human-readable
    Text,
    /// Machine-readable
    Json,
}

/// The result of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RunFormat {
    /// Human-readable
    Text,
    /// Machine-readable
    Json,
    /// One row per interval
    Csv,
    /// Self-contained HTML page
    Html,
}

impl RunFormat {
    pub(crate) fn syntax(self) -> Syntax {
        match self {
            Self::Text | Self::Csv => Syntax::Text,
            Self::Json => Syntax::Json,
            Self::Html => Syntax::Html,
        }
    }

    /// Writes what is in this format.
    pub(crate) fn write(self, output: &OutputFile<'_>, text: &str) -> Result<(), Failure> {
        match self {
            Self::Text => report_text::write(output, text),
            _ => output.write(self.syntax(), text),
        }
    }

    /// A result in this format.
    pub(crate) fn rendered(self, run: &LoadRun) -> String {
        match self {
            Self::Text => run_text::text(run),
            Self::Json => json(run),
            Self::Csv => thalweg_load::csv(run),
            Self::Html => thalweg_load::page(run),
        }
    }
}

/// With a line end behind.
pub(crate) fn json(result: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(result).expect("a result is numbers and strings") + "\n"
}
