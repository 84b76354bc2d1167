//! Makes the Greeter's client and server from its `.proto` file, and those of the notes, whose messages are buffa's.

fn main() -> Result<(), thalweg_build::Error> {
    thalweg_build::compile_protos("proto/helloworld.proto")?;
    thalweg_build::configure().buffa_views().compile_protos(&["proto/notes.proto"], &["proto"])
}
