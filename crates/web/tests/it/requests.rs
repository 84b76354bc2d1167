//! Paths, queries and bodies that become messages.

use bytes::Bytes;
use thalweg_protobuf::json::ParseOptions;
use thalweg_protobuf::{Message, Value};
use thalweg_web::transcoding::{Content, RequestError, RequestOptions, Router};

use crate::declared::service;
use crate::support::{router, to_json, to_wire};

const MESSAGES: &str = r#"
    enum Colour { NONE = 0; RED = 1; DARK_BLUE = 2; }
    message Inner {
        string text = 1;
        Inner inner = 2;
        repeated int32 numbers = 3;
        oneof choice { string left = 4; int32 right = 5; Inner deep = 6; }
        map<string, string> labels = 7;
    }
    message All {
        double double = 1; float float = 2; int32 int32 = 3; int64 int64 = 4; uint32 uint32 = 5; uint64 uint64 = 6;
        sint32 sint32 = 7; sint64 sint64 = 8; fixed32 fixed32 = 9; fixed64 fixed64 = 10; sfixed32 sfixed32 = 11;
        sfixed64 sfixed64 = 12; bool bool = 13; string text = 14; bytes bytes = 15; Colour colour = 16;
        Inner inner = 17;
        repeated string texts = 18; repeated int64 longs = 19; repeated Colour colours = 20; repeated Inner inners = 21;
        map<string, int32> counts = 22; map<int32, Colour> by_number = 23; map<bool, bytes> by_bool = 24;
        map<string, Inner> by_name = 25;
        optional int32 maybe = 26; string renamed = 27 [json_name = "other-name"];
        google.protobuf.Timestamp time = 30; google.protobuf.Duration lasts = 31;
        google.protobuf.FieldMask mask = 32; repeated google.protobuf.Timestamp times = 33;
        google.protobuf.DoubleValue double_box = 34; google.protobuf.Int64Value int64_box = 35;
        google.protobuf.BoolValue bool_box = 36; google.protobuf.StringValue text_box = 37;
        google.protobuf.BytesValue bytes_box = 38; google.protobuf.Struct object = 39;
        google.protobuf.Value any_value = 40; google.protobuf.Empty empty = 41; google.protobuf.ListValue list = 42;
        google.protobuf.UInt32Value uint32_box = 43;
        oneof one { string first = 50; int32 second = 51; Inner third = 52; }
        google.protobuf.FieldMask update_mask = 60;
        google.api.HttpBody raw = 61;
    }"#;

const RULES: [&str; 12] = [
    "get: \"/all\"",
    "post: \"/all\" body: \"*\"",
    "post: \"/inner/{int32}\" body: \"inner\"",
    "patch: \"/inner/{inner.text}\" body: \"inner\"",
    "get: \"/path/{colour}/{bool}/{double}/{bytes}/{inner.inner.text=a/**}\"",
    "put: \"/text\" body: \"text\"",
    "put: \"/texts\" body: \"texts\"",
    "put: \"/counts\" body: \"counts\"",
    "put: \"/time\" body: \"time\"",
    "put: \"/raw/{text}\" body: \"raw\"",
    "get: \"/first/{first}\"",
    "patch: \"/whole/{int32}\" body: \"*\"",
];

/// Invalid JSON: no value, or objects and arrays that end too early or in a wrong way.
pub(crate) const NO_JSON: [&str; 9] = [
    "Wrong",
    r#"{"text")"#,
    r#"{"text": "a")"#,
    r#"{"text", "name": "a"}"#,
    r#"{"text": "a"]"#,
    r#"["text", "name": "a"}"#,
    r#"{"text": "a", {"words": ["a", "b"} ]}"#,
    r#"["text": "a"]}"#,
    r#"[{"text": "a"]"#,
];

fn all() -> Router {
    router(&service(MESSAGES, "All", "All", &RULES))
}

#[track_caller]
fn check(request: &str, expected: &str) {
    check_with(&RequestOptions::default(), request, expected);
}

/// Checks the JSON of the message, or the error, for a request `METHOD target body`.
#[track_caller]
fn check_with(options: &RequestOptions, request: &str, expected: &str) {
    let mut parts = request.splitn(3, ' ');
    let mut next = || parts.next().unwrap_or("");
    let (method, target, body) = (next(), next(), next());
    let json = to_json(&all(), method, target, body, options).unwrap_or_else(|error| error.to_string());
    assert_eq!(json, expected, "{request}");
}

fn ignoring() -> RequestOptions {
    RequestOptions::default().parse(ParseOptions::default().ignore_unknown(true))
}

#[test]
fn query_parameters_of_every_type() {
    check(
        "GET /all?double=2.5&float=1.5&int32=-2&int64=-1&uint32=4&uint64=3&sint32=-7&sint64=-8&fixed32=9&fixed64=10",
        concat!(
            r#"{"double":2.5,"float":1.5,"int32":-2,"int64":"-1","uint32":4,"uint64":"3","sint32":-7,"#,
            r#""sint64":"-8","fixed32":9,"fixed64":"10"}"#
        ),
    );
    check(
        "GET /all?sfixed32=-11&sfixed64=-12&bool=true&text=str&bytes=Ynl0ZXM%3D&colour=RED&maybe=0",
        concat!(
            r#"{"sfixed32":-11,"sfixed64":"-12","bool":true,"text":"str","bytes":"Ynl0ZXM=","colour":"RED","#,
            r#""maybe":0}"#
        ),
    );
    check(
        "GET /all?uint64=18446744073709551615&int64=-9223372036854775808&double=1e3&float=NaN&int32=1e2",
        r#"{"double":1000,"float":"NaN","int32":100,"int64":"-9223372036854775808","uint64":"18446744073709551615"}"#,
    );
    check("GET /all?double=-Infinity&text=&bytes=", r#"{"double":"-Infinity"}"#);
    check(
        "GET /all?colour=2&colours=RED&colours=2&colours=0",
        r#"{"colour":"DARK_BLUE","colours":["RED","DARK_BLUE","NONE"]}"#,
    );
    check("GET /all?colour=7", r#"{"colour":7}"#);
    check("GET /all?texts=a&longs=1&texts=b&longs=-2&texts=", r#"{"texts":["a","b",""],"longs":["1","-2"]}"#);
    check("GET /all", "{}");
    check("GET /all?", "{}");
    check("GET /all?&&text=a&", r#"{"text":"a"}"#);
    check("GET /all?first=a", r#"{"first":"a"}"#);
}

#[test]
fn parameter_may_use_schema_or_json_name() {
    check("GET /all?double_box=1.5&int64Box=2", r#"{"doubleBox":1.5,"int64Box":"2"}"#);
    check("GET /all?renamed=a", r#"{"other-name":"a"}"#);
    check("GET /all?other-name=a", r#"{"other-name":"a"}"#);
    check("GET /all?inner.inner.inner.text=a", r#"{"inner":{"inner":{"inner":{"text":"a"}}}}"#);
    check(
        "GET /all?inner.text=t&inner.inner.numbers=1&inner.inner.text=u&inner.inner.numbers=2&inner.numbers=3",
        r#"{"inner":{"text":"t","inner":{"text":"u","numbers":[1,2]},"numbers":[3]}}"#,
    );
    check("GET /all?%74ext=a&inner%2Etext=b", r#"{"text":"a","inner":{"text":"b"}}"#);
}

#[test]
fn map_entries_are_parameters() {
    check("GET /all?counts[a]=1&counts[b.c]=-2&counts%5B%5D=3", r#"{"counts":{"a":1,"b.c":-2,"":3}}"#);
    check("GET /all?by_number[-2]=RED&byNumber[3]=2", r#"{"byNumber":{"-2":"RED","3":"DARK_BLUE"}}"#);
    check("GET /all?by_bool[true]=YQ", r#"{"byBool":{"true":"YQ=="}}"#);
    check("GET /all?inner.labels[~!@%23$%25^%26*()[]]=v", r#"{"inner":{"labels":{"~!@#$%^&*()[]":"v"}}}"#);
    check("GET /all?counts[a]=x", "parameter `counts[a]`: `x` is not a number");
    check("GET /all?by_number[x]=1", "parameter `by_number[x]`: invalid key: `x` is not a number");
    check("GET /all?counts[a=1", "parameter `counts[a`: expected a closing bracket at the end");
    check("GET /all?counts[a]b=1", "parameter `counts[a]b`: expected a closing bracket at the end");
    check(
        "GET /all?counts=1",
        "parameter `counts`: the field is a map; add the key in brackets after the name",
    );
    check("GET /all?text[a]=1", "parameter `text[a]`: the field is not a map and has no keys");
    check(
        "GET /all?by_name[a]=1",
        "parameter `by_name[a]`: t.Inner is a message and cannot be set from a single value",
    );
}

#[test]
fn well_known_types_use_their_json_form() {
    check(
        "GET /all?time=2016-12-15T12:23:32.000000049Z&lasts=46800s&mask=float_value,doubleValue,a.b_c",
        r#"{"time":"2016-12-15T12:23:32.000000049Z","lasts":"46800s","mask":"floatValue,doubleValue,a.bC"}"#,
    );
    check(
        "GET /all?time=2016-12-15T12:23:32%2B01:00&times=1970-01-01T00:00:00Z&times=1970-01-01T00:00:01Z",
        r#"{"time":"2016-12-15T11:23:32Z","times":["1970-01-01T00:00:00Z","1970-01-01T00:00:01Z"]}"#,
    );
    check(
        "GET /all?double_box=0&int64_box=-1&bool_box=false&text_box=&bytes_box=YQ&uint32_box=7",
        r#"{"doubleBox":0,"int64Box":"-1","boolBox":false,"textBox":"","bytesBox":"YQ==","uint32Box":7}"#,
    );
    check(
        "GET /all?object={\"a\":[1,null]}&any_value=\"x\"&list=[true]",
        r#"{"object":{"a":[1,null]},"anyValue":"x","list":[true]}"#,
    );
    check("GET /all?time.seconds=5", r#"{"time":"1970-01-01T00:00:05Z"}"#);
    check("GET /all?mask=", r#"{"mask":""}"#);
    check("GET /all?time=now", "parameter `time`: `now` is not a timestamp such as 2024-02-29T12:00:00.5Z");
    check("GET /all?lasts=13h0m0s", "parameter `lasts`: `13h0m0s` is not a duration such as 1.5s");
    check("GET /all?mask=a__b", "parameter `mask`: invalid field path `a__b`");
    check("GET /all?bool_box=yes", "parameter `bool_box`: `yes` is neither true nor false");
    check(
        "GET /all?empty=",
        "parameter `empty`: google.protobuf.Empty is a message and cannot be set from a single value",
    );
}

#[test]
fn plus_is_a_space_if_enabled() {
    check("GET /all?text=Hello+world&inner.text=%2B+%20", r#"{"text":"Hello world","inner":{"text":"+  "}}"#);
    let options = RequestOptions::default().plus_is_space(false);
    check_with(
        &options,
        "GET /all?text=Hello+world%2B%20&bytes=+/8=",
        r#"{"text":"Hello+world+ ","bytes":"+/8="}"#,
    );
    check("GET /all?text=a=b==", r#"{"text":"a=b=="}"#);
    check("GET /all?text=caf%C3%A9", "{\"text\":\"caf\u{e9}\"}");
}

#[test]
fn invalid_parameters_are_reported() {
    check("GET /all?nothing=1", "parameter `nothing`: t.All has no field `nothing`");
    check("GET /all?inner.nothing=1", "parameter `inner.nothing`: t.Inner has no field `nothing`");
    check("GET /all?inner..text=1", "parameter `inner..text`: t.Inner has no field ``");
    check("GET /all?=1", "parameter ``: t.All has no field ``");
    check("GET /all?text.more=1", "parameter `text.more`: `text` is not a message and has no fields");
    check(
        "GET /all?inners.text=1",
        "parameter `inners.text`: `inners` is repeated, so its messages cannot be addressed",
    );
    check(
        "GET /all?inner=x",
        "parameter `inner`: t.Inner is a message and cannot be set from a single value",
    );
    check("GET /all?int32=x", "parameter `int32`: `x` is not a number");
    check("GET /all?int32", "parameter `int32`: `` is not a number");
    check("GET /all?int32=1.5", "parameter `int32`: `1.5` is not a whole number");
    check("GET /all?int32=2147483648", "parameter `int32`: 2147483648 is out of range");
    check("GET /all?uint32=-1", "parameter `uint32`: -1 is out of range");
    check("GET /all?int32=%201", "parameter `int32`: ` 1` is not a number");
    check("GET /all?bool=1", "parameter `bool`: `1` is neither true nor false");
    check("GET /all?bytes=a", "parameter `bytes`: `a` is not base64");
    check("GET /all?colour=PINK", "parameter `colour`: t.Colour has no value `PINK`");
    check("GET /all?text=a&text=b", "parameter `text`: duplicate parameter of a field that is not repeated");
    check(
        "GET /all?inner.text=a&inner.text=b",
        "parameter `inner.text`: duplicate parameter of a field that is not repeated",
    );
    check("GET /all?first=a&second=1", "parameter `second`: another field of the oneof `one` is set");
    check("GET /all?third.text=a&first=1", "parameter `first`: another field of the oneof `one` is set");
    check("GET /all?third.text=a&third.left=1", r#"{"third":{"text":"a","left":"1"}}"#);
    check(
        "GET /all?inner.left=a&inner.deep.text=1",
        "parameter `inner.deep.text`: another field of the oneof `choice` is set",
    );
    check("GET /all?text=%zz", "parameter `text`: expected two hexadecimal digits after %");
    check("GET /all?%zz=a", "parameter `%zz`: expected two hexadecimal digits after %");
    check("GET /all?text=%ff", "parameter `text`: percent-decoded text is not UTF-8");
    let deep = format!("GET /all?{}text=a", "inner.".repeat(101));
    assert!(to_json(&all(), "GET", &deep[4..], "", &RequestOptions::default()).is_err());
    let deep = format!("GET /all?{}text=a", "inner.".repeat(99));
    assert!(to_json(&all(), "GET", &deep[4..], "", &RequestOptions::default()).is_ok());
}

#[test]
fn number_of_parameters_is_limited() {
    let options = RequestOptions::default().parameters_max(2);
    check_with(&options, "GET /all?texts=a&texts=b", r#"{"texts":["a","b"]}"#);
    check_with(&options, "GET /all?texts=a&texts=b&$alt=c", "more than 2 parameters");
}

#[test]
fn named_parameters_may_be_ignored() {
    let ignored_parameters = vec!["utm_source".to_owned(), "text".to_owned()];
    let options = RequestOptions::default().ignored_parameters(ignored_parameters).parameters_max(4);
    check_with(&options, "GET /all?texts=a&utm_source=b&utm%5Fsource=%ff&text=c", r#"{"texts":["a"]}"#);
    check_with(&options, "GET /all?utm_medium=b", "parameter `utm_medium`: t.All has no field `utm_medium`");
    check_with(
        &options,
        "GET /all?text.a=b",
        "parameter `text.a`: `text` is not a message and has no fields",
    );
    check_with(&options, "GET /all?text&text&text&text&text", "more than 4 parameters");
}

#[test]
fn unknown_fields_may_be_ignored() {
    check("GET /all?$alt=json;enum-encoding=int&text=a", r#"{"text":"a"}"#);
    let options = ignoring();
    check_with(&options, "GET /all?nothing=1&inner.nothing=2&text=a&text.b=c", r#"{"text":"a"}"#);
    check_with(&options, "GET /all?colour=PINK&text=a", r#"{"text":"a"}"#);
    check_with(&options, "POST /all?text=b {\"text\": \"a\", \"nothing\": 1}", r#"{"text":"a"}"#);
    check_with(
        &options,
        r#"POST /all {"text": "a", "nothing": 1, "object": {"b": 1}, "none": {"text": "b"}, "row": [1, {}]}"#,
        r#"{"text":"a","object":{"b":1}}"#,
    );
    check_with(&options, "GET /all something", "{}");
    check_with(&options, "GET /all?int32=x", "parameter `int32`: `x` is not a number");
}

#[test]
fn variables_of_paths() {
    check(
        "GET /path/RED/true/-1.5/Ynl0ZXM/a/b%2Fc/d",
        r#"{"double":-1.5,"bool":true,"bytes":"Ynl0ZXM=","colour":"RED","inner":{"inner":{"text":"a/b%2Fc/d"}}}"#,
    );
    check("GET /path/0/false/0/%20/a", "path: bytes: ` ` is not base64");
    check("GET /path/PINK/true/1/YQ/a", "path: colour: t.Colour has no value `PINK`");
    check("GET /path/2/no/1/YQ/a", "path: bool: `no` is neither true nor false");
    check("GET /path/2/true/one/YQ/a", "path: double: `one` is not a number");
    check("GET /path/2/true/1/YQ/a/%zz", "path: inner.inner.text: expected two hexadecimal digits after %");
    // The query has the fields that the path leaves.
    check(
        "GET /path/2/true/1/YQ/a?inner.inner.left=x&inner.text=y",
        concat!(
            r#"{"double":1,"bool":true,"bytes":"YQ==","colour":"DARK_BLUE","#,
            r#""inner":{"text":"y","inner":{"text":"a","left":"x"}}}"#
        ),
    );
    check("GET /path/2/true/1/YQ/a?bool=false", "parameter `bool`: the field is in the path");
    check(
        "GET /path/2/true/1/YQ/a?inner.inner.text=b",
        "parameter `inner.inner.text`: the field is in the path",
    );
    check_with(
        &ignoring(),
        "GET /path/2/true/1/YQ/a?bool=false",
        r#"{"double":1,"bool":true,"bytes":"YQ==","colour":"DARK_BLUE","inner":{"inner":{"text":"a"}}}"#,
    );
    check("GET /first/a?second=1", "parameter `second`: another field of the oneof `one` is set");
}

#[test]
fn body_is_the_message_or_a_field() {
    check("POST /all {\"text\": \"a\", \"int32\": 1}", r#"{"int32":1,"text":"a"}"#);
    check(
        r#"POST /all {"inner": {"text": "a", "inner": {"left": "b", "inner": {"numbers": [1, -2]}}}, "int64": 1830}"#,
        concat!(
            r#"{"int64":"1830","#,
            r#""inner":{"text":"a","inner":{"inner":{"numbers":[1,-2]},"left":"b"}}}"#
        ),
    );
    check("POST /all", "{}");
    check("POST /all   ", "{}");
    check("POST /all?text=a {}", "parameter `text`: all fields are in the body or the path");
    check("POST /inner/5 {\"text\": \"a\"}", r#"{"int32":5,"inner":{"text":"a"}}"#);
    check("POST /inner/5", r#"{"int32":5}"#);
    check("POST /inner/5 null", r#"{"int32":5}"#);
    check("POST /inner/5?text=b {\"text\": \"a\"}", r#"{"int32":5,"text":"b","inner":{"text":"a"}}"#);
    check("POST /inner/5?inner.left=b {}", "parameter `inner.left`: the field is in the body");
    check("PUT /text \"a b\"", r#"{"text":"a b"}"#);
    check("PUT /texts [\"a\", \"b\"]", r#"{"texts":["a","b"]}"#);
    check("PUT /counts {\"a\": 1}", r#"{"counts":{"a":1}}"#);
    check("PUT /time \"1970-01-01T00:00:05Z\"", r#"{"time":"1970-01-01T00:00:05Z"}"#);
    check("GET /all {}", "{}");
    check("GET /all  ", "{}");
    check("GET /all {\"text\":1}", "this method accepts no body");
}

#[test]
fn path_overrides_body() {
    check("PATCH /whole/5 {\"int32\": 7, \"text\": \"a\"}", r#"{"int32":5,"text":"a"}"#);
    // Even if the path has zero.
    check("PATCH /whole/0 {\"int32\": 7}", "{}");
    check(
        "PATCH /inner/a {\"text\": \"b\", \"numbers\": [1]}",
        r#"{"inner":{"text":"a","numbers":[1]},"updateMask":"text,numbers"}"#,
    );
}

#[test]
fn invalid_json_is_reported_with_line_column_and_path() {
    check(
        "POST /all {\"inner\": {\"numbers\": [1, \"x\"]}}",
        "body: line 1, column 27: inner.numbers[1]: `x` is not a number",
    );
    check(
        "POST /inner/5 {\n \"numbers\":\n  [true]}",
        "body: line 3, column 4: inner.numbers[0]: expected a number, found true",
    );
    check("POST /inner/5 [1]", "body: line 1, column 1: inner: expected an object, found an array");
    check(
        "POST /all {\"text\": \"a\"",
        "body: line 1, column 13: expected `,` or `}`, found the end of the text",
    );
    check("POST /all {} {}", "body: line 1, column 4: expected the end of the text, found '{'");
    check("POST /all {\"nothing\": 1}", "body: line 1, column 2: t.All has no field `nothing`");
    // The error is at its start, since its end could be anywhere.
    check("PUT /text \"a", "body: line 1, column 1: text: unterminated string");
    check(
        "POST /all {\n \"text\": \"a, \"int32\": 1}",
        "body: line 2, column 15: expected `,` or `}`, found 'i'",
    );
    check("POST /all {\"text\":\n  \"a}", "body: line 2, column 3: text: unterminated string");
    check(
        "PATCH /inner/a {\"inner\": {\"x\": 1}}",
        "body: line 1, column 12: inner.inner: t.Inner has no field `x`",
    );
}

/// Returns the JSON of the message, or the error, for `post: TEMPLATE body: "*"`. The message type is recursive, so
/// that variables can be at any depth.
fn woven(template: &str, path: &str, body: &str) -> String {
    let messages = "message Node {
        string u = 1; string v = 2; string w = 3; int32 int32 = 4; uint32 uint32 = 5; int64 int64 = 6;
        uint64 uint64 = 7; float float = 8; double double = 9; bool bool = 10; bytes bytes = 11;
        Node a = 12; Node b = 13; Node c = 14; repeated Node list = 15; }";
    let rule = format!("post: \"{template}\" body: \"*\"");
    let router = router(&service(messages, "Node", "Node", &[&rule]));
    let json = to_json(&router, "POST", path, body, &RequestOptions::default());
    json.unwrap_or_else(|error| error.to_string())
}

#[test]
fn path_variables_are_merged_into_body_at_any_depth() {
    let check =
        |template, path, body, expected| assert_eq!(woven(template, path, body), expected, "{template}");
    // No variables.
    check(
        "/n",
        "/n",
        concat!(
            r#"{"a":{"u":"a","bytes":"Yg==","int32":1,"uint32":2,"int64":3,"uint64":4,"bool":true,"v":null,"#,
            r#""b":{"w":"b"}}}"#
        ),
        concat!(
            r#"{"a":{"u":"a","int32":1,"uint32":2,"int64":"3","uint64":"4","bool":true,"bytes":"Yg==","#,
            r#""b":{"w":"b"}}}"#
        ),
    );
    check("/{u}/{v}/{w}", "/a/b/c", r#"{"int32":10}"#, r#"{"u":"a","v":"b","w":"c","int32":10}"#);
    check(
        "/{a.u}/{a.v}/{b.u}",
        "/a/b/c",
        r#"{"w":"d","a":{"w":"e"},"b":{"v":"f"}}"#,
        r#"{"w":"d","a":{"u":"a","v":"b","w":"e"},"b":{"u":"c","v":"f"}}"#,
    );
    check(
        "/{a.b.u}/{a.c.v}/{b.a.u}",
        "/a/b/c",
        r#"{"a":{"b":{"v":"d"},"w":"e","c":{}},"b":{"u":"f","a":{"w":"g"}}}"#,
        r#"{"a":{"w":"e","b":{"u":"a","v":"d"},"c":{"v":"b"}},"b":{"u":"f","a":{"u":"c","w":"g"}}}"#,
    );
    // Part of the message is not in the body.
    check(
        "/{a.b.u}",
        "/a",
        r#"{"u":"b","c":{"v":"c","a":{"w":"d"}}}"#,
        r#"{"u":"b","a":{"b":{"u":"a"}},"c":{"v":"c","a":{"w":"d"}}}"#,
    );
    // A mixture.
    check(
        "/{u}/{a.b.v}/{a.w}",
        "/a/b/c",
        r#"{"a":{"u":"d","b":{"u":"e"}}}"#,
        r#"{"u":"a","a":{"u":"d","w":"c","b":{"u":"e","v":"b"}}}"#,
    );
    check(
        "/{u}/{a.v}/{b.w}/{c.a.u}",
        "/a/b/c/d",
        r#"{"a":{"u":"e"},"b":{"v":"f"}}"#,
        r#"{"u":"a","a":{"u":"e","v":"b"},"b":{"v":"f","w":"c"},"c":{"a":{"u":"d"}}}"#,
    );
    // Messages in a list are not affected.
    check(
        "/{a.u}",
        "/a",
        r#"{"list":[{"a":{"u":"b"}},{}],"a":{"v":"c"}}"#,
        r#"{"a":{"u":"a","v":"c"},"list":[{"a":{"u":"b"}},{}]}"#,
    );
    check("/{a.u}", "/a", r#"{"a":["b"]}"#, "body: line 1, column 6: a: expected an object, found an array");
}

#[test]
fn value_in_path_overrides_value_in_body() {
    let template =
        "/{a.bool}/{a.int32}/{a.uint32}/{a.int64}/{a.uint64}/{a.u}/{a.float}/{a.double}/{a.bytes}/{a.b.bool}";
    let path = "/true/-2/2/-2/2/a/1.5/1.01/Yg==/true";
    let expected = concat!(
        r#"{"a":{"u":"a","int32":-2,"uint32":2,"int64":"-2","uint64":"2","float":1.5,"double":1.01,"#,
        r#""bool":true,"bytes":"Yg==","b":{"bool":true}}}"#
    );
    assert_eq!(woven(template, path, "{}"), expected);
    // Whether the values are equal or not.
    assert_eq!(woven(template, path, expected), expected);
    let other = concat!(
        r#"{"a":{"u":"b","int32":-3,"uint32":3,"int64":"-3","uint64":"3","float":1.25,"double":1.0001,"#,
        r#""bool":false,"bytes":"Yw==","b":{"bool":false}}}"#
    );
    assert_eq!(woven(template, path, other), expected);
    // Invalid values are reported, whatever the body has.
    for (field, value, problem) in [
        ("bool", "true1", "`true1` is neither true nor false"),
        ("int32", "abc", "`abc` is not a number"),
        ("uint32", "abc", "`abc` is not a number"),
        ("int64", "abc", "`abc` is not a number"),
        ("uint64", "abc", "`abc` is not a number"),
        ("float", "abc", "`abc` is not a number"),
        ("double", "abc", "`abc` is not a number"),
        ("bytes", "a", "`a` is not base64"),
    ] {
        let (template, path) = (format!("/{{a.{field}}}"), format!("/{value}"));
        assert_eq!(woven(&template, &path, expected), format!("path: a.{field}: {problem}"));
    }
}

#[test]
fn body_that_is_not_json_is_rejected() {
    for body in NO_JSON {
        let refused = to_json(&all(), "POST", "/all", body, &RequestOptions::default());
        let message = refused.unwrap_err().to_string();
        assert!(message.starts_with("body: line 1, column "), "{body}: {message}");
    }
}

#[test]
fn struct_may_be_the_message() {
    let of_struct = "google.protobuf.Struct";
    let router = router(&service("", of_struct, of_struct, &["post: \"/a\" body: \"*\""]));
    for body in [r#"{"payload":"Hello!"}"#, r#"{"nested":{"payload":"Hello!"}}"#, "{}"] {
        assert_eq!(to_json(&router, "POST", "/a", body, &RequestOptions::default()).unwrap(), body);
    }
}

#[test]
fn patch_fills_update_mask_from_body() {
    let body = r#"{"inner": {"text": "b", "inner": {}}, "numbers": [], "left": null, "labels": {"a": "b"}}"#;
    check(
        &format!("PATCH /inner/a {body}"),
        concat!(
            r#"{"inner":{"text":"a","inner":{"text":"b","inner":{}},"labels":{"a":"b"}},"#,
            r#""updateMask":"inner.text,inner.inner,numbers,left,labels"}"#
        ),
    );
    check(
        "PATCH /inner/a?update_mask=numbers {\"left\": \"b\"}",
        r#"{"inner":{"text":"a","left":"b"},"updateMask":"numbers"}"#,
    );
    check(
        "PATCH /inner/a?updateMask= {\"left\": \"b\"}",
        r#"{"inner":{"text":"a","left":"b"},"updateMask":""}"#,
    );
    check(
        "PATCH /inner/a?update_mask.paths=numbers {\"left\": \"b\"}",
        r#"{"inner":{"text":"a","left":"b"},"updateMask":"numbers"}"#,
    );
    check("PATCH /inner/a {}", r#"{"inner":{"text":"a"},"updateMask":""}"#);
    check("PATCH /inner/a", r#"{"inner":{"text":"a"}}"#);
    check("PATCH /inner/a null", r#"{"inner":{"text":"a"}}"#);
    check("POST /inner/1 {\"left\": \"b\"}", r#"{"int32":1,"inner":{"left":"b"}}"#);
    check_with(
        &ignoring(),
        "PATCH /inner/a {\"x\": {\"y\": 1}, \"left\": \"b\"}",
        r#"{"inner":{"text":"a","left":"b"},"updateMask":"left"}"#,
    );
}

#[test]
fn http_body_request_is_passed_through() {
    let router = all();
    let content = Content { content_type: "image/png".to_owned(), data: Bytes::from(vec![0xff; 300]) };
    let options = RequestOptions::default();
    let wire = to_wire(&router, "PUT", "/raw/a?int32=5", &content, &options).unwrap();
    let message = Message::decode(router.rules().input(&router.rules().bindings()[0]), wire).unwrap();
    let raw = message.as_ref().get("raw").and_then(Value::as_message).unwrap();
    assert_eq!(raw.get("content_type"), Some(Value::String("image/png")));
    assert_eq!(raw.get("data"), Some(Value::Bytes(&[0xff; 300])));
    assert_eq!(message.as_ref().get("text"), Some(Value::String("a")));
    assert_eq!(message.as_ref().get("int32"), Some(Value::I32(5)));

    let http_body_service =
        service("", "google.api.HttpBody", "google.api.HttpBody", &["post: \"/up\" body: \"*\""]);
    let wire =
        to_wire(&crate::support::router(&http_body_service), "POST", "/up", &content, &options).unwrap();
    assert_eq!(wire[..14], *b"\x0a\x09image/png\x12\xac\x02");
    assert_eq!(wire[14..], [0xff; 300]);
}

#[test]
fn groups_and_required_fields_of_proto2() {
    let source = r#"syntax = "proto2"; package p;
        message M { required string name = 1;
            optional group Part = 2 { optional string text = 3; optional M more = 4; } }
        service S { rpc Get(M) returns (M); }"#;
    let set = thalweg_protobuf::sources::compile(&["p.proto"], |_| Some(source.to_owned())).unwrap();
    let schema = thalweg_protobuf::Schema::from_descriptor_set(&set).unwrap();
    let router = Router::new(thalweg_web::transcoding::Rules::new(&schema, ["p.S"]).unwrap());
    let check = |body: &str, expected: &str| {
        let json = to_json(&router, "POST", "/p.S/Get", body, &RequestOptions::default());
        assert_eq!(json.unwrap_or_else(|error| error.to_string()), expected);
    };
    check(r#"{"name":"a","part":{"text":"b"}}"#, r#"{"name":"a","part":{"text":"b"}}"#);
    check("{}", "body: line 1, column 3: missing required field `name`");
}

/// The mask of a recursive body repeats the names of all messages around each field. Without a limit it would be
/// hundreds of times the size of the body. Building stops early in the body.
#[test]
fn update_mask_is_limited_to_message_size() {
    let messages = "message Node { Node a = 1; Node b = 2; }
        message Change { Node node = 1; google.protobuf.FieldMask update_mask = 2; }";
    let rule = ["patch: \"/node\" body: \"node\""];
    let router = router(&service(messages, "Change", "Change", &rule));
    let body = recursive(80, 14);
    let mut options = RequestOptions::default();
    let wire_of = |options: &RequestOptions| {
        let content = Content { content_type: "application/json".to_owned(), data: body.clone().into() };
        to_wire(&router, "PATCH", "/node", &content, options)
    };
    assert!(wire_of(&options).unwrap().len() > 10 * body.len());
    options.parse.len_max = body.len();
    let error = wire_of(&options).unwrap_err();
    let RequestError::Body(stopped) = &error else { panic!("{error}") };
    assert!(stopped.is_too_long && stopped.offset < body.len() / 3, "{error}, of {}", body.len());
    assert_eq!(error.http_status(), 413);
    assert_eq!(thalweg_engine::Status::from(error).code(), thalweg_engine::Code::ResourceExhausted);
}

/// Returns a chain of `depth` nodes that ends in a full tree of `height`.
fn recursive(depth: usize, height: usize) -> String {
    let tree = (0..height).fold("{}".to_owned(), |tree, _| format!("{{\"a\":{tree},\"b\":{tree}}}"));
    "{\"a\":".repeat(depth) + &tree + &"}".repeat(depth)
}
