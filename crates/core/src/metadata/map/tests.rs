use super::*;
use crate::metadata::{KeyAndMutValueRef, KeyAndValueRef, KeyRef, MetadataKey, ValueRef, ValueRefMut};

fn text(value: &str) -> MetadataValue<Ascii> {
    value.parse().unwrap()
}

fn bytes(value: &[u8]) -> MetadataValue<Binary> {
    MetadataValue::from_bytes(value)
}

/// Two values of a text key, one of a binary one.
fn sample() -> MetadataMap {
    let mut map = MetadataMap::new();
    assert!(map.insert("a", text("1")).is_none());
    assert!(map.append("a", text("2")));
    assert!(!map.append_bin("b-bin", bytes(b"3")));
    map
}

#[test]
fn methods_see_values_of_their_encoding_only() {
    let mut map = sample();
    assert_eq!((map.len(), map.keys_len(), map.is_empty()), (3, 2, false));
    assert_eq!((map.get("a").unwrap(), map.get("A").unwrap()), (&text("1"), &text("1")));
    assert_eq!(map.get_bin("b-bin").unwrap(), &b"3"[..]);
    assert!(map.get("b-bin").is_none() && map.get_bin("a").is_none() && map.get("c").is_none());
    assert!(map.get_mut("b-bin").is_none() && map.get_bin_mut("a").is_none());
    assert!(map.remove("b-bin").is_none() && map.remove_bin("a").is_none());
    assert_eq!((map.get_all("b-bin").iter().count(), map.get_all_bin("a").iter().count()), (0, 0));
    assert!(map.entry("b-bin").is_err() && map.entry_bin("a").is_err() && map.entry("a b").is_err());
    // Text that is no header name finds nothing.
    assert!(map.get("a b").is_none() && !map.contains_key("") && map.contains_key("b-bin"));
    assert_eq!(map.len(), 3);
}

#[test]
fn keys_of_all_types_find_the_same() {
    let mut map = sample();
    let key = MetadataKey::<Ascii>::from_static("a");
    let owned = String::from("a");
    assert!(
        [map.get("a"), map.get(&owned), map.get(owned.clone()), map.get(&key), map.get(key.clone())]
            .iter()
            .all(|found| found.is_some_and(|value| value == "1"))
    );
    assert!(map.contains_key(&key) && map.contains_key(key.clone()) && map.contains_key(&owned));
    assert!(map.contains_key(owned.clone()) && map.entry(owned).is_ok());
    assert_eq!(map.insert(&key, text("4")).unwrap(), "1");
    assert_eq!(map.insert(key.clone(), text("5")).unwrap(), "4");
    assert!(map.append(key, text("6")));
    assert_eq!(map.get_all("a").iter().collect::<Vec<_>>(), ["5", "6"]);
}

#[test]
fn values_of_a_key_keep_their_order() {
    let map = sample();
    let all = map.get_all("a");
    assert_eq!(all.iter().collect::<Vec<_>>(), ["1", "2"]);
    assert_eq!(all.iter().rev().collect::<Vec<_>>(), ["2", "1"]);
    assert_eq!((&all).into_iter().count(), 2);
    assert_eq!(all.iter().size_hint().0, 1);
    assert!(all == sample().get_all("a") && all != map.get_all("c"));
}

#[test]
#[should_panic(expected = "has values of the other encoding")]
fn static_key_of_other_encoding_panics() {
    MetadataMap::new().insert("a-bin", text("1"));
}

#[test]
#[should_panic(expected = "has values of the other encoding")]
fn static_key_without_suffix_panics() {
    MetadataMap::new().append_bin("a", bytes(b""));
}

#[test]
fn iterators_tell_the_encoding() {
    let mut map = sample();
    let describe = |pair: KeyAndValueRef<'_>| match pair {
        KeyAndValueRef::Ascii(key, value) => format!("{key}={}", value.to_str().unwrap()),
        KeyAndValueRef::Binary(key, value) => format!("{key}={:?}", value.to_bytes().unwrap()),
    };
    let mut pairs: Vec<_> = map.iter().map(describe).collect();
    pairs.sort();
    assert_eq!(pairs, ["a=1", "a=2", "b-bin=b\"3\""]);
    assert_eq!((&map).into_iter().count(), 3);

    let keys = map.keys();
    assert_eq!(keys.len(), 2);
    let is_binary = |key| matches!(key, KeyRef::Binary(key) if key == "b-bin");
    assert_eq!(keys.map(is_binary).filter(|is_binary| *is_binary).count(), 1);
    let is_text = |value: &ValueRef<'_>| matches!(value, ValueRef::Ascii(_));
    assert_eq!((map.values().count(), map.values().filter(is_text).count()), (3, 2));

    for value in map.values_mut() {
        match value {
            ValueRefMut::Ascii(value) => *value = text("x"),
            ValueRefMut::Binary(value) => *value = bytes(b"y"),
        }
    }
    assert_eq!((map.get("a").unwrap(), map.get_bin("b-bin").unwrap()), (&text("x"), &bytes(b"y")));
    for pair in &mut map {
        match pair {
            KeyAndMutValueRef::Ascii(_, value) => value.set_sensitive(true),
            KeyAndMutValueRef::Binary(_, value) => *value = bytes(b"z"),
        }
    }
    assert!(map.get("a").unwrap().is_sensitive());
    assert_eq!(map.remove_bin("b-bin").unwrap(), &b"z"[..]);
}

#[test]
fn entries_change_values() {
    let mut map = sample();
    assert_eq!(map.entry("c").unwrap().or_insert(text("7")), "7");
    assert_eq!(map.entry("c").unwrap().or_insert_with(|| unreachable!()), "7");
    for key in ["c", "d"] {
        assert_eq!(map.entry(key).unwrap().key(), key);
    }

    let Entry::Occupied(mut entry) = map.entry("a").unwrap() else { panic!("vacant") };
    assert_eq!((entry.key().as_str(), entry.get()), ("a", &text("1")));
    entry.append(text("3"));
    *entry.get_mut() = text("0");
    assert_eq!(entry.iter().collect::<Vec<_>>(), ["0", "2", "3"]);
    entry.iter_mut().for_each(|value| value.set_sensitive(true));
    assert!(entry.iter().all(MetadataValue::is_sensitive));
    assert_eq!(entry.insert_mult(text("8")).collect::<Vec<_>>(), ["0", "2", "3"]);
    assert_eq!(entry.insert(text("9")), "8");
    assert_eq!(entry.into_mut(), "9");

    let Entry::Vacant(entry) = map.entry_bin("e-bin").unwrap() else { panic!("occupied") };
    assert_eq!(entry.insert_entry(bytes(b"5")).get(), "NQ");
    let Entry::Vacant(entry) = map.entry("f").unwrap() else { panic!("occupied") };
    assert_eq!(entry.into_key(), "f");

    let Entry::Occupied(entry) = map.entry_bin("e-bin").unwrap() else { panic!("vacant") };
    let (key, value) = entry.remove_entry();
    assert_eq!((key.as_str(), value), ("e-bin", bytes(b"5")));
    assert!(map.append("a", text("10")));
    let Entry::Occupied(entry) = map.entry("a").unwrap() else { panic!("vacant") };
    let (key, values) = entry.remove_entry_mult();
    assert_eq!((key.as_str(), values.collect::<Vec<_>>()), ("a", vec![text("9"), text("10")]));
    let Entry::Occupied(entry) = map.entry("c").unwrap() else { panic!("vacant") };
    assert_eq!(entry.remove(), "7");
    assert_eq!(map.len(), 1);
}

#[test]
fn fields_that_grpc_writes_are_removed() {
    let mut map = sample();
    for name in ["te", "content-type", "grpc-message", "grpc-message-type", "grpc-status"] {
        map.insert(name, text("x"));
    }
    let headers = map.into_sanitized_headers();
    assert_eq!(headers.keys_len(), 2);
    assert!(headers.contains_key("a") && headers.contains_key("b-bin"));
}

#[test]
fn merged_values_replace_those_of_the_same_key() {
    let mut map = sample();
    let mut other = MetadataMap::with_capacity(2);
    other.append("a", text("8"));
    other.append("a", text("9"));
    map.merge(other);
    assert_eq!(map.get_all("a").iter().collect::<Vec<_>>(), ["8", "9"]);
    assert!(map.contains_key("b-bin"));
    map.clear();
    assert!(map.is_empty() && map.capacity() > 0);
}
