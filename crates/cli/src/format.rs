//! Output formats.

use clap::ValueEnum;
use thalweg_load::LoadRun;

use crate::failure::Failure;
use crate::output::OutputFile;
use crate::terminal::Syntax;
use crate::{report_text, run_text};

/// Formats of figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Human-readable
    Text,
    /// Machine-readable
    Json,
}

/// Formats of a load result.
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

    pub(crate) fn write(self, output: &OutputFile<'_>, text: &str) -> Result<(), Failure> {
        match self {
            Self::Text => report_text::write(output, text),
            _ => output.write(self.syntax(), text),
        }
    }

    /// Formats a result.
    pub(crate) fn rendered(self, run: &LoadRun) -> String {
        match self {
            Self::Text => run_text::text(run),
            Self::Json => json(run),
            Self::Csv => thalweg_load::csv(run),
            Self::Html => thalweg_load::page(run),
        }
    }
}

/// Returns pretty JSON with a trailing line end.
pub(crate) fn json(result: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(result).expect("a result is numbers and strings") + "\n"
}
