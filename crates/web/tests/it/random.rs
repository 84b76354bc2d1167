//! Random input never causes a panic.

use std::collections::BTreeSet;

use bytes::Bytes;
use http::Method;
use thalweg_protobuf::json::PrintOptions;
use thalweg_web::transcoding::{Content, Lookup, RequestOptions, Segment, Template, request, response};

use crate::declared::service;
use crate::support::router;

/// xorshift64*: deterministic for a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % end
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    fn text(&mut self, pieces: &[&str], len_max: usize) -> String {
        (0..self.below(len_max)).map(|_| self.pick(pieces)).collect()
    }
}

#[test]
fn templates() {
    let pieces = [
        "/", "/", "/", "*", "**", "{", "}", "=", ".", ":", "a", "b_1", "x", "%", "%2F", "-", "é", " ", "{x}",
        "{y=a/*}",
    ];
    let mut random = Random(0x5eed_0001);
    let mut parsed = 0;
    for _ in 0..200_000 {
        let text = random.text(&pieces, 12);
        match text.parse::<Template>() {
            Ok(template) => {
                parsed += 1;
                assert_eq!(template.to_string(), text);
                // Its shape is a template with the same segments.
                let shape: Template = template.shape().parse().unwrap();
                assert_eq!((shape.segments(), shape.verb()), (template.segments(), template.verb()));
                assert!(
                    template
                        .variables()
                        .iter()
                        .all(|variable| variable.segments.end <= shape.segments().len())
                );
            }
            Err(error) => assert!((1..=text.len() + 1).contains(&error.column), "{error}"),
        }
    }
    assert!(parsed > 1000, "{parsed}");
}

/// Returns the best of the templates that match a path, without a tree.
fn best<'t>(templates: &'t [Template], path: &str) -> Option<&'t Template> {
    let inside = path.strip_prefix('/')?;
    let segments = |text: &str| -> Vec<String> {
        if text.is_empty() { Vec::new() } else { text.split('/').map(str::to_owned).collect() }
    };
    let with_verb = inside.rsplit_once(':').filter(|(_, verb)| !verb.contains('/'));
    let tries = with_verb.map(|(front, verb)| (segments(front), Some(verb)));
    for (path, verb) in tries.into_iter().chain([(segments(inside), None)]) {
        let matching = templates
            .iter()
            .filter(|template| template.verb() == verb)
            .filter_map(|template| rank(template.segments(), &path).map(|rank| (rank, template)));
        if let Some((_, template)) = matching.min_by_key(|(rank, _)| rank.clone()) {
            return Some(template);
        }
    }
    None
}

/// Returns the rank of a match, lower is better: up to `**`, 0 per literal and 1 per `*`; for `**`, 2 and a number that
/// decreases with the literals after it.
fn rank(segments: &[Segment], path: &[String]) -> Option<Vec<usize>> {
    let one = |segment: &Segment, text: &String| match segment {
        Segment::Literal(literal) => (**literal == **text).then_some(0),
        Segment::Any => (!text.is_empty()).then_some(1),
        Segment::Rest => None,
    };
    let Some(rest_at) = segments.iter().position(|segment| *segment == Segment::Rest) else {
        let is_len = segments.len() == path.len();
        return is_len
            .then(|| segments.iter().zip(path).map(|(segment, text)| one(segment, text)).collect())?;
    };
    let suffix_len = segments.len() - rest_at - 1;
    if path.len() < rest_at + suffix_len {
        return None;
    }
    let mut rank: Vec<usize> = segments[..rest_at]
        .iter()
        .zip(path)
        .map(|(segment, text)| one(segment, text))
        .collect::<Option<_>>()?;
    let ends = segments[rest_at + 1..].iter().zip(&path[path.len() - suffix_len..]);
    ends.map(|(segment, text)| one(segment, text)).collect::<Option<Vec<usize>>>()?;
    rank.extend([2, usize::MAX - suffix_len]);
    Some(rank)
}

#[test]
fn routing_tree_matches_linear_search() {
    let mut random = Random(0x5eed_0002);
    for _ in 0..60 {
        let mut shapes = BTreeSet::new();
        let mut templates: Vec<Template> = Vec::new();
        while templates.len() < 12 {
            let segments: Vec<&str> =
                (0..=random.below(4)).map(|_| random.pick(&["a", "b", "c", "*", "*", "**"])).collect();
            let verb = random.pick(&["", "", ":v", ":w"]);
            let parsed = format!("/{}{verb}", segments.join("/")).parse::<Template>();
            templates.extend(parsed.ok().filter(|template| shapes.insert(template.shape())));
        }
        let rules: Vec<String> = templates.iter().map(|template| format!("get: \"{template}\"")).collect();
        let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
        let router = router(&service("message In {}", "In", "In", &rules));
        for _ in 0..300 {
            let path = format!("/{}", random.text(&["a", "b", "c", "d", "/", "/", ":v", ":w", ":"], 9));
            let found = match router.find(&Method::GET, &path) {
                Lookup::Route(route) => Some(route.binding().template().to_string()),
                _ => None,
            };
            assert_eq!(found, best(&templates, &path).map(Template::to_string), "{path} of {rules:?}");
        }
    }
}

#[test]
fn random_requests_and_responses_round_trip() {
    let messages = "enum E { Z = 0; Y = 1; } message In {
        string s = 1; int32 i = 2; repeated bytes b = 3; map<string, E> m = 4; In in = 5; repeated In ins = 6;
        google.protobuf.Timestamp t = 7; google.protobuf.FieldMask update_mask = 8; google.protobuf.Struct st = 9;
        oneof o { string left = 10; In right = 11; google.protobuf.DoubleValue d = 12; }
        google.api.HttpBody raw = 13; }";
    let rules = [
        "get: \"/q\"",
        "get: \"/{s}/{in.s=a/*}/{i}:v\"",
        "post: \"/{in.in.s=**}/w\" body: \"in\"",
        "patch: \"/{in.s}\" body: \"in\" response_body: \"ins\"",
        "put: \"/{s=**}\" body: \"*\" response_body: \"m\"",
        "delete: \"/{s=**}\" body: \"raw\" response_body: \"raw\"",
    ];
    let router = router(&service(messages, "In", "In", &rules));
    let methods = [Method::GET, Method::POST, Method::PATCH, Method::PUT, Method::DELETE];
    let paths = ["/", "/", "a", "q", "w", ":v", ":", "%", "%2F", "%ff", "é", "1", "-", "//", "*"];
    let queries = [
        "s",
        "i",
        "b",
        "m",
        "in",
        "ins",
        "t",
        "st",
        "left",
        "right",
        "d",
        "raw",
        "updateMask",
        ".",
        "[",
        "]",
        "=",
        "=",
        "&",
        "&",
        "1",
        "a",
        "%41",
        "%",
        "%ff",
        "+",
        "$",
        "{}",
        "\"",
        "1970-01-01T00:00:00Z",
        "é",
        "\0",
    ];
    let bodies = [
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "\"s\"",
        "\"i\"",
        "\"in\"",
        "\"ins\"",
        "\"m\"",
        "\"t\"",
        "null",
        "true",
        "1",
        "1e9",
        "\"",
        "\\",
        " ",
        "\n",
        "{\"s\":\"x\"}",
        "{\"in\":{\"i\":1}}",
        "\u{0}",
        "é",
    ];
    let mut random = Random(0x5eed_0003);
    let (mut built, mut refused) = (0, 0);
    for round in 0..60_000 {
        let path = format!("/{}", random.text(&paths, 8));
        let query = random.text(&queries, 12);
        let mut data = random.text(&bodies, 8).into_bytes();
        if !data.is_empty() && random.below(20) == 0 {
            let at = random.below(data.len());
            data[at] = random.below(256) as u8;
        }
        let method = &methods[random.below(methods.len())];
        let Lookup::Route(route) = router.find(method, &path) else { continue };
        assert!(route.variables().count() == route.binding().variables().len());
        let mut options = RequestOptions::default();
        options.parse.ignore_unknown = round % 3 == 0;
        let content = Content { content_type: "a/b".to_owned(), data: data.clone().into() };
        let mut wire = Vec::new();
        let result = request::to_wire(router.rules(), &route, &query, &content, &options, &mut wire);
        match result {
            Ok(()) => {
                built += 1;
                // The wire bytes are a valid message and can be a response.
                let message_type = router.rules().input(route.binding());
                thalweg_protobuf::Message::decode(message_type, wire.clone()).unwrap();
                let print = PrintOptions::default().allow_partial(true);
                drop(response::from_wire(router.rules(), route.binding(), &wire.into(), &print));
            }
            Err(error) => {
                refused += 1;
                assert!(wire.is_empty() && !error.to_string().is_empty());
            }
        }
        drop(response::from_wire(
            router.rules(),
            route.binding(),
            &Bytes::from(data),
            &PrintOptions::default(),
        ));
    }
    assert!(built > 1000 && refused > 1000, "{built} {refused}");
}
