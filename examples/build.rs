//! Makes the Greeter's client and server from its `.proto` file.

fn main() -> Result<(), thalweg_build::Error> {
    thalweg_build::compile_protos("proto/helloworld.proto")
}
