//! Elements of manifests.

use roxmltree::{Document, Node, ParsingOptions};

use super::{MAX_MANIFEST, PackageError};

/// Namespace of manifests.
const NAMESPACE: &str = "http://schemas.microsoft.com/2011/01/fabric";

/// The maximum number of elements, comments and texts of a manifest.
const MAX_NODES: u32 = 100_000;

/// An element of a manifest, with the file's name.
#[derive(Clone, Copy)]
pub(super) struct Element<'a, 'input> {
    file: &'a str,
    node: Node<'a, 'input>,
}

/// Parses a manifest whose root element is `root`.
pub(super) fn read<T>(
    file: &str,
    text: &str,
    root: &str,
    read: impl FnOnce(Element<'_, '_>) -> Result<T, PackageError>,
) -> Result<T, PackageError> {
    if text.len() > MAX_MANIFEST {
        let message = format!("the manifest has more than {MAX_MANIFEST} bytes");
        return Err(PackageError::new(file, message));
    }
    let options = ParsingOptions {
        nodes_limit: MAX_NODES,
        ..ParsingOptions::default()
    };
    let document = Document::parse_with_options(text.trim_start_matches('\u{feff}'), options)
        .map_err(|error| PackageError::new(file, format!("this is not XML: {error}")))?;
    let node = document.root_element();
    if !node.has_tag_name((NAMESPACE, root)) {
        let message = format!("the root element is not `{root}` with xmlns=\"{NAMESPACE}\"");
        return Err(PackageError::new(file, message));
    }
    read(Element { file, node })
}

impl<'a, 'input: 'a> Element<'a, 'input> {
    pub(super) fn name(&self) -> &'a str {
        self.node.tag_name().name()
    }

    /// Returns all elements below this one in the namespace of manifests.
    pub(super) fn elements(self) -> impl Iterator<Item = Self> {
        let all = self.node.children();
        let own = all.filter(|node| node.tag_name().namespace() == Some(NAMESPACE));
        own.map(move |node| Self { node, ..self })
    }

    /// Returns all elements of this name below this one.
    pub(super) fn all(self, name: &'a str) -> impl Iterator<Item = Self> {
        self.elements()
            .filter(move |element| element.name() == name)
    }

    /// Returns the first element of this name below this one.
    pub(super) fn first(self, name: &'a str) -> Option<Self> {
        self.all(name).next()
    }

    /// The first element at this path.
    pub(super) fn at(self, path: &[&'a str]) -> Option<Self> {
        path.iter()
            .try_fold(self, |element, name| element.first(name))
    }

    /// Returns an optional attribute.
    pub(super) fn get(self, name: &str) -> Option<&'a str> {
        self.node.attribute(name)
    }

    /// Returns a required attribute, which must not be empty.
    pub(super) fn attribute(self, name: &str) -> Result<&'a str, PackageError> {
        self.get(name)
            .filter(|value| !value.is_empty())
            .ok_or_else(|| self.error(format!("an element `{}` has no `{name}`", self.name())))
    }

    /// The text of this element.
    pub(super) fn text(self) -> &'a str {
        self.node.text().unwrap_or_default().trim()
    }

    /// Returns the text inside the element, markup included.
    pub(super) fn inner(self) -> &'input str {
        let source = self.node.document().input_text();
        let first = self.node.first_child().map(|node| node.range().start);
        let last = self.node.last_child().map(|node| node.range().end);
        match (first, last) {
            (Some(first), Some(last)) => source.get(first..last).unwrap_or_default().trim(),
            _ => "",
        }
    }

    pub(super) fn error(self, message: impl Into<String>) -> PackageError {
        PackageError::new(self.file, message)
    }
}
