//! The files of a crate.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Texts of source files by their paths below `src`, with `/`.
#[derive(Default)]
pub(crate) struct Files {
    texts: BTreeMap<String, String>,
}

impl Files {
    /// Reads every source file below a directory.
    pub(crate) fn read(root: &Path) -> Self {
        let mut files = Self::default();
        files.read_folder(root, "");
        files
    }

    fn read_folder(&mut self, folder: &Path, prefix: &str) {
        let entries = fs::read_dir(folder).expect("the folder of a module can be listed");
        for entry in entries {
            let path = entry.expect("an entry can be read").path();
            let name = path.file_name().and_then(|name| name.to_str());
            let name = name.expect("names of modules are ASCII");
            if path.is_dir() {
                self.read_folder(&path, &format!("{prefix}{name}/"));
            } else if name.ends_with(".rs") {
                let text = fs::read_to_string(&path).expect("a source file is text");
                self.texts.insert(format!("{prefix}{name}"), text);
            }
        }
    }

    /// A generated crate for a test.
    pub(crate) fn made_up(files: &[(&str, &str)]) -> Self {
        let texts = files
            .iter()
            .map(|&(path, text)| (path.to_owned(), text.to_owned()))
            .collect();
        Self { texts }
    }

    /// The file of the module with this path, and its text. The root is `lib.rs`.
    pub(crate) fn of_module(&self, path: &[String]) -> Option<(&str, &str)> {
        let candidates = if path.is_empty() {
            vec!["lib.rs".to_owned()]
        } else {
            let joined = path.join("/");
            vec![format!("{joined}.rs"), format!("{joined}/mod.rs")]
        };
        candidates
            .iter()
            .find_map(|candidate| self.texts.get_key_value(candidate))
            .map(|(path, text)| (path.as_str(), text.as_str()))
    }
}
