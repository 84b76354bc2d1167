//! Enums and their values, complete once declared.

use super::Scope;
use super::checks::{check_elements, check_name, check_value_names};
use crate::schema::error::Problem;
use crate::schema::features::{Edition, number};
use crate::schema::name_index::NameIndex;
use crate::schema::pool::{EnumData, EnumValueData};
use crate::schema::raw;

pub(super) fn enum_data(declared: &raw::Enum<'_>, name: &str, scope: Scope<'_>) -> Result<EnumData, Problem> {
    let features = scope.features.with(scope.edition, &declared.options, number::ENUM)?;
    let alias = raw::option(&declared.options, 2)?.unwrap_or(0) != 0;
    let first = declared.values.first().ok_or(Problem::EmptyEnum)?;
    if !features.closed_enum && first.number != 0 {
        return Err(Problem::FirstValue(first.number));
    }
    check_elements("values", declared.values.len())?;
    let mut data = EnumData {
        name: name.into(),
        file: scope.file,
        parent: scope.message,
        closed: features.closed_enum,
        values: Vec::with_capacity(declared.values.len()),
        by_number: Vec::new(),
        by_name: NameIndex::for_names(declared.values.len()),
        options: declared.options.as_slice().into(),
    };
    for (index, value) in declared.values.iter().enumerate() {
        check_name(value.name)?;
        if !data.by_name.insert(index as u32, |position| declared.values[position as usize].name) {
            return Err(Problem::Invalid("two values of the enum have the same name"));
        }
        data.values.push(EnumValueData {
            name: value.name.into(),
            number: value.number,
            options: value.options.as_slice().into(),
        });
        data.by_number.push((value.number, index as u32));
    }
    // The sort is stable, so the first alias of a number comes first and names it.
    data.by_number.sort_by_key(|&(number, _)| number);
    if !alias && let Some(pair) = data.by_number.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        let other = data.values[pair[0].1 as usize].name.to_string();
        return Err(Problem::Alias { number: pair[0].0, other });
    }
    data.by_number.dedup_by_key(|&mut (number, _)| number);
    // protoc long only warned about conflicts in proto2, so such files exist.
    if scope.edition != Edition::Proto2 {
        check_value_names(declared)?;
    }
    Ok(data)
}
