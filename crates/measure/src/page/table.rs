//! Tables as data: one description of the columns, rendered as HTML that sorts, as text for a terminal and as CSV.

use maud::{Markup, html};
use serde::{Deserialize, Serialize};

use super::parts::scrolled;
use super::when::{When, when_json};
use crate::figures::{count, from_to, ratio_text, short};
use crate::statistics::{Interval, Ratio};
use crate::text::aligned;

/// Text of an unknown figure.
pub const NONE: &str = "–";

/// A table cell: the text shown, and the value that it sorts by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableCell {
    /// Text.
    pub text: String,
    /// Sort key. Cells without one sort by their text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// Interval or remark. HTML shows it below the text, a terminal omits it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below: Option<String>,
    /// CSS class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// Id of the element that the text links to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// A distribution instead of the text: position, height and title of each bar.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bars: Vec<(f64, f64, String)>,
}

/// Width and maximum height of a [`TableCell`]'s bars in px.
const BAR: (f64, f64) = (3.0, 22.0);

impl TableCell {
    /// Creates a text, which sorts alphabetically.
    pub fn words(text: impl Into<String>) -> Self {
        Self { text: text.into(), value: None, below: None, class: None, link: None, bars: Vec::new() }
    }

    /// Creates a figure, or [`NONE`].
    pub fn figure(value: Option<f64>, show: impl FnOnce(f64) -> String) -> Self {
        Self { value, ..Self::words(value.map_or_else(|| NONE.to_owned(), show)) }
    }

    /// Creates a figure with its interval.
    pub fn with_interval(value: Option<f64>, show: fn(f64) -> String, interval: Option<Interval>) -> Self {
        Self { below: value.and(from_to(interval, show)), ..Self::figure(value, show) }
    }

    /// Creates a rate per second with its interval.
    pub fn rate(value: Option<f64>, interval: Option<Interval>) -> Self {
        Self {
            below: value.and(from_to(interval, count)),
            ..Self::figure(value, |rate| format!("{}/s", count(rate)))
        }
    }

    /// Creates a ratio followed by its interval, which sorts by the ratio.
    pub fn ratio(ratio: Option<Ratio>) -> Self {
        Self {
            value: ratio.map(|it| it.ratio),
            ..Self::words(ratio.map_or_else(|| NONE.to_owned(), ratio_text))
        }
    }

    /// Sets the CSS class.
    #[must_use]
    pub fn class(self, class: &str) -> Self {
        Self { class: Some(class.to_owned()), ..self }
    }

    /// Returns the cell. `sorts` determines whether it has a sort key.
    fn html(&self, is_words: bool, sorts: bool) -> Markup {
        let (_, below) = self.parts();
        let class = [self.class.as_deref(), is_words.then_some("words"), below.is_some().then_some("sure")];
        let class = class.into_iter().flatten().collect::<Vec<_>>().join(" ");
        let class = (!class.is_empty()).then_some(class);
        let key = match self.value {
            _ if !sorts => None,
            Some(value) => Some(short(value).to_string()),
            None if is_words => None,
            None => Some(String::new()),
        };
        html! { td class=[class] data-v=[key] { (self.content()) } }
    }

    /// Returns the text, and what HTML shows below it, including a ratio's interval.
    fn parts(&self) -> (&str, Option<&str>) {
        match self.text.split_once(" × (") {
            Some((ratio, _)) => {
                let (ratio, interval) = self.text.split_at(ratio.len() + " ×".len());
                (ratio, Some(interval.trim_start()))
            }
            None => (&self.text, self.below.as_deref()),
        }
    }

    fn content(&self) -> Markup {
        let (text, below) = self.parts();
        html! {
            @match &self.link {
                Some(link) => { a href={ "#" (link) } { (text) } }
                None => { @if self.bars.is_empty() { (text) } }
            }
            @if let Some(below) = below { small { (below) } }
            @if !self.bars.is_empty() { (self.drawn_bars()) }
        }
    }

    fn drawn_bars(&self) -> Markup {
        let (width, most) = BAR;
        let end = self.bars.iter().map(|(at, ..)| *at + 1.0).fold(0.0, f64::max);
        let highest = self.bars.iter().map(|(_, height, _)| *height).fold(f64::MIN_POSITIVE, f64::max);
        html! {
            svg.gaps width=(format!("{:.0}", end * width)) height=(most) role="img" aria-label=(self.text) {
                @for (at, height, title) in &self.bars {
                    @let height = (most * height / highest).max(1.0);
                    rect x=(format!("{:.0}", at * width)) y=(format!("{:.1}", most - height))
                        width=(width - 0.5) height=(format!("{height:.1}")) { title { (title) } }
                }
            }
        }
    }
}

/// Columns of a table whose rows are values of one type.
pub struct Columns<'a, R> {
    columns: Vec<(String, CellOf<'a, R>)>,
}

/// Formats a figure of a value for CSV. `None` if there is none.
pub type FormatFigure<V> = fn(&V) -> Option<String>;

type CellOf<'a, R> = Box<dyn Fn(&R) -> TableCell + 'a>;

impl<R> Default for Columns<'_, R> {
    fn default() -> Self {
        Self { columns: Vec::new() }
    }
}

impl<'a, R> Columns<'a, R> {
    /// Adds a column.
    #[must_use]
    pub fn field(mut self, header: impl Into<String>, cell: impl Fn(&R) -> TableCell + 'a) -> Self {
        self.columns.push((header.into(), Box::new(cell)));
        self
    }

    /// Adds a column of text.
    #[must_use]
    pub fn words(self, header: impl Into<String>, cell: impl Fn(&R) -> String + 'a) -> Self {
        self.field(header, move |row| TableCell::words(cell(row)))
    }

    /// Adds a column of figures.
    #[must_use]
    pub fn figure(
        self,
        header: impl Into<String>,
        show: fn(f64) -> String,
        cell: impl Fn(&R) -> Option<f64> + 'a,
    ) -> Self {
        self.field(header, move |row| TableCell::figure(cell(row), show))
    }

    /// Adds a column of plain values for CSV, empty if there is none.
    #[must_use]
    pub fn plain<T: ToString>(self, header: impl Into<String>, cell: impl Fn(&R) -> Option<T> + 'a) -> Self {
        self.words(header, move |row| cell(row).map(|value| value.to_string()).unwrap_or_default())
    }

    /// Adds columns of plain figures of a value. They are empty if the row has no such value.
    #[must_use]
    pub fn plain_figures<V: 'a>(
        self,
        value: impl Fn(&R) -> Option<V> + Clone + 'a,
        figures: &[(&'static str, FormatFigure<V>)],
    ) -> Self {
        figures.iter().fold(self, |columns, &(header, figure)| {
            let value = value.clone();
            columns.plain(header, move |row| figure(&value(row)?))
        })
    }

    /// Adds columns of a plain ratio and the ends of its interval: `header`, `header_low` and `header_high`.
    #[must_use]
    pub fn plain_ratio(self, header: &str, ratio: impl Fn(&R) -> Option<Ratio> + Clone + 'a) -> Self {
        let (low, high) = (ratio.clone(), ratio.clone());
        self.plain(header, move |row| Some(format!("{:.4}", ratio(row)?.ratio)))
            .plain(format!("{header}_low"), move |row| Some(format!("{:.4}", low(row)?.interval?.low)))
            .plain(format!("{header}_high"), move |row| Some(format!("{:.4}", high(row)?.interval?.high)))
    }

    /// Creates the table from rows.
    pub fn table(&self, rows: impl IntoIterator<Item = R>) -> Table {
        let cells = |row: R| self.columns.iter().map(|(_, cell)| cell(&row)).collect();
        Table {
            headers: self.columns.iter().map(|(header, _)| header.clone()).collect(),
            rows: rows.into_iter().map(cells).collect(),
            ..Table::default()
        }
    }
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// Names of the columns.
    #[serde(rename = "heads")]
    pub headers: Vec<String>,
    /// Cells, one per column in each row.
    pub rows: Vec<Vec<TableCell>>,
    /// Whether the columns cannot be sorted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_fixed: bool,
    /// CSS class and condition of each row; empty if no row has either.
    #[serde(skip)]
    pub row_styles: Vec<(Option<&'static str>, When)>,
}

impl Table {
    /// Creates an empty table with these columns.
    pub fn new(headers: &[&str]) -> Self {
        Self { headers: headers.iter().map(|&header| header.to_owned()).collect(), ..Self::default() }
    }

    /// Returns the table as HTML in a scrollable container. Cells of the first column are row headers.
    pub fn html(&self) -> Markup {
        scrolled(&self.html_without_container())
    }

    /// Returns the table as HTML without a container.
    pub fn html_without_container(&self) -> Markup {
        // A column without figures contains text.
        let has_figure = |column: usize| self.rows.iter().any(|row| row[column].value.is_some());
        let words: Vec<bool> = (0..self.headers.len()).map(|column| !has_figure(column)).collect();
        let plain = (None, When::default());
        html! {
            table {
                thead {
                    tr {
                        @for (index, (header, is_words)) in self.headers.iter().zip(&words).enumerate() {
                            th scope="col" class=[(*is_words && index > 0).then_some("words")] {
                                @if self.is_fixed { (header) } @else { button type="button" { (header) } }
                            }
                        }
                    }
                }
                tbody {
                    @for (index, row) in self.rows.iter().enumerate() {
                        @let (class, when) = self.row_styles.get(index).unwrap_or(&plain);
                        tr class=[*class] data-when=[when_json(when)] {
                            @for (index, (field, is_words)) in row.iter().zip(&words).enumerate() {
                                @if index == 0 {
                                    th scope="row" data-v=[field.value.map(|it| short(it).to_string())] {
                                        (field.content())
                                    }
                                } @else {
                                    (field.html(*is_words, !self.is_fixed))
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    /// Returns the table as CSV (RFC 4180, but with LF line ends).
    ///
    /// # Panics
    ///
    /// Panics if a row does not have one cell per column.
    pub fn csv(&self) -> String {
        const ALIKE: &str = "writing to memory does not fail, and every row has all columns";
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(&self.headers).expect(ALIKE);
        for row in &self.rows {
            writer.write_record(row.iter().map(|field| &field.text)).expect(ALIKE);
        }
        String::from_utf8(writer.into_inner().expect(ALIKE)).expect("cells are text")
    }

    /// Returns the table as aligned text. Empty if the table has no rows.
    pub fn text(&self) -> String {
        self.text_of_columns(|_, _| true)
    }

    /// Returns the columns for which `is_shown`, called with index and name, is true, as aligned text. Empty if the
    /// table has no rows.
    pub fn text_of_columns(&self, is_shown: impl Fn(usize, &str) -> bool) -> String {
        let is_shown = |column: &usize| is_shown(*column, &self.headers[*column]);
        let columns: Vec<usize> = (0..self.headers.len()).filter(is_shown).collect();
        let cells = |row: &Vec<TableCell>| -> Vec<String> {
            columns.iter().map(|&column| row[column].text.replace('\u{a0}', " ")).collect()
        };
        let headers = columns.iter().map(|&column| self.headers[column].clone()).collect();
        let rows: Vec<Vec<String>> = std::iter::once(headers).chain(self.rows.iter().map(cells)).collect();
        if self.rows.is_empty() { String::new() } else { aligned(&rows) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::time;

    fn sample() -> Table {
        let columns = Columns::<(&str, Option<f64>)>::default()
            .words("name", |(name, _)| (*name).to_owned())
            .field("time", |&(_, ns)| {
                TableCell::with_interval(ns, time, Some(Interval { low: 1.0, high: 2.0 }))
            });
        columns.table([("a<b", Some(1500.0)), ("c", None)])
    }

    #[test]
    fn cells_sort_by_their_value_whatever_is_shown() {
        let shown = sample().html().into_string();
        assert!(shown.contains("<th scope=\"row\">a&lt;b</th>"), "{shown}");
        assert!(shown.contains("<td class=\"sure\" data-v=\"1500\">1.50 µs<small>1 ns – 2 ns</small></td>"));
        assert!(shown.contains("<td data-v=\"\">–</td>"), "{shown}");
    }

    #[test]
    fn ratio_interval_is_below_in_html_and_inline_in_terminal() {
        let ratio = Ratio { ratio: 2.0, interval: Some(Interval { low: 1.5, high: 3.0 }), pairs: 5 };
        let field = TableCell::ratio(Some(ratio));
        assert_eq!(field.text, "2.0 × (1.50–3.0)");
        let shown = field.html(false, true).into_string();
        assert_eq!(shown, "<td class=\"sure\" data-v=\"2\">2.0 ×<small>(1.50–3.0)</small></td>");
    }

    #[test]
    fn csv_quotes_special_characters() {
        let columns = Columns::<&str>::default()
            .plain("name", |row| Some((*row).to_owned()))
            .plain("length", |row| (*row == "unary").then_some(5));
        assert_eq!(
            columns.table(["unary", "a,b", "say \"no\"\n", "a\r"]).csv(),
            "name,length\nunary,5\n\"a,b\",\n\"say \"\"no\"\"\n\",\n\"a\r\",\n"
        );
    }

    #[test]
    fn terminal_shows_columns_without_intervals() {
        assert_eq!(sample().text(), "name     time\n a<b  1.50 µs\n   c        –\n");
        assert_eq!(sample().text_of_columns(|_, header| header != "name"), "   time\n1.50 µs\n      –\n");
    }

    #[test]
    fn columns_of_the_same_name_keep_their_own_cells() {
        let columns = Columns::<(u32, u32)>::default()
            .plain("÷", |&(latency, _)| Some(latency))
            .plain("÷", |&(_, rate)| Some(rate));
        assert_eq!(columns.table([(1, 2)]).text(), "÷  ÷\n1  2\n");
    }
}
