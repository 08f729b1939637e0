//! Labels in XML.

use discovery_core::Labels;
use proxy_model::{Problem, Problems, pointer_to};
use roxmltree::{Document, Node, ParsingOptions};

use super::bounds;
use super::{DeclaredLabels, canonical, chosen};

/// Namespace of `Labels` and `Label`: the one for what Service Fabric does not look at.
const LABELS: &str = "http://schemas.microsoft.com/2015/03/fabact-no-schema";

/// Namespace of service manifests.
const MANIFEST: &str = "http://schemas.microsoft.com/2011/01/fabric";

/// The most labels of a type.
const MAX_LABELS: usize = 5_000;

/// The longest key.
const MAX_KEY: usize = 1_024;

/// The longest value.
const MAX_VALUE: usize = 64 << 10;

/// The labels in the contents of extensions, which are read as if they were one.
pub(super) fn from_values<'a>(values: impl Iterator<Item = &'a str>) -> DeclaredLabels {
    let mut reading = LabelsReader::default();
    for value in values {
        // The content of an element need not be a document: there may be text, or several elements.
        let content = without_declaration(value);
        let document = format!("<Extension>{content}</Extension>");
        if let Err(problem) = with_document(&document, |root| reading.extension(root)) {
            return DeclaredLabels::unreadable(problem);
        }
    }
    reading.finish()
}

/// Returns the labels of the service type `name` in a service manifest. `None` if the type has no such
/// extension.
pub(super) fn from_manifest(manifest: &str, name: &str) -> Option<DeclaredLabels> {
    let manifest = manifest.trim_start_matches('\u{feff}');
    let read = with_document(manifest, |root| {
        let extensions: Vec<_> = children(root, MANIFEST, "ServiceTypes")
            .flat_map(|types| types.children())
            .filter(|of| of.attribute("ServiceTypeName") == Some(name))
            .flat_map(|of| children(of, MANIFEST, "Extensions"))
            .flat_map(|extensions| children(extensions, MANIFEST, "Extension"))
            .filter_map(|extension| Some((extension.attribute("Name")?, extension)))
            .collect();
        let present: Vec<_> = extensions.iter().map(|(name, _)| *name).collect();
        let (chosen, warning) = chosen(&present)?;
        let mut reading = LabelsReader::default();
        for (name, extension) in extensions {
            if name == chosen {
                reading.extension(extension);
            }
        }
        let mut declared = reading.finish();
        declared.problems.extend(warning);
        Some(declared)
    });
    read.unwrap_or_else(|problem| Some(DeclaredLabels::unreadable(problem)))
}

fn with_document<T>(xml: &str, read: impl FnOnce(Node<'_, '_>) -> T) -> Result<T, Problem> {
    let rejected = |why: &dyn std::fmt::Display| {
        let message = format!("the XML of the labels cannot be read: {why}");
        Problem::error("", "invalid_labels_xml", message)
    };
    bounds::check(xml).map_err(|error| rejected(&error))?;
    let options = ParsingOptions {
        nodes_limit: bounds::MAX_NODES,
        ..ParsingOptions::default()
    };
    let document = Document::parse_with_options(xml, options).map_err(|error| rejected(&error))?;
    Ok(read(document.root_element()))
}

/// Returns the text behind an XML declaration, which may stand only at the beginning of a document.
fn without_declaration(content: &str) -> &str {
    let content = content.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']);
    let declaration = content
        .strip_prefix("<?xml")
        .filter(|rest| rest.starts_with([' ', '\t', '\r', '\n']));
    match declaration.and_then(|rest| rest.split_once("?>")) {
        Some((_, rest)) => rest,
        None => content,
    }
}

fn children<'a, 'input: 'a>(
    parent: Node<'a, 'input>,
    namespace: &'static str,
    name: &'static str,
) -> impl Iterator<Item = Node<'a, 'input>> {
    parent
        .children()
        .filter(move |child| child.has_tag_name((namespace, name)))
}

/// Labels in the making.
#[derive(Default)]
struct LabelsReader {
    labels: Labels,
    problems: Problems,
}

impl LabelsReader {
    fn extension(&mut self, extension: Node<'_, '_>) {
        for child in extension.children() {
            if child.has_tag_name((LABELS, "Labels")) {
                self.all(child);
            } else if child.tag_name().name() == "Labels" {
                self.foreign("Labels");
            }
        }
    }

    fn all(&mut self, labels: Node<'_, '_>) {
        for child in labels.children() {
            if child.has_tag_name((LABELS, "Label")) {
                self.one(child);
            } else if child.tag_name().name() == "Label" {
                self.foreign("Label");
            }
        }
    }

    fn one(&mut self, label: Node<'_, '_>) {
        let Some(key) = label.attribute("Key").filter(|key| !key.is_empty()) else {
            let message = "a `Label` has no `Key`";
            let problem = Problem::error("", "missing_label_key", message);
            let mut names = label.attributes().map(|attribute| attribute.name());
            return self.reject(match names.find(|name| name.eq_ignore_ascii_case("Key")) {
                Some(name) if name != "Key" => {
                    problem.with_suggestion(format!("write `Key=` instead of `{name}=`"))
                }
                _ => problem,
            });
        };
        if key.len() > MAX_KEY {
            let message = format!("the key of a label has more than {MAX_KEY} bytes");
            return self.reject(Problem::error("", "label_too_long", message));
        }
        let key = canonical(key);
        let pointer = pointer_to("", &key);
        let value = text_of(label);
        if value.len() > MAX_VALUE {
            let message = format!("the value has more than {MAX_VALUE} bytes");
            return self.reject(Problem::error(pointer, "label_too_long", message));
        }
        if self.labels.contains_key(&*key) {
            let message = format!("the label `{key}` is there twice");
            return self.reject(Problem::error(pointer, "duplicate_label", message));
        }
        if self.labels.len() == MAX_LABELS {
            let message = format!("there are more than {MAX_LABELS} labels");
            if !self.problems.iter().any(|p| p.code == "too_many_labels") {
                self.reject(Problem::error("", "too_many_labels", message));
            }
            return;
        }
        self.labels.insert(key.into_owned(), value);
    }

    fn reject(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    /// Warns of an element that has the expected name but another namespace.
    fn foreign(&mut self, name: &str) {
        if self.problems.iter().any(|p| p.code == "labels_namespace") {
            return;
        }
        let message = format!("an element `{name}` of another namespace is ignored");
        let problem = Problem::warning("", "labels_namespace", message)
            .with_suggestion(format!("write `<Labels xmlns=\"{LABELS}\">`"));
        self.problems.push(problem);
    }

    fn finish(mut self) -> DeclaredLabels {
        if self.labels.is_empty() && self.problems.is_empty() {
            let message = "the extension has no labels";
            let problem = Problem::warning("", "no_labels", message).with_suggestion(format!(
                "write `<Labels xmlns=\"{LABELS}\"><Label Key=\"YARP.Enable\">true</Label></Labels>`"
            ));
            self.problems.push(problem);
        }
        let mut declared = DeclaredLabels::new(self.labels);
        declared.problems = self.problems;
        declared
    }
}

/// Returns all text in the element, without comments. As in .NET, white space alone counts as empty.
fn text_of(element: Node<'_, '_>) -> String {
    let text: String = element
        .descendants()
        .filter(Node::is_text)
        .filter_map(|node| node.text())
        .collect();
    if text.trim().is_empty() {
        String::new()
    } else {
        text
    }
}
