//! Generates the protobuf messages of the crate `xds-types`.
//!
//! The source is the API of Envoy in the package `envoy-types`; what is kept of it is in `xds-types/roots.txt`.

mod prune;
mod roots;
mod sources;

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use prost_types::FileDescriptorSet;

/// A failure, as a sentence for the person at the terminal.
pub type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The directory of the crate `xds-types`.
fn crate_directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The directory that has the generated files and nothing else.
#[must_use]
pub fn directory() -> PathBuf {
    crate_directory().join("src/pb")
}

/// Returns the files that [`directory`] must have, by name.
///
/// # Errors
/// The sources cannot be found or compiled, or a root is not in them.
pub fn generate() -> Result<BTreeMap<String, String>> {
    let roots = roots::parse(&fs::read_to_string(crate_directory().join("roots.txt"))?)?;
    let whole = sources::compile(&roots)?;
    let kept = prune::prune(whole, &roots)?;
    write(kept)
}

/// Returns the files in a directory by name. Those of a directory that is missing are none.
///
/// # Errors
/// A file cannot be read.
pub fn read(directory: &Path) -> Result<BTreeMap<String, String>> {
    if !directory.exists() {
        return Ok(BTreeMap::new());
    }
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        files.insert(name, fs::read_to_string(entry.path())?);
    }
    Ok(files)
}

fn write(messages: FileDescriptorSet) -> Result<BTreeMap<String, String>> {
    let directory = tempfile::tempdir()?;
    let mut config = prost_build::Config::new();
    config
        .compile_well_known_types()
        .enable_type_names()
        .type_name_domain(["."], "type.googleapis.com")
        .include_file("mod.rs");
    tonic_prost_build::configure()
        .out_dir(directory.path())
        .build_transport(false)
        .client_mod_attribute(".", r#"#[cfg(feature = "client")]"#)
        .server_mod_attribute(".", r#"#[cfg(feature = "server")]"#)
        .compile_fds_with_config(messages, config)?;
    // A raw identifier is right for a module and strange in the name of a file.
    let plain = |name: &str| name.replace("r#type", "type");
    let files = read(directory.path())?.into_iter();
    Ok(files
        .map(|(name, text)| match name.as_str() {
            "mod.rs" => (name, text.replace(".r#type.", ".type.")),
            _ => (plain(&name), text),
        })
        .collect())
}
