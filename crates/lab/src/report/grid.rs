//! Tables of fields that sort.

use maud::Markup;
use thalweg_measure::page::table::Table;

pub(crate) use thalweg_measure::page::table::Field;

/// The table without its container.
pub(crate) fn grid(heads: &[String], rows: &[Vec<Field>]) -> Markup {
    Table { heads: heads.to_vec(), rows: rows.to_vec(), ..Table::default() }.bare()
}
