//! Tests `thalweg inspect` of bytes and its assembly of text.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::support::{outcome, thalweg};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value as Json;
use tempfile::TempDir;

const FAILED: i32 = 1;
const BAD_ARGUMENTS: i32 = 2;

/// A published example: `Person { name: "polar penguin", age: 20 }`.
const PENGUIN: &str = "0A 0D 70 6F 6C 61 72 20 70 65 6E 67 75 69 6E 10 14";

const PERSON: &str = r#"syntax = "proto3";
package zoo;

message Person {
  string name = 1;
  int32 age = 2;
  repeated string hobbies = 3;
  Address address = 4;
  Mood mood = 5;
  repeated sint32 scores = 6;
  map<string, double> weights = 7;
  oneof contact {
    string mail = 8;
    fixed64 phone = 9;
  }
}

message Address {
  string city = 1;
  string zip_code = 2;
}

enum Mood {
  UNKNOWN = 0;
  HAPPY = 1;
}
"#;

struct Outcome {
    code: Option<i32>,
    stdout: Vec<u8>,
    stderr: String,
}

impl Outcome {
    fn text(&self) -> &str {
        std::str::from_utf8(&self.stdout).expect("it prints UTF-8")
    }
}

/// Runs `thalweg inspect` with these arguments and this stdin.
fn inspect(args: &[&str], stdin: &[u8]) -> Outcome {
    let args = [&["inspect"], args].concat();
    let mut child = thalweg(&args).stdin(Stdio::piped()).spawn().unwrap();
    // The process may exit without reading.
    let _ = child.stdin.take().unwrap().write_all(stdin);
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    Outcome { code: output.status.code(), stdout: output.stdout, stderr }
}

/// Returns the output of a successful run.
fn printed(args: &[&str]) -> String {
    let outcome = inspect(args, b"");
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{args:?}: {}", outcome.text());
    outcome.text().to_owned()
}

fn json(args: &[&str], stdin: &[u8]) -> Json {
    let outcome = inspect(&[&["-O", "json"], args].concat(), stdin);
    serde_json::from_slice(&outcome.stdout)
        .unwrap_or_else(|error| panic!("{args:?}: {error}: {}", outcome.stderr))
}

fn file(directory: &TempDir, name: &str, content: &[u8]) -> PathBuf {
    let path = directory.path().join(name);
    fs::write(&path, content).unwrap();
    path
}

fn str_of(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Adds the gRPC prefix to a message.
fn grpc(flags: u8, message: &[u8]) -> Vec<u8> {
    [&[flags][..], &u32::try_from(message.len()).unwrap().to_be_bytes(), message].concat()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.chars().filter_map(|c| c.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks_exact(2).map(|pair| 16 * pair[0] + pair[1]).collect()
}

#[test]
fn seventeen_published_bytes_are_explained_without_a_schema() {
    let expected = r#"--hex: 17 bytes, read as one message without framing, because all bytes are
  fields of one message

     0  0A                       field 1  tag 10 = (1 << 3) | 2, LEN
     1  0D                         length 13
     2  70 6F 6C 61 72 20 70 65    "polar penguin" (string) or [112, 111, 108,
    10  6E 67 75 69 6E               10 more] (packed varint) or bytes
    15  10                       field 2  tag 16 = (2 << 3) | 0, VARINT
    16  14                         20 (uint, int, enum) or 10 (sint)
"#;
    let printed = printed(&["--hex", PENGUIN, "--width", "80"]);
    assert!(printed.starts_with(expected), "{printed}");
}

#[test]
fn seventeen_published_bytes_are_explained_with_a_schema() {
    let directory = tempfile::tempdir().unwrap();
    let proto = file(&directory, "person.proto", PERSON.as_bytes());
    let expected = r#"--hex: 17 bytes, read as one message without framing, because all bytes are
  fields of one message
the message is a zoo.Person

     0  0A                       string name = 1  tag 10 = (1 << 3) | 2, LEN
     1  0D                         length 13
     2  70 6F 6C 61 72 20 70 65    "polar penguin"
    10  6E 67 75 69 6E
    15  10                       int32 age = 2  tag 16 = (2 << 3) | 0, VARINT
    16  14                         20
"#;
    let printed =
        printed(&["--hex", PENGUIN, "--proto", str_of(&proto), "--type", "Person", "--width", "80"]);
    assert!(printed.starts_with(expected), "{printed}");
}

#[test]
fn truncated_message_is_shown_up_to_truncation() {
    let outcome = inspect(&["--hex", "10 14 0a 0d 70 6f", "--width", "80"], b"");
    assert_eq!(outcome.code, Some(FAILED));
    let expected = r"
     0  10                       field 2  tag 16 = (2 << 3) | 0, VARINT
     1  14                         20 (uint, int, enum) or 10 (sint)
     2  0A                       field 1  tag 10 = (1 << 3) | 2, LEN
     3  0D                         length 13
     4  70 6F                    at offset 3: the length is 13 bytes, but only 2
                                   bytes are left
";
    assert!(outcome.text().contains(expected), "{}", outcome.text());
    assert_eq!(
        outcome.stderr,
        "error: --hex: at offset 3: the length is 13 bytes, but only 2 bytes are left\n"
    );
}

#[test]
fn framing_is_detected_printed_and_overridable() {
    let message = hex(PENGUIN);
    let directory = tempfile::tempdir().unwrap();
    let check = |bytes: &[u8], args: &[&str], framing: &str, messages: usize| {
        let path = file(&directory, "input", bytes);
        let json = json(&[&[str_of(&path)], args].concat(), b"");
        assert_eq!(json["framing"]["is"], framing, "{json}");
        assert_eq!(json["messages"].as_array().unwrap().len(), messages, "{json}");
        assert_eq!(json["problems"], Json::Array(Vec::new()));
    };
    check(&message, &[], "protobuf", 1);
    check(&[grpc(0, &message), grpc(0, &[])].concat(), &[], "grpc", 2);
    check(&[&[17], &message[..], &[17], &message[..]].concat(), &[], "delimited", 2);
    // Nine fields or two messages: the first reading wins, and the other is mentioned.
    check(&[8; 18], &[], "protobuf", 1);
    check(&[8; 18], &["--framing", "delimited"], "delimited", 2);
    let outcome = inspect(&["--hex", &"08".repeat(18)], b"");
    assert!(outcome.text().contains("--framing delimited would match as well"), "{}", outcome.text());
}

#[test]
fn compressed_message_is_decompressed() {
    let message = hex(PENGUIN);
    let input = [grpc(1, &gzip(&message)), grpc(1, b"no compression")].concat();
    let json = json(&[], &input);
    let first = &json["messages"][0];
    assert_eq!((&first["compressed_by"], &first["decompressed_bytes"]), (&"gzip".into(), &17.into()));
    assert_eq!(first["fields"][0]["readings"][0]["value"], "polar penguin");
    assert!(json["messages"][1]["closed"].as_str().unwrap().contains("expected gzip or deflate"), "{json}");
    let outcome = inspect(&[], &input);
    assert_eq!(outcome.code, Some(FAILED));
    assert!(outcome.text().contains("\"polar penguin\""), "{}", outcome.text());
}

#[test]
fn schema_adds_names_types_and_remarks() {
    let directory = tempfile::tempdir().unwrap();
    let proto = file(&directory, "person.proto", PERSON.as_bytes());
    let text = r#"1: {"a"} 3: {"b"} 4: {1: {"Bergen"}} 5: 1 5: 9 6: {-1z 5z} 6: 3z 7: {1: {"kg"} 2: 1.5} 8: {"m"}
                  9: 7i64 2: 0 2: {"not a number"} 99: 1"#;
    let bytes = inspect(&["--assemble"], text.as_bytes()).stdout;
    let json = json(&["--proto", str_of(&proto), "--type", "zoo.Person"], &bytes);
    let fields = json["messages"][0]["fields"].as_array().unwrap();
    let seen: Vec<(String, Json, Vec<&str>)> = fields
        .iter()
        .map(|field| {
            let remarks = field["remarks"].as_array().map(Vec::as_slice).unwrap_or_default();
            let declared = field["declared"].as_str().unwrap_or_default().to_owned();
            (
                declared,
                field["value"].clone(),
                remarks.iter().map(|remark| remark.as_str().unwrap()).collect(),
            )
        })
        .collect();
    let check = |index: usize, declared: &str, value: Json, remark: &str| {
        let (found, found_value, remarks) = &seen[index];
        assert_eq!((found.as_str(), found_value), (declared, &value), "{json}");
        assert_eq!(remarks.len(), usize::from(!remark.is_empty()), "{remarks:?}");
        assert!(remarks.iter().all(|found| found.contains(remark)), "{remark:?} in {remarks:?}");
    };
    check(0, "string name = 1", "a".into(), "");
    check(1, "repeated string hobbies = 3", "b".into(), "");
    check(2, "Address address = 4", Json::Null, "");
    check(3, "Mood mood = 5", "HAPPY".into(), "");
    check(4, "Mood mood = 5", 9.into(), "duplicate: the last");
    check(5, "repeated sint32 scores = 6", Json::Array(vec![(-1).into(), 5.into()]), "");
    check(6, "repeated sint32 scores = 6", 3.into(), "not packed");
    check(7, "map<string, double> weights = 7", Json::Null, "");
    check(8, "string mail = 8", "m".into(), "");
    check(9, "fixed64 phone = 9", 7.into(), "clears mail");
    check(10, "int32 age = 2", 0.into(), "default");
    check(11, "int32 age = 2", Json::Null, "wire type LEN, expected VARINT");
    check(12, "", Json::Null, "not in the schema");
    assert_eq!(fields[2]["message"]["fields"][0]["value"], "Bergen");
    assert_eq!(fields[7]["message"]["fields"][1]["value"], 1.5);
}

#[test]
fn sizes_are_printed_by_field_and_format() {
    let directory = tempfile::tempdir().unwrap();
    let proto = file(&directory, "person.proto", PERSON.as_bytes());
    let json = json(&["--hex", PENGUIN, "--proto", str_of(&proto), "--type", "Person"], b"");
    let sizes = &json["sizes"];
    assert_eq!((&sizes["tags"], &sizes["lengths"], &sizes["payload"]), (&2.into(), &1.into(), &14.into()));
    let name = &sizes["fields"][0];
    assert_eq!((&name["name"], &name["total"], &name["payload"]), (&"name".into(), &15.into(), &13.into()));
    let forms: Vec<(&str, u64)> = sizes["forms"]
        .as_array()
        .unwrap()
        .iter()
        .map(|form| (form["form"].as_str().unwrap(), form["bytes"].as_u64().unwrap()))
        .collect();
    // {"name":"polar penguin","age":20}; in MessagePack a map of two, with a prefix byte for each key and the text.
    assert_eq!(forms, [("Protobuf", 17), ("JSON", 33), ("MessagePack", 25)]);
}

#[test]
fn sizes_include_gzip_and_zstd() {
    let directory = tempfile::tempdir().unwrap();
    let proto = file(&directory, "person.proto", PERSON.as_bytes());
    let bytes = inspect(&["--assemble"], format!("1: {{\"{}\"}}", "penguin ".repeat(100)).as_bytes()).stdout;
    let json = json(&["--proto", str_of(&proto), "--type", "Person"], &bytes);
    let forms = json["sizes"]["forms"].as_array().unwrap();
    assert_eq!(forms.len(), 3);
    for form in forms {
        let bytes = |of: &str| form[of].as_u64().unwrap();
        assert!(bytes("bytes") > 800 && (20..60).contains(&bytes("gzip")), "{form}");
        assert!((15..60).contains(&bytes("zstd")), "{form}");
    }
    let table = inspect(&[], &bytes);
    assert!(table.text().contains("as it is     gzip     zstd\nProtobuf "), "{}", table.text());
}

#[test]
fn editions_need_no_protoc() {
    let proto = Path::new(env!("CARGO_MANIFEST_DIR")).join("../protobuf/tests/proto/editions.proto");
    let args = ["inspect", "--hex", "08 05", "--proto", str_of(&proto), "--type", "editions.Fields"];
    let (code, stdout, stderr) = outcome(thalweg(&args).env("PATH", "").output().unwrap());
    assert_eq!((code, stderr), (Some(0), String::new()));
    assert!(stdout.contains("int32 explicit = 1  tag 8"), "{stdout}");
}

#[test]
fn text_assembles_to_same_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let proto = file(&directory, "person.proto", PERSON.as_bytes());
    let check = |bytes: &[u8]| {
        for schema in [&[][..], &["--proto", str_of(&proto), "--type", "Person"]] {
            let text = inspect(&[&["-O", "text"], schema].concat(), bytes).stdout;
            let assembled = inspect(&["--assemble"], &text);
            assert_eq!(assembled.code, Some(0), "{}", assembled.stderr);
            assert_eq!(assembled.stdout, bytes, "{}", String::from_utf8_lossy(&text));
        }
    };
    let message = hex(PENGUIN);
    check(&message);
    check(&[&message, &b"garbage \x00\xff"[..]].concat());
    check(&[grpc(0, &message), grpc(1, &gzip(&message)), grpc(0, &message)[..9].to_vec()].concat());
    check(&hex("8a8000 8d8000 706f6c61722070656e6775696e 1b 1094 8000 1c 1014"));
    let every_byte: Vec<u8> = (0..=255).collect();
    check(&every_byte);
}

#[test]
fn empty_input_is_rejected_without_explicit_data() {
    let outcome = inspect(&["-O", "text"], b"");
    assert_eq!((outcome.code, &outcome.stdout[..]), (Some(FAILED), &b""[..]));
    assert!(outcome.stderr.contains("stdin: empty input"), "{}", outcome.stderr);
    let text = inspect(&["--hex", "", "-O", "text"], b"");
    let assembled = inspect(&["--assemble"], &text.stdout);
    assert_eq!((text.code, assembled.code, &assembled.stdout[..]), (Some(0), Some(0), &b""[..]));
}

#[test]
fn edited_text_assembles_to_changed_bytes() {
    let text = inspect(&["--hex", PENGUIN, "-O", "text"], b"").stdout;
    let edited = String::from_utf8(text).unwrap().replace("polar penguin", "emperor penguin");
    let directory = tempfile::tempdir().unwrap();
    let path = file(&directory, "penguin.txt", edited.as_bytes());
    let output = directory.path().join("penguin.bin");
    let outcome = inspect(&["--assemble", str_of(&path), "-o", str_of(&output)], b"");
    assert_eq!((outcome.code, outcome.stderr.as_str(), &outcome.stdout[..]), (Some(0), "", &b""[..]));
    assert_eq!(fs::read(output).unwrap(), b"\x0a\x0femperor penguin\x10\x14");
}

#[test]
fn output_to_pipe_has_no_colours() {
    assert!(!printed(&["--hex", PENGUIN]).contains('\x1b'));
    assert!(printed(&["--hex", PENGUIN, "--color", "always"]).contains("\x1b[36m0A\x1b[0m"));
}

#[test]
fn lines_fit_width() {
    let bytes = inspect(
        &["--assemble"],
        b"1: {1: {1: {1: {\"a rather long text, which is broken where lines end\"}}}}",
    )
    .stdout;
    for width in [60, 80, 120] {
        let text = inspect(&["--width", &width.to_string()], &bytes);
        let tree = text.text().split("\nbytes by field").next().unwrap();
        let longest = tree.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(longest <= width, "{longest} columns of {width}: {tree}");
    }
}

/// Asserts that the run fails with one line on stderr that has all of `parts`, and nothing on stdout.
fn check_error(args: &[&str], code: i32, parts: &[&str]) {
    let Outcome { code: found, stdout, stderr } = inspect(args, b"");
    assert_eq!((found, &stdout[..]), (Some(code), &b""[..]), "{args:?}: {stderr}");
    for part in parts {
        assert!(stderr.contains(part), "{args:?}: {part:?} is not in {stderr:?}");
    }
    // Errors of `.proto` files show the source line.
    if !stderr.contains("--help") && !stderr.contains("\n  |") {
        assert_eq!(stderr.lines().count(), 1, "{args:?}: {stderr:?} is not one line");
    }
}

#[test]
fn invalid_inputs_and_flags_are_rejected() {
    check_error(&["/nonexistent/file"], FAILED, &["/nonexistent/file", "No such file"]);
    check_error(&["--hex", "0a0"], BAD_ARGUMENTS, &["--hex", "two hex digits", "`0a0` has 3"]);
    check_error(&["--hex", "zz"], BAD_ARGUMENTS, &["expected a hex digit, found `z`"]);
    check_error(&["--base64", "a!"], BAD_ARGUMENTS, &["--base64", "`!`"]);
    check_error(&["--hex", "00", "--base64", "00"], BAD_ARGUMENTS, &["cannot be used with"]);
    check_error(&["--hex", "00", "x"], BAD_ARGUMENTS, &["cannot be used with"]);
    check_error(&["--framing", "json"], BAD_ARGUMENTS, &["protobuf", "grpc", "delimited"]);
    check_error(&["--width", "5"], BAD_ARGUMENTS, &["--width"]);
    check_error(&["--assemble", "--full"], BAD_ARGUMENTS, &["--assemble", "cannot be used with"]);
    check_error(&["--type", "M", "--hex", ""], BAD_ARGUMENTS, &["--type needs --proto or --protoset"]);
    check_error(&["--hex", "", "-o", "/nonexistent/out"], BAD_ARGUMENTS, &["/nonexistent/out"]);
}

#[test]
fn invalid_schemas_are_rejected() {
    let directory = tempfile::tempdir().unwrap();
    let person = file(&directory, "person.proto", PERSON.as_bytes());
    let proto = |path: &Path, rest: &[&str], code: i32, parts: &[&str]| {
        check_error(&[&["--hex", "", "--proto", str_of(path)], rest].concat(), code, parts);
    };
    proto(Path::new("/nonexistent/a.proto"), &[], FAILED, &["/nonexistent/a.proto", "No such file"]);
    proto(&person, &["--type", "Persn"], BAD_ARGUMENTS, &["`Persn`", "did you mean `zoo.Person`"]);
    proto(&person, &["--type", "Qqq"], BAD_ARGUMENTS, &["`Qqq`", "zoo.Address"]);
    proto(&person, &[], BAD_ARGUMENTS, &["--type", "zoo.Person", "zoo.Address"]);
    let broken = file(&directory, "broken.proto", b"syntax = \"proto3\"; message A { B b = 1; }");
    proto(&broken, &["--type", "A"], FAILED, &["broken.proto", "B"]);
    let importing = file(&directory, "importing.proto", b"syntax = \"proto3\"; import \"gone.proto\";");
    proto(&importing, &[], FAILED, &["gone.proto"]);
    let set = str_of(&broken);
    check_error(&["--hex", "", "--descriptor-set", set], FAILED, &[set]);
    check_error(&["--hex", "", "--protoset", set], FAILED, &[set]);
    check_error(
        &["--hex", "", "--descriptor-set", set, "--proto", set],
        BAD_ARGUMENTS,
        &["cannot be used with"],
    );
}

#[test]
fn imports_resolve_from_file_folder_and_import_paths() {
    let directory = tempfile::tempdir().unwrap();
    let imported = directory.path().join("imported");
    fs::create_dir(&imported).unwrap();
    fs::write(imported.join("b.proto"), "syntax = \"proto3\"; message B { int32 x = 1; }").unwrap();
    file(&directory, "c.proto", b"syntax = \"proto3\"; message C { int32 y = 1; }");
    let importing =
        b"syntax = \"proto3\"; import \"b.proto\"; import \"c.proto\"; message A { B b = 1; C c = 2; }";
    let path = file(&directory, "a.proto", importing);
    // Includes the names that the flag has in `call` and `load`.
    for flag in ["-I", "--import-path", "-i", "--import-paths"] {
        let args = ["--hex", "0a020801", "--proto", str_of(&path), "--type", "A", flag, str_of(&imported)];
        let json = json(&args, b"");
        assert_eq!(json["messages"][0]["fields"][0]["message"]["fields"][0]["declared"], "int32 x = 1");
    }
}

#[test]
fn invalid_text_format_is_one_error_with_position() {
    let outcome = inspect(&["--assemble"], b"1: 2\n  2: {\n");
    assert_eq!((outcome.code, &outcome.stdout[..]), (Some(FAILED), &b""[..]));
    assert_eq!(outcome.stderr, "error: stdin: line 2, column 6: this brace is not closed\n");
}

#[test]
fn non_protobuf_input_gets_hint() {
    let check = |bytes: &[u8], hint: &str| {
        let outcome = inspect(&[], bytes);
        assert_eq!(outcome.code, Some(FAILED), "{}", outcome.text());
        assert!(outcome.stderr.contains(hint), "{:?}", outcome.stderr);
    };
    check(b"0A0D706F6C\n", "looks like hex");
    check(b"{\"a\": 1}", "looks like JSON");
}

#[test]
fn encoded_inputs_are_unwrapped() {
    let penguin = inspect(&[], &hex(PENGUIN)).text().to_owned();
    let check = |bytes: &[u8], note: &str, flags: &[&str]| {
        let outcome = inspect(flags, bytes);
        assert_eq!(outcome.code, Some(0), "{}", outcome.text());
        let tail = |text: &str| text.split_once("\n\n").unwrap().1.to_owned();
        assert_eq!(tail(outcome.text()), tail(&penguin), "{}", outcome.text());
        assert!(outcome.text().contains(note), "{}", outcome.text());
    };
    check(&gzip(&hex(PENGUIN)), "stdin: 17 bytes", &[]);
    let dump = b"00000000: 0a0d 706f 6c61 7220 7065 6e67 7569 6e10  ..polar penguin.\n00000010: 14       .\n";
    check(dump, "stdin (a hex dump): 17 bytes", &[]);
    check(dump, "--hex: 17 bytes", &["--hex", "@-"]);
    check(b"Cg1wb2xhciBwZW5n\ndWluEBQ=\n", "--base64: 17 bytes", &["--base64", "@-"]);
    // A grpc-web-text body of a message and trailers, each with its own padding.
    let body = b"AAAAABEKDXBvbGFyIHBlbmd1aW4QFA==gAAAABBncnBjLXN0YXR1czogMA0K";
    let outcome = inspect(&[], body);
    assert_eq!(outcome.code, Some(0), "{}", outcome.text());
    for part in ["stdin (Base64): 43 bytes", "polar penguin", "gRPC-Web trailers", "grpc-status: 0"] {
        assert!(outcome.text().contains(part), "{part}: {}", outcome.text());
    }
    assert_eq!(inspect(&["--hex", "@/nonexistent"], b"").code, Some(FAILED));
    assert_eq!(inspect(&[], &gzip(&hex(PENGUIN))[..20]).code, Some(FAILED));
}
