//! Makes the bookstore's service from its `.proto` file. Its descriptors go into the program: JSON needs them.

fn main() -> Result<(), thalweg_build::Error> {
    thalweg_build::configure().embed_descriptors(true).compile_protos(&["proto/bookstore.proto"], &["proto"])
}
