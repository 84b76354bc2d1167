//! JSON with members in insertion order, because people read these documents.

use std::borrow::Cow;

use serde::{Serialize, Serializer};

type Text = Cow<'static, str>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Json {
    Bool(bool),
    Number(i64),
    Text(Text),
    List(Vec<Json>),
    Object(Object),
}

/// Members of an object, without duplicates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Object(Vec<(Text, Json)>);

impl Object {
    pub(super) fn new() -> Self {
        Self::default()
    }

    pub(super) fn with(mut self, name: impl Into<Text>, value: impl Into<Json>) -> Self {
        self.set(name, value);
        self
    }

    /// Sets the member only if there is a value.
    pub(super) fn with_some(mut self, name: &'static str, value: Option<impl Into<Json>>) -> Self {
        if let Some(value) = value {
            self.set(name, value);
        }
        self
    }

    pub(super) fn set(&mut self, name: impl Into<Text>, value: impl Into<Json>) {
        let (name, value) = (name.into(), value.into());
        match self.0.iter_mut().find(|(of, _)| *of == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name, value)),
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<&Json> {
        self.0.iter().find(|(of, _)| of == name).map(|(_, value)| value)
    }

    pub(super) fn without(mut self, name: &str) -> Self {
        self.0.retain(|(of, _)| of != name);
        self
    }

    /// Appends its members to those of another object.
    pub(super) fn and(self, other: Object) -> Self {
        other
            .0
            .into_iter()
            .chain(self.0)
            .fold(Object::new(), |object, (name, value)| object.with(name, value))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns `None` for an empty object.
    pub(super) fn some(self) -> Option<Self> {
        (!self.is_empty()).then_some(self)
    }
}

impl From<bool> for Json {
    fn from(value: bool) -> Self {
        Json::Bool(value)
    }
}

impl From<i64> for Json {
    fn from(value: i64) -> Self {
        Json::Number(value)
    }
}

impl From<&'static str> for Json {
    fn from(text: &'static str) -> Self {
        Json::Text(text.into())
    }
}

impl From<String> for Json {
    fn from(text: String) -> Self {
        Json::Text(text.into())
    }
}

impl From<Object> for Json {
    fn from(object: Object) -> Self {
        Json::Object(object)
    }
}

impl<T: Into<Json>> From<Vec<T>> for Json {
    fn from(list: Vec<T>) -> Self {
        Json::List(list.into_iter().map(Into::into).collect())
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Json::Bool(value) => serializer.serialize_bool(*value),
            Json::Number(value) => serializer.serialize_i64(*value),
            Json::Text(text) => serializer.serialize_str(text),
            Json::List(list) => serializer.collect_seq(list),
            Json::Object(object) => object.serialize(serializer),
        }
    }
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

#[cfg(test)]
mod tests {
    use super::Object;

    #[test]
    fn members_keep_their_order() {
        let object =
            Object::new().with("z", "1").with("a", vec![1, 2]).with("z", true).with_some("n", None::<bool>);
        assert_eq!(serde_json::to_string(&object).unwrap(), r#"{"z":true,"a":[1,2]}"#);
    }
}
