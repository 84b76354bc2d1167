//! Values of expressions and their formatting.

use std::collections::BTreeSet;
use std::rc::Rc;

use thalweg_measure::figures::{count, grouped, percent, ratio_text, throughput, time, times};
use thalweg_measure::size::ByteSize;
use thalweg_measure::statistics::Ratio;

use super::cell::CallsCell;

/// Value of an expression. Conditions are 1 and 0.
#[derive(Clone)]
pub(crate) enum Value {
    Number(f64),
    Ratio(Ratio),
    Words(String),
    List(Vec<ValueResult>),
    Record(Rc<Record>),
    Cell(Rc<CallsCell>),
}

/// A value, or why it is missing.
pub(crate) type ValueResult = Result<Value, String>;

/// Named values; the last of a name counts.
pub(crate) type Record = Vec<(String, ValueResult)>;

impl Value {
    /// Returns the distinct values in ascending order.
    pub(crate) fn ascending(values: impl Iterator<Item = u64>) -> Self {
        let values: BTreeSet<u64> = values.collect();
        values.into_iter().map(|value| value as f64).collect()
    }

    pub(crate) fn number(&self) -> Result<f64, String> {
        match self {
            Self::Number(number) => Ok(*number),
            Self::Ratio(ratio) => Ok(ratio.ratio),
            _ => Err("not a number".to_owned()),
        }
    }

    pub(crate) fn ratio(&self) -> Result<Ratio, String> {
        if let Self::Ratio(ratio) = self { Ok(*ratio) } else { Err("not a ratio".to_owned()) }
    }

    pub(crate) fn cell(&self) -> Result<&CallsCell, String> {
        if let Self::Cell(cell) = self { Ok(cell) } else { Err("not a cell".to_owned()) }
    }

    pub(crate) fn list(self) -> Result<Vec<ValueResult>, String> {
        if let Self::List(list) = self { Ok(list) } else { Err("not a list".to_owned()) }
    }

    /// Returns a field of a record or cell, or of each element of a list.
    pub(crate) fn field(&self, name: &str) -> ValueResult {
        let unknown = || format!("no field `{name}`");
        match self {
            Self::Record(record) => {
                let field = record.iter().rev().find(|(own, _)| own == name);
                field.map(|(_, found)| found.clone()).ok_or_else(unknown)?
            }
            Self::Cell(cell) => cell.figure(name).map(Self::Number),
            Self::List(list) => Ok(Self::List(
                list.iter().map(|item| item.as_ref().map_err(Clone::clone)?.field(name)).collect(),
            )),
            _ => Err(unknown()),
        }
    }

    /// Formats the value. Without a format, numbers are rounded to integers and words stay unchanged.
    pub(crate) fn shown(&self, format: &str) -> Result<String, String> {
        if let Self::Words(words) = self {
            return Ok(words.clone());
        }
        let number = self.number()?;
        Ok(match (format, self) {
            ("time", _) => time(number),
            ("rate", _) => format!("{}/s", count(number)),
            ("count", _) => count(number),
            ("times", _) => times(number),
            ("ratio", Self::Ratio(ratio)) => ratio_text(*ratio),
            ("percent", _) => percent(number),
            ("throughput", _) => throughput(number),
            ("size", _) => ByteSize(number as u64).to_string(),
            ("bytes", _) => format!("{} B", grouped(number)),
            ("grouped", _) => grouped(number),
            ("tenths", _) => format!("{number:.1}"),
            ("thousandths", _) => format!("{number:.3}"),
            ("" | "whole", _) => format!("{number:.0}"),
            _ => return Err(format!("unknown format `{format}`")),
        })
    }
}

/// Returns the unit that results use for figures of this format; empty for ratios and counts.
pub(crate) fn unit(format: &str) -> &'static str {
    match format {
        "time" => "ns",
        "rate" => "1/s",
        "throughput" => "B/s",
        "bytes" => "B",
        _ => "",
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<bool> for Value {
    fn from(holds: bool) -> Self {
        Self::Number(f64::from(u8::from(holds)))
    }
}

impl From<Ratio> for Value {
    fn from(ratio: Ratio) -> Self {
        Self::Ratio(ratio)
    }
}

impl From<CallsCell> for Value {
    fn from(cell: CallsCell) -> Self {
        Self::Cell(Rc::new(cell))
    }
}

impl From<&str> for Value {
    fn from(words: &str) -> Self {
        Self::Words(words.to_owned())
    }
}

impl<V: Into<Value>> FromIterator<V> for Value {
    fn from_iter<I: IntoIterator<Item = V>>(all: I) -> Self {
        Self::List(all.into_iter().map(|value| Ok(value.into())).collect())
    }
}

/// Creates a record from present values.
impl<const N: usize> From<[(&str, Value); N]> for Value {
    fn from(fields: [(&str, Value); N]) -> Self {
        Vec::from(fields).into()
    }
}

impl From<Vec<(&str, Value)>> for Value {
    fn from(fields: Vec<(&str, Value)>) -> Self {
        Self::Record(Rc::new(fields.into_iter().map(|(name, value)| (name.to_owned(), Ok(value))).collect()))
    }
}
