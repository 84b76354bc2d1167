//! Details of errors, from a handler to a client, as tonic's crate writes and reads them.

#[path = "../../rich-errors.rs"]
#[allow(dead_code, reason = "its main is for who runs it")]
mod program;

#[tokio::test]
async fn details_arrive() {
    let expected = [
        "Hello Ada!",
        "InvalidArgument: the request is not complete; name: say your name; see https://example.com/greeting",
        "ResourceExhausted: I am greeting others; TOO_MANY_GREETINGS of example.com; try again in 3s",
    ];
    assert_eq!(program::run().await.expect("the calls are made"), expected);
}
