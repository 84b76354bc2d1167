fn main() -> Result<(), thalweg_build::Error> {
    thalweg_build::compile_protos("proto/helloworld.proto")
}
