//! Peers from Debian: downloaded and unpacked, never installed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::process::Invocation;

use super::apt::Apt;
use super::table::Peer;
use super::wrapper::{self, Environment};
use super::{FETCH_LIMIT, last_lines};

/// Fetches the packages of a peer, unpacks them, and writes a wrapper for each of its programs.
pub(super) fn fetch(
    root: &Path,
    apt: &mut Apt,
    peer: &Peer,
    packages: &[&str],
) -> crate::Result<()> {
    let inside = format!("debian/{}", peer.name);
    let tree = root.join(&inside);
    let archives = root.join(format!("{inside}.archives"));
    remove(&tree)?;
    remove(&archives)?;
    fs::create_dir_all(&tree)?;

    apt.download(packages, &archives)?;
    for archive in entries(&archives)? {
        unpack(&archive, &tree)?;
    }
    remove(&archives)?;

    let mut environment = Environment::default();
    for directory in library_directories(&tree)? {
        environment.libraries.push(format!("{inside}/{directory}"));
    }
    if tree.join("usr/share/fonts").is_dir() {
        let configuration = fonts_configuration(&root.join("fontconfig-cache"));
        fs::write(tree.join("fonts.conf"), configuration)?;
        environment.fonts = Some(format!("{inside}/fonts.conf"));
    }
    for program in peer.programs {
        let path = format!("{inside}/{}", program.path);
        if !root.join(&path).is_file() {
            return Err(format!("its packages hold no {}", program.path).into());
        }
        environment.paths = program
            .environment
            .iter()
            .map(|(name, path)| (*name, format!("{inside}/{path}")))
            .collect();
        let script = wrapper::script(&path, program.arguments, &environment);
        wrapper::write(&root.join("bin").join(program.name), &script)?;
    }
    Ok(())
}

fn unpack(archive: &Path, tree: &Path) -> crate::Result<()> {
    let unpack = Invocation::new("dpkg-deb").arg("-x").args([archive, tree]);
    let (ended, output) = unpack.capture(FETCH_LIMIT)?;
    if ended.is_success() {
        Ok(())
    } else {
        Err(format!("`{unpack}` failed ({ended}): {}", last_lines(&output)).into())
    }
}

/// The library directories relative to the tree: `lib`, its directory for the architecture, and
/// directories right below, since some packages name a private directory by its absolute path.
fn library_directories(tree: &Path) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    for top in ["usr/lib", "lib"] {
        let top = tree.join(top);
        if !top.is_dir() {
            continue;
        }
        found.push(top.clone());
        for architecture in directories(&top)?
            .into_iter()
            .filter(|path| is_triplet(path))
        {
            found.push(architecture.clone());
            found.extend(directories(&architecture)?);
        }
    }
    found.retain(|directory| holds_libraries(directory));
    Ok(found
        .iter()
        .filter_map(|path| path.strip_prefix(tree).ok()?.to_str().map(str::to_owned))
        .collect())
}

/// Returns true for a directory of one architecture: `x86_64-linux-gnu`.
fn is_triplet(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.contains("-linux-"))
}

fn holds_libraries(directory: &Path) -> bool {
    let is_library = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with("lib") && name.contains(".so"))
    };
    entries(directory).is_ok_and(|entries| entries.iter().any(is_library))
}

fn directories(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut entries = entries(directory)?;
    entries.retain(|path| path.is_dir());
    Ok(entries)
}

fn entries(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut entries = fs::read_dir(directory)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<Vec<_>>>()?;
    entries.sort_unstable();
    Ok(entries)
}

fn remove(directory: &Path) -> io::Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// A configuration with the fonts of the tree only, so that a screenshot looks the same on every
/// machine.
fn fonts_configuration(cache: &Path) -> String {
    let cache = cache
        .to_string_lossy()
        .replace('&', "&amp;")
        .replace('<', "&lt;");
    let mut aliases = String::new();
    for (generic, family) in [
        ("sans-serif", "Liberation Sans"),
        ("system-ui", "Liberation Sans"),
        ("serif", "Liberation Serif"),
        ("monospace", "Liberation Mono"),
        ("ui-monospace", "Liberation Mono"),
    ] {
        aliases.push_str(&format!(
            "  <alias><family>{generic}</family><prefer><family>{family}</family></prefer></alias>\n"
        ));
    }
    format!(
        "<?xml version=\"1.0\"?>\n<!DOCTYPE fontconfig SYSTEM \"fonts.dtd\">\n<fontconfig>\n  \
         <dir prefix=\"relative\">usr/share/fonts</dir>\n  <cachedir>{cache}</cachedir>\n{aliases}</fontconfig>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_looked_for_where_packages_put_them() {
        let tree = tempfile::tempdir().expect("a directory can be made");
        for file in [
            "usr/lib/x86_64-linux-gnu/libnss3.so",
            "usr/lib/x86_64-linux-gnu/pulseaudio/libpulsecommon-16.1.so",
            "usr/lib/x86_64-linux-gnu/icu/pkgdata.inc",
            "usr/lib/chromium/libEGL.so",
            "lib/x86_64-linux-gnu/libcap.so.2.66",
        ] {
            let file = tree.path().join(file);
            fs::create_dir_all(file.parent().expect("it has a directory")).expect("can be made");
            fs::write(file, "").expect("can be written");
        }
        assert_eq!(
            library_directories(tree.path()).expect("can be read"),
            [
                "usr/lib/x86_64-linux-gnu",
                "usr/lib/x86_64-linux-gnu/pulseaudio",
                "lib/x86_64-linux-gnu",
            ]
        );
    }

    #[test]
    fn fonts_come_from_the_tree_alone_and_the_cache_may_lie_anywhere() {
        let text = fonts_configuration(Path::new("/a&b/<cache>"));
        assert!(text.contains("<cachedir>/a&amp;b/&lt;cache></cachedir>"));
        assert_eq!(text.matches("<dir ").count(), 1);
        assert!(text.contains("<dir prefix=\"relative\">usr/share/fonts</dir>"));
        assert!(text.contains("<family>Liberation Mono</family>"));
    }

    #[test]
    fn removing_what_is_not_there_is_fine() {
        let directory = tempfile::tempdir().expect("a directory can be made");
        remove(&directory.path().join("missing")).expect("nothing to do");
    }
}
