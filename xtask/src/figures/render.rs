//! Renders the tables: each is a template in `xtask/figures`, filled from the results files.

use std::cmp::Ordering;
use std::fs;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Rest, Serde, ValueKind};
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior, Value, context};

use super::numbers;
use super::results::Results;
use crate::bench::table::grouped;
use crate::failure::Result;
use crate::{files, workspace};

/// The stacks with a column in comparisons.
const STACKS: [&str; 3] = ["tonic", "grpc-cpp", "grpc-go"];

/// Figures that share the template `comparison`. Other figures without their own template are tables of a benchmark,
/// shown as printed.
const COMPARISONS: [&str; 2] = ["comparison-tcp", "comparison-uds"];

/// The templates with their data.
pub(super) struct Tables {
    templates: Environment<'static>,
}

impl Tables {
    /// Loads the templates for these results and for the costs checked by the tests.
    pub(super) fn of(results: &Results, costs: &serde_json::Value) -> Result<Self> {
        let mut templates = Environment::new();
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
        templates.set_syntax(syntax.map_err(|why| failed!("{}", why.to_string()))?);
        templates.set_undefined_behavior(UndefinedBehavior::SemiStrict);
        add_formats(&mut templates);
        add_selection(&mut templates);
        let captions = results.clone();
        templates.add_function("caption", move |names: Rest<String>| captions.caption(&names));
        let captions = results.clone();
        templates.add_function("caption_of", move |name: &str, link: &str| captions.caption_of(name, link));
        let origins = results.clone();
        templates.add_function("origin", move |names: Vec<String>| {
            origins.origin(&names).ok_or_else(|| unusable(format!("no results of {}", names.join(", "))))
        });
        for path in files::below(&workspace::root().join("xtask/figures"))? {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let added = templates.add_template_owned(name, fs::read_to_string(&path)?);
            added.map_err(|why| failed!("{}: {why:#}", path.display()))?;
        }
        templates.add_global("results", Value::from(Serde(results.all_figures())));
        templates.add_global("costs", Value::from(Serde(costs)));
        templates.add_global("STACKS", Value::from(STACKS.to_vec()));
        Ok(Self { templates })
    }

    /// Renders a figure.
    pub(super) fn render(&self, name: &str) -> Result<String> {
        let own = if COMPARISONS.contains(&name) { "comparison" } else { name };
        let template = self.templates.get_template(own).or_else(|_| self.templates.get_template("printed"));
        let filled = template.and_then(|template| template.render(context! { name }));
        let mut text = filled.map_err(|why| failed!("figure `{name}`: {why:#}"))?;
        // An empty cell is one space wide, as in the rest of the documents.
        while text.contains("|  |") {
            text = text.replace("|  |", "| |");
        }
        Ok(text)
    }
}

/// Adds the number formats; a missing value is a dash.
fn add_formats(templates: &mut Environment<'_>) {
    type Format = fn(f64) -> String;
    let formats: [(&str, Format); 5] = [
        ("grouped", grouped),
        ("rate", numbers::rate),
        ("ratio", numbers::ratio),
        ("share", numbers::share),
        ("time", numbers::time),
    ];
    for (name, format) in formats {
        templates.add_filter(name, move |it: Value| number(&it).map_or_else(missing, format));
    }
    templates.add_filter("size", numbers::size);
    templates.add_filter("fixed", |it: Value, decimals: usize| {
        number(&it).map_or_else(missing, |it| format!("{it:.decimals$}"))
    });
    templates.add_filter("stack", stack);
    // The number at the start of a cell of a printed table.
    templates.add_filter("number", |cell: &str| {
        let digits = cell.replace(',', "");
        let end = digits.find(|it: char| !it.is_ascii_digit() && it != '.').unwrap_or(digits.len());
        digits[..end].parse::<f64>().map_err(|_| unusable(format!("expected a number, found `{cell}`")))
    });
}

/// Adds the filters that find rows and cells.
fn add_selection(templates: &mut Environment<'_>) {
    templates.add_filter("where", |list: Value, wanted: Kwargs| selected(&list, &wanted));
    // The first match, or none.
    templates.add_filter("find", |list: Value, wanted: Kwargs| {
        Ok::<Value, Error>(selected(&list, &wanted)?.into_iter().next().unwrap_or(Value::from(())))
    });
    // The first member for each distinct set of values of these keys.
    templates.add_filter("distinct", |list: Value, keys: Rest<String>| {
        let mut known: Vec<Vec<Value>> = Vec::new();
        let is_new = |member: &Value| {
            let values = keys.iter().map(|key| member.get_attr(key).unwrap_or_default()).collect();
            let is_new = !known.contains(&values);
            known.extend(is_new.then_some(values));
            is_new
        };
        Ok::<Vec<Value>, Error>(list.try_iter()?.filter(is_new).collect())
    });
    // The cell in this row and column of a printed table; it must exist.
    templates.add_filter("cell", |table: Value, row: &str, head: &str| {
        let column = table.get_attr("heads")?.try_iter()?.position(|it| it.as_str() == Some(head));
        let mut rows = table.get_attr("rows")?.try_iter()?;
        let found = rows.find(|cells| {
            cells
                .get_item_by_index(0)
                .is_ok_and(|name| name.partial_cmp(&row.into()) == Some(Ordering::Equal))
        });
        let cell = found.zip(column).and_then(|(cells, column)| cells.get_item_by_index(column).ok());
        cell.ok_or_else(|| unusable(format!("no `{head}` of `{row}` in the table")))
    });
}

/// Returns the members with these values. A list of values matches any of them.
fn selected(list: &Value, wanted: &Kwargs) -> Result<Vec<Value>, Error> {
    let wanted = wanted.args().map(|name| Ok((name, wanted.get(name)?)));
    let wanted = wanted.collect::<Result<Vec<(&str, Value)>, Error>>()?;
    let is_it = |member: &Value| {
        wanted.iter().all(|(name, wanted)| {
            let found = member.get_attr(name).unwrap_or_default();
            match wanted.kind() {
                ValueKind::Seq => wanted.try_iter().is_ok_and(|mut any| any.any(|one| one == found)),
                _ => *wanted == found,
            }
        })
    };
    Ok(list.try_iter()?.filter(is_it).collect())
}

/// A stack's name for readers.
fn stack(cell: &str) -> String {
    if let Some(name) = cell.strip_suffix(" TLS") {
        return format!("{} over TLS", stack(name));
    }
    let shown = match cell {
        "thalweg" => "Thalweg",
        "thalweg busy" => "Thalweg, busy polling",
        "thalweg asleep" => "Thalweg, no busy polling",
        "grpc-cpp" => "gRPC C++",
        other => other,
    };
    shown.to_owned()
}

fn number(value: &Value) -> Option<f64> {
    f64::try_from(value.clone()).ok()
}

fn missing() -> String {
    "–".to_owned()
}

fn unusable(why: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, why)
}
