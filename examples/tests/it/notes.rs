//! A client and a server whose messages are buffa's, over a real call.

use std::process::Command;

#[test]
fn views_arrive_on_both_sides() {
    let output = Command::new(env!("CARGO_BIN_EXE_notes-buffa")).output().expect("the example starts");
    let said = String::from_utf8_lossy(&output.stdout);
    let expected = "a rose: [(\"a\", 3), (\"is\", 2), (\"rose\", 3)]\na rose is a rose is a rose\n";
    assert_eq!(said, expected, "{}", String::from_utf8_lossy(&output.stderr));
}
