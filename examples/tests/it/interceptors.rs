//! The program with all interceptors, as a newcomer runs it.

use std::process::Command;

#[test]
fn what_goes_around_calls() {
    let output = Command::new(env!("CARGO_BIN_EXE_interceptors")).output().expect("the example starts");
    let said = String::from_utf8_lossy(&output.stdout);
    let expected = "\
call 1: SayHello: Unauthenticated
Unauthenticated: put a token into `authorization`
call 2: SayHello: Ok
Hello world, says Ada! (call 2)
call 3: SayHello: ResourceExhausted
ResourceExhausted: too many calls: try again later
/helloworld.Greeter/SayHello Ok: 1
/helloworld.Greeter/SayHello ResourceExhausted: 1
/helloworld.Greeter/SayHello Unauthenticated: 1
";
    assert_eq!(said, expected, "{}", String::from_utf8_lossy(&output.stderr));
}
