//! Generates the bookstore service from its `.proto` file. JSON needs the embedded descriptors.

fn main() -> Result<(), thalweg_build::Error> {
    thalweg_build::configure().embed_descriptors(true).compile_protos(&["proto/bookstore.proto"], &["proto"])
}
