//! The project's own files.

use std::fs;
use std::path::Path;

/// Directories, by their path in the project, with build output, downloads or generated files, as
/// in `.gitignore`.
const LEFT_OUT: [&str; 5] = [
    ".git",
    "target",
    "fuzz/target",
    "fuzz/corpus",
    "fuzz/artifacts",
];

/// Calls `each` with the path (relative to `root`, with `/`) and the text of each text file.
pub(crate) fn each_text(root: &Path, each: &mut dyn FnMut(&str, &str)) {
    walk(root, "", each);
}

fn walk(directory: &Path, inside: &str, each: &mut dyn FnMut(&str, &str)) {
    let mut entries: Vec<_> = fs::read_dir(directory)
        .expect("the project can be read")
        .map(|entry| entry.expect("the project can be read"))
        .collect();
    entries.sort_unstable_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = format!("{inside}{}", entry.file_name().to_string_lossy());
        // A file may vanish between the listing and the check, such as a temporary file of an
        // editor.
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        if kind.is_dir() {
            if !LEFT_OUT.contains(&path.as_str()) && !path.ends_with("node_modules") {
                walk(&entry.path(), &format!("{path}/"), each);
            }
        } else if kind.is_file()
            && let Ok(text) = fs::read_to_string(entry.path())
        {
            each(&path, &text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_built_or_is_no_text_is_left_out() {
        let root = tempfile::tempdir().expect("a directory can be made");
        for (path, content) in [
            ("a/src/lib.rs", &b"//! A."[..]),
            ("target/debug/out.txt", b"built"),
            ("a/target.rs", b"mod target;"),
            ("page/node_modules/x.js", b"fetched"),
            ("shot.png", b"\x89PNG\xff"),
            (".ci/run", b"exec"),
        ] {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("it has a directory")).expect("can be made");
            fs::write(path, content).expect("can be written");
        }
        let mut seen = Vec::new();
        each_text(root.path(), &mut |path, _| seen.push(path.to_owned()));
        assert_eq!(seen, [".ci/run", "a/src/lib.rs", "a/target.rs"]);
    }
}
