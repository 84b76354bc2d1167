//! Charts as data. One script draws all of them with uPlot.

use maud::{Markup, html};
use serde::{Serialize, Serializer};

use super::inline::inline;
use super::parts::script_json;
use super::when::{When, when_json};
use crate::figures::{bound, short};
use crate::statistics::Interval;

/// What a line is of, and its stroke.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Way {
    /// Lines of one key are hidden together by a button of the legend.
    pub key: String,
    /// Name in the legend and at the pointer.
    pub name: String,
    /// Name at the line's end.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub short: String,
    /// Custom property of the style sheet, or a CSS colour with parentheses.
    pub colour: String,
    /// Lengths of dashes and gaps, px; empty for a continuous line.
    pub dash: &'static [u8],
    /// px.
    pub width: f64,
    /// Not shown until its button is pressed.
    #[serde(skip)]
    pub hidden: bool,
}

impl Way {
    /// Returns a continuous line whose key is its name.
    pub fn new(name: impl Into<String>, colour: impl Into<String>) -> Self {
        let name = name.into();
        Self { key: name.clone(), name, colour: colour.into(), ..Self::default() }
    }

    /// Returns a sample of the line.
    pub(super) fn swatch(&self) -> Markup {
        let colour =
            if self.colour.contains('(') { self.colour.clone() } else { format!("var(--{})", self.colour) };
        let dash = self.dash.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        html! {
            svg width="18" height="10" aria-hidden="true" {
                line x1="0" y1="5" x2="18" y2="5" stroke-width="2.5" stroke-dasharray=(dash)
                    style={ "stroke:" (colour) } {}
            }
        }
    }
}

/// Formats of figures, by the script's names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// ns.
    #[default]
    Time,
    /// Per second.
    Rate,
    /// Bytes per second.
    Throughput,
    /// A fraction.
    Percent,
    /// A factor.
    Ratio,
    /// A plain number.
    Count,
}

/// The horizontal axis.
#[derive(Clone, Debug, Default, Serialize)]
pub struct XAxis {
    /// Positions that columns of series refer to.
    pub at: Vec<f64>,
    /// Labels of the positions. Without them the axis shows numbers or, if `clock` is set, minutes and seconds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// Titles at the pointer, if they differ from labels.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub titles: Vec<String>,
    /// Of each position, which of `titles` it has. Without it they correspond one to one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub title_of: Vec<usize>,
    /// Ends of the links of series.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
    /// What the axis is of.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub label: String,
    /// Positions are seconds.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub clock: bool,
    /// Positions are nines of percentiles: 2 is 99 %.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub nines: bool,
    /// Vertical lines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<(f64, String)>,
    /// All of the axis is that of another chart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub same_as: Option<&'static str>,
    /// Charts of the same name follow each other's pointer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync: Option<&'static str>,
}

impl XAxis {
    /// The axis of the chart of this id.
    pub fn same_as(id: &'static str) -> Self {
        Self { same_as: Some(id), ..Self::default() }
    }

    /// Positions at the logarithms of numbers, labelled with them.
    pub fn log(numbers: &[u64], title: impl Fn(u64) -> String) -> Self {
        Self {
            at: numbers.iter().map(|&number| short((number.max(1) as f64).ln())).collect(),
            labels: numbers.iter().map(ToString::to_string).collect(),
            titles: numbers.iter().map(|&number| title(number)).collect(),
            ..Self::default()
        }
    }
}

/// The vertical axis.
#[derive(Clone, Debug, Default, Serialize)]
pub struct YAxis {
    /// Format of figures.
    pub unit: Unit,
    /// Logarithmic.
    pub log: bool,
    /// The reader may switch between logarithmic and linear.
    #[serde(skip)]
    pub is_free: bool,
    /// Charts of the same group have the same scale.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<&'static str>,
    /// Values that the axis includes in any case.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub includes: Vec<f64>,
    /// Horizontal line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<f64>,
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// A line through points.
    #[default]
    Points,
    /// A line without points.
    Line,
    /// A line that keeps its value until the next one.
    Steps,
    /// Points alone.
    Dots,
    /// Vertical strokes from the axis.
    Stems,
    /// Circles around points.
    Rings,
    /// Crosses at the lower edge.
    Crosses,
    /// Triangles at the upper edge.
    Triangles,
}

/// A column of values. A value for each position of its axis.
pub type Column = Vec<Option<f64>>;

/// A line of a chart.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Series {
    /// As which way the line appears, and when. The first condition that holds decides.
    pub shown: Vec<(usize, When)>,
    /// Values.
    #[serde(serialize_with = "briefly")]
    pub y: Column,
    /// Positions, if they are not the chart's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub x: Vec<f64>,
    /// Ends of intervals.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "briefly")]
    pub low: Column,
    /// Ends of intervals.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "briefly")]
    pub high: Column,
    /// Intervals are a band around the line in place of bars.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub band: bool,
    /// Values of single windows, dots beside the points.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<Vec<f64>>,
    /// Text behind the way's name at the pointer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Where a click on a point leads: the beginning of an element id. A key of the axis completes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// How it is drawn.
    pub mark: Mark,
    /// Drawn only as far as the other series reach, and without a row at the pointer.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_reference: bool,
}

impl Series {
    /// Returns a series with rounded values, shown as one way under a condition.
    pub fn new(way: usize, when: When, y: impl IntoIterator<Item = Option<f64>>) -> Self {
        Self { shown: vec![(way, when)], y: rounded(y), ..Self::default() }
    }

    /// The series with intervals.
    #[must_use]
    pub fn intervals(self, ends: impl IntoIterator<Item = Option<Interval>>) -> Self {
        let ends: Vec<Option<Interval>> = ends.into_iter().collect();
        if ends.iter().all(Option::is_none) {
            return self;
        }
        let column = |end: fn(Interval) -> f64| rounded(ends.iter().map(|it| it.map(end)));
        Self { low: column(|it| it.low), high: column(|it| it.high), ..self }
    }

    /// Whether no value is known.
    pub fn is_empty(&self) -> bool {
        self.y.iter().all(Option::is_none)
    }
}

/// Writes whole numbers without a decimal point: most columns are of ns, and this saves a fifth of a page.
fn briefly<S: Serializer>(values: &[Option<f64>], serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    #[serde(untagged)]
    enum Number {
        Whole(i64),
        Other(Option<f64>),
    }
    let brief = |value: &Option<f64>| match value {
        Some(value) if value.fract() == 0.0 && value.abs() < 1e15 => Number::Whole(*value as i64),
        _ => Number::Other(*value),
    };
    serializer.collect_seq(values.iter().map(brief))
}

/// Rounds to four significant digits.
pub fn rounded(values: impl IntoIterator<Item = Option<f64>>) -> Column {
    values.into_iter().map(|value| value.map(short)).collect()
}

/// A chart.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Chart {
    /// Unique name on the page.
    #[serde(skip)]
    pub id: String,
    /// Title.
    #[serde(skip)]
    pub title: String,
    /// What is drawn, and which direction is better.
    #[serde(skip)]
    pub about: String,
    /// CSS class of the drawing.
    #[serde(skip)]
    pub class: &'static str,
    /// When it is shown.
    #[serde(skip)]
    pub when: When,
    /// Sentence shown if no line is.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub empty: String,
    /// Horizontal axis.
    pub x: XAxis,
    /// Vertical axis.
    pub y: YAxis,
    /// What the lines are of.
    pub ways: Vec<Way>,
    /// Lines.
    pub series: Vec<Series>,
    /// Shaded range of values, and when it is shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shades: Vec<([f64; 2], When)>,
}

impl Chart {
    /// Returns the chart with its data. A script draws it.
    pub fn html(&self) -> Markup {
        let label = format!("{} {}. The tables have all values.", self.title, self.about);
        html! {
            figure data-chart=(self.id) data-when=[when_json(&self.when)] {
                figcaption {
                    @if !self.title.is_empty() { h3 { (inline(&self.title)) } }
                    @if !self.about.is_empty() { p { (inline(&self.about)) } }
                }
                @if self.y.is_free {
                    div.choices.small role="group" aria-label={ "Scale of the " (self.id) } {
                        @for (name, is_log) in [("log", true), ("linear", false)] {
                            button type="button" data-scale=(name) aria-pressed=(is_log == self.y.log) { (name) }
                        }
                    }
                }
                div class={ "plot " (self.class) } role="img" aria-label=(bound(&label)) {}
                script type="application/json" { (script_json(self)) }
            }
        }
    }
}
