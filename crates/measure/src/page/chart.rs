//! Charts as data. One script draws all of them with uPlot.

use maud::{Markup, html};
use serde::{Serialize, Serializer};

use super::inline::inline;
use super::parts::script_json;
use super::when::{When, when_json};
use crate::figures::{bound, short};
use crate::statistics::Interval;

/// Name and stroke of a line.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LineStyle {
    /// Key. A button of the legend hides all lines with the same key.
    pub key: String,
    /// Name in the legend and the tooltip.
    pub name: String,
    /// Name at the end of the line.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub short: String,
    /// Colour: a custom property of the style sheet, or a CSS colour with parentheses.
    pub colour: String,
    /// Lengths of dashes and gaps in px; empty for a solid line.
    pub dash: &'static [u8],
    /// Width in px.
    pub width: f64,
    /// Whether it is hidden until its button is pressed.
    #[serde(skip)]
    pub hidden: bool,
}

impl LineStyle {
    /// Returns a solid line whose key is its name.
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

/// Formats of figures, named as in the script.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Time in ns.
    #[default]
    Time,
    /// Rate per second.
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
    /// Titles in the tooltip, if they differ from the labels.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub titles: Vec<String>,
    /// Index in `titles` for each position. If empty, they correspond one to one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub title_of: Vec<usize>,
    /// Keys that complete the links of series.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
    /// Title of the axis.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub label: String,
    /// Whether positions are seconds.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub clock: bool,
    /// Whether positions are nines of percentiles: 2 is 99 %.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub nines: bool,
    /// Vertical lines, with their labels.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<(f64, String)>,
    /// Id of another chart whose axis this one copies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub same_as: Option<&'static str>,
    /// Charts with the same name share the pointer position.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync: Option<&'static str>,
}

impl XAxis {
    /// Copies the axis of the chart with this id.
    pub fn same_as(id: &'static str) -> Self {
        Self { same_as: Some(id), ..Self::default() }
    }

    /// Creates an axis with positions at the logarithms of numbers, labelled with the numbers.
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
    /// Whether the axis is logarithmic.
    pub log: bool,
    /// Whether the reader may switch between logarithmic and linear.
    #[serde(skip)]
    pub is_free: bool,
    /// Charts of the same group share their scale.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<&'static str>,
    /// Values that the axis always includes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub includes: Vec<f64>,
    /// Horizontal line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<f64>,
}

/// Drawing style of a series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// A line through points.
    #[default]
    Points,
    /// A line without points.
    Line,
    /// A line with steps: each value holds until the next one.
    Steps,
    /// Points without a line.
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

/// A column of values, with one for each position of its axis.
pub type Column = Vec<Option<f64>>;

/// A series of a chart.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Series {
    /// Indices of line styles, with their conditions. The first condition that holds selects the style.
    pub shown: Vec<(usize, When)>,
    /// Values.
    #[serde(serialize_with = "serialize_compact")]
    pub y: Column,
    /// Positions, if they differ from the chart's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub x: Vec<f64>,
    /// Lower ends of intervals.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "serialize_compact")]
    pub low: Column,
    /// Upper ends of intervals.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "serialize_compact")]
    pub high: Column,
    /// Whether intervals are drawn as a band around the line instead of bars.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub band: bool,
    /// Values of single windows, drawn as dots next to the points.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<Vec<f64>>,
    /// Text after the style's name in the tooltip.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Link of the points: the start of an element id, which a key of the axis completes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// Drawing style.
    pub mark: Mark,
    /// Whether it is a reference: drawn only within the range of the other series, and not in the tooltip.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_reference: bool,
}

impl Series {
    /// Creates a series with rounded values, shown with one style under a condition.
    pub fn new(style: usize, when: When, y: impl IntoIterator<Item = Option<f64>>) -> Self {
        Self { shown: vec![(style, when)], y: rounded(y), ..Self::default() }
    }

    /// Adds intervals.
    #[must_use]
    pub fn intervals(self, ends: impl IntoIterator<Item = Option<Interval>>) -> Self {
        let ends: Vec<Option<Interval>> = ends.into_iter().collect();
        if ends.iter().all(Option::is_none) {
            return self;
        }
        let column = |end: fn(Interval) -> f64| rounded(ends.iter().map(|it| it.map(end)));
        Self { low: column(|it| it.low), high: column(|it| it.high), ..self }
    }

    /// Returns whether no value is known.
    pub fn is_empty(&self) -> bool {
        self.y.iter().all(Option::is_none)
    }
}

/// Serializes whole numbers without a decimal point. Most columns are in ns, so this saves a fifth of a page.
fn serialize_compact<S: Serializer>(values: &[Option<f64>], serializer: S) -> Result<S::Ok, S::Error> {
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
    /// Description of the chart, and which direction is better.
    #[serde(skip)]
    pub about: String,
    /// CSS class of the drawing.
    #[serde(skip)]
    pub class: &'static str,
    /// Condition for showing the chart.
    #[serde(skip)]
    pub when: When,
    /// Sentence shown if there is no line.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub empty: String,
    /// Horizontal axis.
    pub x: XAxis,
    /// Vertical axis.
    pub y: YAxis,
    /// Styles of the lines.
    #[serde(rename = "ways")]
    pub styles: Vec<LineStyle>,
    /// Lines.
    pub series: Vec<Series>,
    /// Shaded ranges of values, with their conditions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shades: Vec<([f64; 2], When)>,
}

impl Chart {
    /// Returns the chart with its data, which a script draws.
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
