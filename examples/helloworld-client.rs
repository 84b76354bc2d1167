//! Says hello to `helloworld-server`: `cargo run -p thalweg-examples --bin helloworld-client -- [TARGET [NAME]]`.

use std::env;
use std::error::Error;

use helloworld::HelloRequest;
use helloworld::greeter_client::GreeterClient;

mod helloworld {
    #![allow(dead_code, unreachable_pub, clippy::pedantic, reason = "generated code")]
    thalweg::include_proto!("helloworld");
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let target = arguments.next().unwrap_or_else(|| "127.0.0.1:50051".to_owned());
    let name = arguments.next().unwrap_or_else(|| "world".to_owned());

    let greeter = GreeterClient::connect(target).await?;
    let response = greeter.say_hello(HelloRequest { name }).await?;
    println!("{}", response.into_inner().message);
    Ok(())
}
