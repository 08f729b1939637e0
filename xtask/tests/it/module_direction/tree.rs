//! The modules of a crate, and the dependencies between its files.

use std::collections::{BTreeMap, BTreeSet};

use crate::module_direction::layers::Layers;
use crate::module_direction::names::{Import, Names, Segments};
use crate::module_direction::source::Files;

/// Maximum depth of re-exports that are followed.
const DEPTH: usize = 20;

/// A file that names an item of another file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Use {
    pub(crate) from: String,
    pub(crate) to: String,
    /// The path as written in the first file.
    pub(crate) path: String,
}

/// The top-level module of a file: `forward` of `forward/head.rs` and of `forward.rs`.
pub(crate) fn folder(file: &str) -> &str {
    let first = file.split('/').next().unwrap_or(file);
    first.strip_suffix(".rs").unwrap_or(first)
}

struct Module {
    path: Segments,
    file: String,
    names: Names,
}

/// The modules of a crate.
pub(crate) struct Tree {
    modules: BTreeMap<Segments, Module>,
    pub(crate) layers: Layers,
}

impl Tree {
    pub(crate) fn of(files: &Files) -> Self {
        let mut tree = Self {
            modules: BTreeMap::new(),
            layers: Layers::default(),
        };
        tree.read(files, Vec::new());
        tree
    }

    fn read(&mut self, files: &Files, path: Segments) {
        let (file, text) = files
            .of_module(&path)
            .unwrap_or_else(|| panic!("no file of the module {path:?}"));
        let parsed = syn::parse_file(text).unwrap_or_else(|error| panic!("{file}: {error}"));
        if path.is_empty() {
            self.layers = Layers::of(&parsed.attrs);
        }
        self.add(files, path, file, Names::of(&parsed.items));
    }

    fn add(&mut self, files: &Files, path: Segments, file: &str, mut names: Names) {
        for child in &mut names.children {
            let mut below = path.clone();
            below.push(child.name.clone());
            match child.inline.take() {
                Some(inline) => self.add(files, below, file, inline),
                None => self.read(files, below),
            }
        }
        let file = file.to_owned();
        self.modules
            .insert(path.clone(), Module { path, file, names });
    }

    /// The names of the top-level modules.
    pub(crate) fn top_level(&self) -> BTreeSet<String> {
        let paths = self.modules.keys();
        paths.filter_map(|path| path.first().cloned()).collect()
    }

    /// Every use of one file by another. A re-exported name counts as a name of the file that
    /// defines it.
    pub(crate) fn uses(&self) -> BTreeSet<Use> {
        let mut uses = BTreeMap::new();
        for module in self.modules.values() {
            let imported = module.names.imports.iter();
            // A re-export is needed by the modules that name it there.
            let imported = imported
                .filter(|import| !import.shared && import.name.is_some())
                .map(|import| &import.path);
            for path in imported.chain(&module.names.mentions) {
                let Some(target) = self.definition(module, path, 0) else {
                    continue;
                };
                if target.file != module.file {
                    let pair = (module.file.clone(), target.file.clone());
                    uses.entry(pair).or_insert_with(|| path.join("::"));
                }
            }
        }
        let uses = uses.into_iter();
        uses.map(|((from, to), path)| Use { from, to, path })
            .collect()
    }

    fn module(&self, path: &[String]) -> Option<&Module> {
        self.modules.get(path)
    }

    fn child(&self, of: &Module, name: &str) -> Option<&Module> {
        let mut path = of.path.clone();
        path.push(name.to_owned());
        self.module(&path)
    }

    /// The module that defines a path of a module; `None` for modules themselves and for external
    /// names.
    fn definition(&self, at: &Module, path: &[String], depth: usize) -> Option<&Module> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => self.below(self.module(&[])?, rest, depth),
            "self" => self.below(self.module(&at.path)?, rest, depth),
            "super" => {
                let (_, parent) = at.path.split_last()?;
                let parent = self.module(parent)?;
                self.definition(parent, &with_self(rest), depth)
            }
            _ => self.below(self.module(&at.path)?, path, depth),
        }
    }

    /// Like [`definition`](Self::definition), for a path that begins inside the module.
    fn below<'a>(
        &'a self,
        module: &'a Module,
        path: &[String],
        depth: usize,
    ) -> Option<&'a Module> {
        let (first, rest) = path.split_first()?;
        if depth > DEPTH {
            return None;
        }
        if first == "super" {
            return self.definition(module, path, depth);
        }
        if rest.is_empty() && module.names.defined.contains(first) {
            return Some(module);
        }
        if let Some(child) = self.child(module, first) {
            return self.below(child, rest, depth);
        }
        if module.names.defined.contains(first) {
            return Some(module);
        }
        let imports = &module.names.imports;
        let through = |import: &Import| {
            let mut path = import.path.clone();
            path.extend_from_slice(
                if import.name.is_none() {
                    path_of(first, rest)
                } else {
                    rest.to_vec()
                }
                .as_slice(),
            );
            // A crate is never imported from a module with the same name.
            (import.path.first() != Some(first) || import.path.len() > 1)
                .then(|| self.definition(module, &path, depth + 1))
                .flatten()
        };
        let named = imports
            .iter()
            .filter(|import| import.name.as_ref() == Some(first));
        let all = imports.iter().filter(|import| import.name.is_none());
        named.chain(all).find_map(through)
    }
}

fn path_of(first: &str, rest: &[String]) -> Segments {
    let mut path = vec![first.to_owned()];
    path.extend_from_slice(rest);
    path
}

fn with_self(rest: &[String]) -> Segments {
    path_of("self", rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uses(files: &[(&str, &str)]) -> Vec<String> {
        let uses = Tree::of(&Files::made_up(files)).uses();
        uses.iter()
            .map(|one| format!("{} -> {}: {}", one.from, one.to, one.path))
            .collect()
    }

    #[test]
    fn a_name_that_is_passed_on_belongs_to_the_file_that_defines_it() {
        let files = [
            ("lib.rs", "mod a; mod b; pub use self::a::Name;"),
            ("a/mod.rs", "mod inner; pub(crate) use self::inner::*;"),
            ("a/inner.rs", "pub struct Name; impl Name { fn new() {} }"),
            (
                "b.rs",
                "use crate::Name as Other; fn f() { Other::new(); crate::a::Name::new(); }",
            ),
        ];
        assert_eq!(uses(&files), ["b.rs -> a/inner.rs: crate::Name"]);
    }

    #[test]
    fn a_module_that_uses_what_it_passes_on_needs_it() {
        let files = [
            ("lib.rs", "mod a;"),
            (
                "a/mod.rs",
                "mod inner; pub(crate) use inner::Name; fn f(_: Name) {}",
            ),
            ("a/inner.rs", "pub struct Name;"),
        ];
        assert_eq!(uses(&files), ["a/mod.rs -> a/inner.rs: Name"]);
    }

    #[test]
    fn paths_of_imported_modules_and_of_parents_are_followed() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            (
                "a/mod.rs",
                "mod c; mod d; pub fn own() {} pub mod inside { pub fn x() { super::super::b::y() } }",
            ),
            (
                "a/c.rs",
                "use super::d; fn f() { d::g(); super::own(); let d = 1; d; }",
            ),
            ("a/d.rs", "pub fn g() {}"),
            (
                "b.rs",
                "use std::fmt; pub fn y() { fmt::x(); other::z(); crate::a::inside::x(); }",
            ),
        ];
        assert_eq!(
            uses(&files),
            [
                "a/c.rs -> a/d.rs: d::g",
                "a/c.rs -> a/mod.rs: super::own",
                "a/mod.rs -> b.rs: super::super::b::y",
                "b.rs -> a/mod.rs: crate::a::inside::x",
            ]
        );
    }
}
