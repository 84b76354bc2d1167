//! Published claims, and how they are reproduced and judged, as data in a file per publication.

use std::sync::LazyLock;

use serde::Deserialize;
use thalweg_measure::cpus::CpuList;

use super::expression::{Bindings, Expression, Text};
use super::publication::Publication;

/// A publication.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Original {
    pub(crate) title: String,
    /// Short name in the page's navigation bar.
    pub(crate) short: String,
    /// Authors, place and date.
    pub(crate) source: String,
    /// Measured systems and method.
    pub(crate) method: Vec<String>,
    /// Values shared by all claims and tables.
    pub(crate) values: Bindings,
    /// Studies that reproduce it.
    runs: Vec<Study>,
    pub(crate) claims: Vec<Claim>,
    /// Further tables of figures shown with the claims.
    pub(crate) tables: Vec<FigureTable>,
    /// Questions answered by the study, whose tables are shown as well.
    #[serde(default)]
    pub(crate) questions: Vec<OpenQuestion>,
    /// Flaws and gaps of the publication, and what is done instead.
    pub(crate) flaws: Vec<Flaw>,
}

/// One published claim.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Claim {
    /// Id in the results.
    pub(crate) id: String,
    /// The claim in a sentence.
    pub(crate) text: String,
    pub(crate) published: String,
    #[serde(default)]
    pub(crate) values: Bindings,
    /// Condition without which the claim cannot be tried.
    pub(crate) needs: Option<Expression>,
    /// Text explaining why the claim cannot be tried.
    #[serde(default)]
    pub(crate) without: Text,
    /// Rules: whether the effect exists, and whether it is as large as published.
    #[serde(rename = "there")]
    pub(crate) effect: Expression,
    #[serde(rename = "as_large")]
    pub(crate) same_size: Expression,
    /// Text of the findings, with their figures.
    pub(crate) ours: Text,
    /// Text of the cause.
    pub(crate) cause: Text,
    /// Figures behind the verdict.
    pub(crate) figures: Vec<FigureRule>,
}

/// A figure of a claim, omitted if missing.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FigureRule {
    /// List of records; the figure is repeated for each.
    pub(crate) of: Option<Expression>,
    pub(crate) name: Text,
    pub(crate) value: Expression,
    pub(crate) format: String,
}

/// A table of figures.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FigureTable {
    pub(crate) title: String,
    /// Description of the table.
    pub(crate) about: Text,
    /// Expression for a list of records.
    pub(crate) rows: Expression,
    pub(crate) columns: Vec<FigureColumn>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FigureColumn {
    pub(crate) name: String,
    pub(crate) value: Expression,
    /// Format of a figure. Empty for a column of words.
    #[serde(default)]
    pub(crate) format: String,
    /// Text used instead of a format.
    pub(crate) text: Option<Text>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OpenQuestion {
    /// Id in the study.
    pub(crate) id: String,
    pub(crate) title: String,
}

/// A flaw of a measurement.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Flaw {
    pub(crate) what: String,
    /// Effect on the figures, and what is done instead.
    pub(crate) instead: String,
}

/// A study run by this lab.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Study {
    name: String,
    about: String,
    /// Arguments of `thalweg`, and additional ones by extent.
    words: String,
    quick: String,
    whole: String,
    #[serde(default)]
    keeps_jvm_logs: bool,
    /// Whether client and server may use all processors.
    #[serde(default)]
    is_unpinned: bool,
}

/// Advice for a situation.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Situation {
    /// The claim that supports it.
    pub(crate) claim: String,
    /// Whether the advice applies regardless of the verdict.
    #[serde(default)]
    pub(crate) always: bool,
    /// The reader's situation.
    pub(crate) reader: String,
    pub(crate) advice: String,
}

/// Extent of the measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// A quick overview: all four within 15 minutes.
    Quick,
    /// Everything that the claims cover.
    Whole,
}

/// One run of a study.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Name of its folder.
    pub name: &'static str,
    /// Short description of its purpose.
    pub about: &'static str,
    /// Arguments of `thalweg`.
    pub arguments: Vec<String>,
    /// Whether its JVM log is kept with the results and read.
    pub keeps_jvm_logs: bool,
}

/// Returns the data of a publication.
pub(crate) fn original(publication: Publication) -> &'static Original {
    static ORIGINALS: LazyLock<[Original; 4]> = LazyLock::new(|| {
        [
            include_str!("data/qt.toml"),
            include_str!("data/json.toml"),
            include_str!("data/codec.toml"),
            include_str!("data/channels.toml"),
        ]
        .map(|text| toml::from_str(text).expect("the embedded data is valid"))
    });
    &ORIGINALS[publication as usize]
}

/// Returns all situations, in the order of the page.
pub(crate) fn situations() -> &'static [Situation] {
    #[derive(Deserialize)]
    struct Situations {
        situations: Vec<Situation>,
    }
    static SITUATIONS: LazyLock<Situations> = LazyLock::new(|| {
        toml::from_str(include_str!("data/situations.toml")).expect("the embedded data is valid")
    });
    &SITUATIONS.situations
}

/// Returns the studies that reproduce a publication.
pub fn runs(publication: Publication, extent: Extent) -> Vec<Run> {
    original(publication).runs.iter().map(|study| study.run(extent)).collect()
}

impl Study {
    fn run(&'static self, extent: Extent) -> Run {
        let more = match extent {
            Extent::Quick => &self.quick,
            Extent::Whole => &self.whole,
        };
        let cpus = CpuList::available().ok().filter(|_| self.is_unpinned);
        let cpus = cpus.map(|all| format!("--client-cpus {all} --server-cpus {all}")).unwrap_or_default();
        let words = [&self.words, &cpus, more];
        Run {
            name: &self.name,
            about: &self.about,
            arguments: words.iter().flat_map(|words| words.split_whitespace().map(str::to_owned)).collect(),
            keeps_jvm_logs: self.keeps_jvm_logs,
        }
    }
}
