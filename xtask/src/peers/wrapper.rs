//! The scripts in `bin/` that start a program from where it was unpacked.

use std::fs;
use std::io;
use std::path::Path;

/// The requirements of a program besides its arguments. Paths are relative to the directory of the
/// peers.
#[derive(Debug, Default)]
pub(super) struct Environment {
    /// Directories of libraries.
    pub(super) libraries: Vec<String>,
    /// The configuration of fontconfig.
    pub(super) fonts: Option<String>,
    /// Variables that hold a path.
    pub(super) paths: Vec<(&'static str, String)>,
}

/// Returns the script for the program at `path`. It derives paths from its own location, so the
/// whole directory can be moved.
///
/// Paths and arguments come from our own table and from packages of the distribution; none contains
/// a quote.
pub(super) fn script(path: &str, arguments: &[&str], environment: &Environment) -> String {
    let mut script = String::from(
        "#!/bin/sh\n\
         # Written by `cargo xtask peers`.\n\
         peers=$(CDPATH= cd -- \"$(dirname -- \"$0\")/..\" && pwd) || exit 126\n",
    );
    if !environment.libraries.is_empty() {
        let libraries: Vec<_> = environment
            .libraries
            .iter()
            .map(|directory| format!("$peers/{directory}"))
            .collect();
        script.push_str(&format!(
            "export LD_LIBRARY_PATH=\"{}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}\"\n",
            libraries.join(":")
        ));
    }
    if let Some(fonts) = &environment.fonts {
        script.push_str(&format!("export FONTCONFIG_FILE=\"$peers/{fonts}\"\n"));
    }
    for (name, path) in &environment.paths {
        script.push_str(&format!("export {name}=\"$peers/{path}\"\n"));
    }
    script.push_str(&format!("exec \"$peers/{path}\""));
    for argument in arguments {
        script.push_str(&format!(" '{argument}'"));
    }
    script.push_str(" \"$@\"\n");
    script
}

/// Writes a script with execute permission for everyone.
pub(super) fn write(path: &Path, script: &str) -> io::Result<()> {
    // Removed first: a running script cannot be overwritten.
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::write(path, script)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_of_an_unpacked_tree_gets_its_libraries_fonts_and_arguments() {
        let environment = Environment {
            libraries: vec!["debian/b/usr/lib".to_owned(), "debian/b/lib".to_owned()],
            fonts: Some("debian/b/fonts.conf".to_owned()),
            paths: vec![("B_LIB", "debian/b/usr/libexec/b".to_owned())],
        };
        assert_eq!(
            script("debian/b/usr/bin/b", &["--no-sandbox"], &environment),
            "#!/bin/sh\n\
             # Written by `cargo xtask peers`.\n\
             peers=$(CDPATH= cd -- \"$(dirname -- \"$0\")/..\" && pwd) || exit 126\n\
             export LD_LIBRARY_PATH=\"$peers/debian/b/usr/lib:$peers/debian/b/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}\"\n\
             export FONTCONFIG_FILE=\"$peers/debian/b/fonts.conf\"\n\
             export B_LIB=\"$peers/debian/b/usr/libexec/b\"\n\
             exec \"$peers/debian/b/usr/bin/b\" '--no-sandbox' \"$@\"\n"
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_script_runs_its_program_wherever_the_directory_is_moved() {
        use crate::process::Invocation;
        use std::time::Duration;

        let place = tempfile::tempdir().expect("a directory can be made");
        let before = place.path().join("before");
        fs::create_dir_all(before.join("bin")).expect("can be made");
        fs::create_dir_all(before.join("tree")).expect("can be made");
        write(
            &before.join("tree/echo"),
            "#!/bin/sh\nprintf '%s|' \"$LD_LIBRARY_PATH\" \"$@\"\n",
        )
        .expect("can be written");
        let environment = Environment {
            libraries: vec!["tree/lib".to_owned()],
            fonts: None,
            paths: Vec::new(),
        };
        let text = script("tree/echo", &["--fixed"], &environment);
        write(&before.join("bin/echo"), &text).expect("can be written");

        let after = place.path().join("after that");
        fs::rename(&before, &after).expect("can be moved");
        let (ended, output) = Invocation::new(after.join("bin/echo"))
            .args(["a b", "c"])
            .env("LD_LIBRARY_PATH", "/theirs")
            .capture(Duration::from_secs(60))
            .expect("it starts");
        assert!(ended.is_success(), "{output}");
        let libraries = fs::canonicalize(&after)
            .expect("it is there")
            .join("tree/lib");
        let expected = format!("{}:/theirs|--fixed|a b|c|\n", libraries.display());
        assert_eq!(output, expected);
    }
}
