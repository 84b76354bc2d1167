//! What was published, and how it is tried again and judged: data, in a file for each publication.

use std::sync::LazyLock;

use serde::Deserialize;
use thalweg_measure::cpus::CpuList;

use super::expression::{Bindings, Expression, Text};
use super::publication::Publication;

/// What was published.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Original {
    pub(crate) title: String,
    /// Its name in the page's bar.
    pub(crate) short: String,
    /// Whose it is, where and when.
    pub(crate) source: String,
    /// What was measured, with what, and how.
    pub(crate) method: Vec<String>,
    /// What all claims and tables know.
    pub(crate) values: Bindings,
    /// The studies that try it again.
    runs: Vec<Study>,
    pub(crate) claims: Vec<Claim>,
    /// What else the figures say, beside which the claims were judged.
    pub(crate) tables: Vec<FigureTable>,
    /// Questions that the study answers, whose tables are shown, too.
    #[serde(default)]
    pub(crate) questions: Vec<OpenQuestion>,
    /// What went wrong in it, or is left open by it, and what is done here instead.
    pub(crate) flaws: Vec<Flaw>,
}

/// One thing that was claimed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Claim {
    /// Its name in the results.
    pub(crate) id: String,
    /// What was claimed, in a sentence.
    pub(crate) text: String,
    /// The figure that was published with it.
    pub(crate) published: String,
    #[serde(default)]
    pub(crate) values: Bindings,
    /// Where this does not hold, the claim cannot be tried.
    pub(crate) needs: Option<Expression>,
    /// Why not.
    #[serde(default)]
    pub(crate) without: Text,
    /// The rule: whether the effect is there, and whether it is as large as was published.
    pub(crate) there: Expression,
    pub(crate) as_large: Expression,
    /// What was found, in a few words with their figures.
    pub(crate) ours: Text,
    /// Why it is so.
    pub(crate) cause: Text,
    /// What the verdict rests on.
    pub(crate) figures: Vec<Shown>,
}

/// A figure of a claim; it is left out where it is missing.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Shown {
    /// For each record of this list.
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
    /// What it says, and of what.
    pub(crate) about: Text,
    /// A list of records.
    pub(crate) rows: Expression,
    pub(crate) columns: Vec<FigureColumn>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FigureColumn {
    pub(crate) name: String,
    pub(crate) value: Expression,
    /// Without it a column has words.
    #[serde(default)]
    pub(crate) format: String,
    /// In the place of a format.
    pub(crate) text: Option<Text>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OpenQuestion {
    /// Its name in the study.
    pub(crate) id: String,
    pub(crate) title: String,
}

/// Something that a measurement does not show, or shows wrongly.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Flaw {
    pub(crate) what: String,
    /// What it does to the figures, and what is done here.
    pub(crate) instead: String,
}

/// A study that this laboratory makes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Study {
    name: String,
    about: String,
    /// What `thalweg` is given, and what more by its extent.
    words: String,
    quick: String,
    whole: String,
    #[serde(default)]
    keeps_jvm_logs: bool,
    /// Client and server may run on all processors.
    #[serde(default)]
    is_unpinned: bool,
}

/// Advice by situation.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Situation {
    /// The claim that shows it.
    pub(crate) claim: String,
    /// It is good advice whatever came of the claim.
    #[serde(default)]
    pub(crate) always: bool,
    /// Where a reader stands.
    pub(crate) reader: String,
    /// What to do there.
    pub(crate) advice: String,
}

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// A look: all four within a quarter of an hour.
    Quick,
    /// All that the claims are about.
    Whole,
}

/// One run of a study.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The name of its folder.
    pub name: &'static str,
    /// What it is for, in a few words.
    pub about: &'static str,
    /// The arguments of `thalweg`.
    pub arguments: Vec<String>,
    /// The log of its virtual machines is kept beside its results, and read.
    pub keeps_jvm_logs: bool,
}

/// What was published there.
pub(crate) fn original(publication: Publication) -> &'static Original {
    static ORIGINALS: LazyLock<[Original; 4]> = LazyLock::new(|| {
        [
            include_str!("data/qt.toml"),
            include_str!("data/json.toml"),
            include_str!("data/codec.toml"),
            include_str!("data/channels.toml"),
        ]
        .map(|text| toml::from_str(text).expect("the data beside the code is well formed"))
    });
    &ORIGINALS[publication as usize]
}

/// In the order of the page.
pub(crate) fn situations() -> &'static [Situation] {
    #[derive(Deserialize)]
    struct Situations {
        situations: Vec<Situation>,
    }
    static SITUATIONS: LazyLock<Situations> = LazyLock::new(|| {
        toml::from_str(include_str!("data/situations.toml")).expect("the data beside the code is well formed")
    });
    &SITUATIONS.situations
}

/// The studies that try a publication again.
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
