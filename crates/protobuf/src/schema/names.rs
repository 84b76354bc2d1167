//! Derived names, by protoc's rules.

/// Returns the lowerCamelCase form of a field's name by protoc's rule: removes underscores and capitalises the
/// character after each.
pub(crate) fn json_name(name: &str) -> String {
    let mut json = String::with_capacity(name.len());
    let mut capitalise = false;
    for character in name.chars() {
        if character == '_' {
            capitalise = true;
        } else if capitalise {
            json.push(character.to_ascii_uppercase());
            capitalise = false;
        } else {
            json.push(character);
        }
    }
    json
}

/// Returns the generated-code form of an enum value's name by protoc's rule: without the enum's name, in PascalCase.
/// For example, `MY_ENUM_SOME_VALUE` of `MyEnum` becomes `SomeValue`.
pub(crate) fn pascal_case_value(enum_name: &str, value: &str) -> String {
    let mut pascal = String::with_capacity(value.len());
    let mut capitalise = true;
    for character in without_prefix(enum_name, value).chars() {
        if character == '_' {
            capitalise = true;
        } else if capitalise {
            pascal.push(character.to_ascii_uppercase());
            capitalise = false;
        } else {
            pascal.push(character.to_ascii_lowercase());
        }
    }
    pascal
}

/// Strips `prefix` from `name`, ignoring case and underscores. Returns `name` unchanged if it does not start with
/// `prefix` or if nothing would be left.
fn without_prefix<'n>(prefix: &str, name: &'n str) -> &'n str {
    let mut rest = name;
    for expected in prefix.chars().filter(|&character| character != '_') {
        let mut characters = rest.trim_start_matches('_').chars();
        if !characters.next().is_some_and(|character| character.eq_ignore_ascii_case(&expected)) {
            return name;
        }
        rest = characters.as_str();
    }
    let rest = rest.trim_start_matches('_');
    if rest.is_empty() { name } else { rest }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_names_equal_those_of_protoc() {
        let names = ["foo_bar", "fooBar", "FOO_BAR", "_foo", "foo_", "foo__bar", "field_1", "a1_b2"];
        let expected = ["fooBar", "fooBar", "FOOBAR", "Foo", "foo", "fooBar", "field1", "a1B2"];
        assert_eq!(names.map(json_name), expected);
    }

    #[test]
    fn enum_prefix_is_removed_from_value_names() {
        let check = |enum_name, value, expected| {
            assert_eq!(pascal_case_value(enum_name, value), expected, "{value} of {enum_name}");
        };
        check("MyEnum", "MY_ENUM_SOME_VALUE", "SomeValue");
        check("MyEnum", "my_enumSOME__value_", "SomeValue");
        check("_My_Enum", "__MYENUM__A", "A");
        check("MyEnum", "MY_EN", "MyEn");
        check("MyEnum", "YOUR_ENUM_A", "YourEnumA");
        check("Foo", "FOOD", "D");
        check("Foo", "FOO_FOO_A", "FooA");
        // The rest may start with a digit, although names cannot; it may not be empty.
        check("Foo", "FOO_1", "1");
        check("Foo", "FOO_", "Foo");
        check("Foo", "FOO", "Foo");
        check("Foo", "_", "");
    }
}
