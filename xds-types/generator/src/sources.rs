//! The `.proto` files, and their compilation.

use std::path::{Path, PathBuf};

use cargo_metadata::{CargoOpt, MetadataCommand};
use prost_types::FileDescriptorSet;

use crate::Result;
use crate::roots::Root;

/// The package that ships Envoy's API.
const PACKAGE: &str = "envoy-types";

/// The directories in the package that imports are relative to.
const INCLUDES: [&str; 6] = [
    "data-plane-api",
    "xds",
    "protoc-gen-validate",
    "googleapis",
    "cel-spec/proto",
    "client_model",
];

/// Compiles the files of the roots with all that they import. Comments are left out.
pub(crate) fn compile(roots: &[Root]) -> Result<FileDescriptorSet> {
    let protos = find()?;
    let includes = INCLUDES.iter().map(|include| protos.join(include));
    let mut compiler = protox::Compiler::new(includes)?;
    compiler.include_imports(true).include_source_info(false);
    compiler.open_files(roots.iter().map(|root| &root.file))?;
    Ok(compiler.file_descriptor_set())
}

/// Returns the directory `proto` of the package.
fn find() -> Result<PathBuf> {
    let metadata = MetadataCommand::new()
        .manifest_path(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"))
        .features(CargoOpt::AllFeatures)
        .exec()?;
    let package = (metadata.packages.iter())
        .find(|package| package.name.as_str() == PACKAGE)
        .ok_or_else(|| format!("cargo does not know the package {PACKAGE}"))?;
    let directory = package.manifest_path.with_file_name("proto");
    Ok(directory.into_std_path_buf())
}
