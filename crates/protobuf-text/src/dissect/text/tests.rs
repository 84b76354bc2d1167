use super::*;
use crate::dissect::framing::{Framing, split};
use crate::dissect::{Limits, Span, dissect};

fn written(bytes: &[u8]) -> String {
    write(bytes, &dissect(bytes, Span::all(bytes), None, &Limits::default()))
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.chars().filter_map(|c| c.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks_exact(2).map(|pair| 16 * pair[0] + pair[1]).collect()
}

#[test]
fn written_text_assembles_to_the_same_bytes() {
    let check = |bytes: &str, text: &str| {
        let bytes = hex(bytes);
        assert_eq!(written(&bytes), text);
        assert_eq!(assemble(text).as_ref(), Ok(&bytes), "{text}");
    };
    check("", "");
    check("0a0d706f6c61722070656e6775696e1014", "1: {\"polar penguin\"}\n2: 20\n");
    check("0a04 0a02 ff01", "1: {\n  1: {`ff01`}\n}\n");
    check("0a00", "1: {}\n");
    check("10 ffffffffffffffffff01", "2: -1\n");
    check("1d 0000a441  21 0000000000000440  29 0500000000000000", "3: 20.5i32\n4: 2.5\n5: 5i64\n");
    check("988000 968100", "long-form:2 3: long-form:1 150\n");
    check("0a 8300 616263", "1: long-form:1 {\"abc\"}\n");
    check("3b 0802 3c", "7: !{\n  1: 2\n}\n");
    check("3b 0802 bc00", "7:SGROUP\n  1: 2\nlong-form:1 7:EGROUP\n");
    check("10 ffffffffffffffffff7f", "2:VARINT `ffffffffffffffffff7f`\n");
    check("1014 07", "2: 20\n# at offset 2: invalid field number 0; expected 1 to 536870911\n`07`\n");
    check(
        "1014 0a05 6162",
        "2: 20\n# at offset 3: the length is 5 bytes, but only 2 bytes are left\n`0a056162`\n",
    );
    check("3b 0802", "7:SGROUP\n  1: 2\n  # at offset 3: group 7 is not closed\n");
    check("0a03 225c09", "1: {\"\\\"\\\\\\x09\"}\n");
}

#[test]
fn frames_are_written_with_their_prefixes() {
    let check = |bytes: &str, framing: Framing, text: &str| {
        let bytes = hex(bytes);
        let frames = split(&bytes, framing, &Limits::default());
        let messages: Vec<_> = frames
            .frames
            .iter()
            .map(|frame| {
                (bytes[0] == 0 || framing == Framing::Delimited)
                    .then(|| dissect(&bytes, frame.payload, None, &Limits::default()))
            })
            .collect();
        assert_eq!(write_frames(&bytes, &frames, &messages), text);
        assert_eq!(assemble(text).as_ref(), Ok(&bytes), "{text}");
    };
    check("0000000002 0801 0000000000", Framing::Grpc, "grpc:0 {\n  1: 1\n}\ngrpc:0 {\n}\n");
    check("0100000002 1f8b", Framing::Grpc, "grpc:1 {\n  # compressed\n  `1f8b`\n}\n");
    check("02 0801 8200 0802", Framing::Delimited, "{\n  1: 1\n}\nlong-form:1 {\n  1: 2\n}\n");
    check("0000000009 0801", Framing::Grpc, "# truncated: expected 9 bytes, found 2\n`0000000009`\n1: 1\n");
    check(
        "0000000000 0000",
        Framing::Grpc,
        "grpc:0 {\n}\n# at offset 5: expected the 5-byte gRPC prefix, found 2 bytes\n`0000`\n",
    );
}

#[test]
fn assembler_accepts_syntax_that_is_never_written() {
    let check = |text: &str, bytes: &str| assert_eq!(assemble(text), Ok(hex(bytes)), "{text}");
    check("1: -5z 2: 5z 3: -9223372036854775808z", "0809 100a 18ffffffffffffffffff01");
    check("1: true 2: false", "0801 1000");
    check("1: 0x10i64 2: -1i32 3: -2.5i32", "091000000000000000 15ffffffff 1d000020c0");
    check("1: 1e300 2: -5.5e-1i32", "09 9c7500883ce4377e 15 cdcc0cbf");
    check("3: !{1: 2 long-form:1}", "1b 0802 9c00");
    check("1: inf32 2: -inf64", "0d0000807f 11000000000000f0ff");
    check("1:{2:{}3:!{}}", "0a04 1200 1b1c");
    check("1:LEN `0Aff` # and so on\n 2:5", "0a 0aff 15");
    check("1: {\"a\" `00 01` \"\\n\\t\\x41\"}", "0a06 61 0001 0a0941");
    check("150 -1i32 {}", "9601 ffffffff 00");
    check("18446744073709551615", "ffffffffffffffffff01");
}

#[test]
fn invalid_text_is_rejected_with_position_and_reason() {
    let check = |text: &str, line: usize, column: usize, part: &str| {
        let error = assemble(text).expect_err(text);
        assert_eq!((error.line, error.column), (line, column), "{error}");
        assert!(error.what.contains(part), "{part:?} in {error}");
    };
    check("1: {\n  2: 3", 1, 4, "not closed");
    check("1: 2\n}", 2, 1, "without an open one");
    check("1:", 1, 1, "field 1 has no value");
    check("{1:}", 1, 2, "field 1 has no value");
    check("1: 2: 3", 1, 4, "expected the value of field 1, found another tag");
    check("0: 1", 1, 1, "invalid field number");
    check("-1: 1", 1, 1, "invalid field number");
    check("1:WORD 2", 1, 1, "invalid wire type `WORD`");
    check("1: \"a\"", 1, 4, "braces");
    check("1: {\"a}", 1, 5, "unterminated string");
    check("1: {\"\\q\"}", 1, 6, "`\\q`");
    check("`0`", 1, 3, "two hex digits");
    check("`0g`", 1, 3, "expected a hex digit, found `g`");
    check("`00", 1, 1, "unterminated bytes");
    check("polar", 1, 1, "found `polar`");
    check("1: 5000000000i32", 1, 4, "4 bytes");
    check("1: 18446744073709551616", 1, 4, "64 bits");
    check("long-form:1 1.5", 1, 1, "after `long-form:`");
    check("long-form:x 1", 1, 1, "number of bytes");
    check("!{}", 1, 1, "field number before the group");
    check("1: !x", 1, 4, "after `!`");
    check("grpc:0 1: 2", 1, 1, "expected a brace");
    check("grpc:no {}", 1, 1, "flags");
    check(&"{".repeat(1001), 1, 1001, "more than 1000");
}
