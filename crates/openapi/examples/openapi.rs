//! Prints the OpenAPI document of services from local `.proto` files:
//!
//! ```sh
//! cargo run -p thalweg-openapi --example openapi -- FOLDER FILE.proto [--schema-names] [--enum-numbers]
//! ```
//!
//! It covers all services of the file.

use std::error::Error;
use std::fs;
use std::path::PathBuf;

use thalweg_openapi::Comments;
use thalweg_openapi::rules::Rules;
use thalweg_openapi::{Info, document};
use thalweg_protobuf::{Schema, Service, sources};

fn main() -> Result<(), Box<dyn Error>> {
    let (flags, words): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|word| word.starts_with("--"));
    let [folder, file] = words.as_slice() else {
        return Err("give the folder that imports begin at, and a .proto file in it".into());
    };
    let root = PathBuf::from(folder);
    let set = sources::compile(&[file], move |name| fs::read_to_string(root.join(name)).ok())?;
    let schema = Schema::from_descriptor_set(&set)?;
    let of_file = |service: &Service<'_>| service.file().name() == file;
    let services: Vec<&str> = schema.services().filter(of_file).map(Service::full_name).collect();
    let info = Info::default()
        .schema_names(flags.iter().any(|flag| flag == "--schema-names"))
        .enum_numbers(flags.iter().any(|flag| flag == "--enum-numbers"))
        .comments(Comments::from_descriptor_set(&set));
    println!("{}", document(&Rules::new(&schema, services)?, &info));
    Ok(())
}
