fn main() -> Result<(), Box<dyn std::error::Error>> {
    Ok(tonic_prost_build::compile_protos("proto/helloworld.proto")?)
}
