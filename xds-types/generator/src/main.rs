//! Writes the generated files of the crate `xds-types`: `cargo run -p xds-types-generator`.

use std::fs;
use std::process::ExitCode;

fn main() -> ExitCode {
    match renew() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xds-types-generator: {error}");
            ExitCode::FAILURE
        }
    }
}

fn renew() -> xds_types_generator::Result<()> {
    let files = xds_types_generator::generate()?;
    let directory = xds_types_generator::directory();
    // A package that is not used any more must not keep its file.
    if directory.exists() {
        fs::remove_dir_all(&directory)?;
    }
    fs::create_dir_all(&directory)?;
    let mut lines = 0;
    for (name, text) in &files {
        fs::write(directory.join(name), text)?;
        lines += text.lines().count();
    }
    println!("{} files, {lines} lines", files.len());
    Ok(())
}
