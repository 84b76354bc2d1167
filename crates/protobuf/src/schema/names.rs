//! Names that are made of other names, by the rules of protoc.

/// The lowerCamelCase form of a field's name, by protoc's rule: underscores go, and what follows one is capitalised.
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

/// The name of an enum's value as generated code may write it, by protoc's rule: without the enum's name in front, in
/// PascalCase. `MY_ENUM_SOME_VALUE` of `MyEnum` is `SomeValue`.
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

/// What is behind `prefix`, whatever the case of either and wherever they have underscores; all of it, if it does not
/// begin so, or if nothing would be left.
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
    fn json_names_are_those_of_protoc() {
        let names = ["foo_bar", "fooBar", "FOO_BAR", "_foo", "foo_", "foo__bar", "field_1", "a1_b2"];
        let expected = ["fooBar", "fooBar", "FOOBAR", "Foo", "foo", "fooBar", "field1", "a1B2"];
        assert_eq!(names.map(json_name), expected);
    }

    #[test]
    fn values_lose_the_name_of_their_enum() {
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
        // A digit may be left, though no name begins with one; nothing may not.
        check("Foo", "FOO_1", "1");
        check("Foo", "FOO_", "Foo");
        check("Foo", "FOO", "Foo");
        check("Foo", "_", "");
    }
}
