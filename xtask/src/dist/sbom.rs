//! A bill of materials in CycloneDX 1.6, as JSON (ECMA-424).

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::parts::{Part, Parts};

/// Contains no timestamp: the same packages give the same document.
pub(super) fn document(parts: &Parts) -> String {
    let root = parts.root();
    let mut program = component(root);
    program["type"] = json!("application");
    let document = json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": program},
        "components": parts.all().skip(1).map(component).collect::<Vec<_>>(),
        "dependencies": parts.all().map(uses).collect::<Vec<_>>(),
    });
    format!("{document:#}\n")
}

fn component(part: &Part) -> Value {
    let package = &part.package;
    let url = purl(&package.name, &package.version);
    let mut component = json!({
        "type": "library",
        "bom-ref": url,
        "name": package.name,
        "version": package.version,
        "licenses": [{"expression": part.licence()}],
        "purl": url,
    });
    if let Some(description) = &package.description {
        component["description"] = json!(description.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    if let Some(checksum) = &part.checksum {
        component["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
    }
    if let Some(repository) = package.repository.as_ref().filter(|it| it.starts_with("https://")) {
        component["externalReferences"] = json!([{"type": "vcs", "url": repository}]);
    }
    component
}

fn uses(part: &Part) -> Value {
    let used: BTreeSet<String> = part.uses.iter().map(|(name, version)| purl(name, version)).collect();
    json!({"ref": purl(&part.package.name, &part.package.version), "dependsOn": used})
}

/// The package URL of a Cargo package, as in purl-spec.
fn purl(name: &str, version: &str) -> String {
    format!("pkg:cargo/{name}@{}", version.replace('+', "%2B"))
}
