//! Layers of a configuration: files, variables and options that together are one document, each value with
//! its origin.

use std::collections::HashMap;
use std::fmt;
use std::sync::OnceLock;

use super::flat::{DELIMITER, MOST_LEVELS};
use super::node::{Key, Node, Object, parse};
use super::places::Place;
use crate::problem::{Problem, Problems, pointer_to};

/// A value from outside of the files: a variable of the environment, an option of the command line, a file
/// that holds one value.
#[derive(Clone, PartialEq, Eq)]
pub struct Setting {
    /// The path of the value, with colons: `ReverseProxy:Routes:r:Order`.
    pub key: String,
    /// The value. Every value is a text, as in .NET.
    pub value: String,
    /// The name for people: ``the variable `ReverseProxy__Routes__r__Order` ``.
    pub origin: String,
}

// Values may be secrets.
impl fmt::Debug for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setting")
            .field("key", &self.key)
            .field("origin", &self.origin)
            .finish_non_exhaustive()
    }
}

/// A layer of a configuration.
#[derive(Clone)]
pub enum Layer {
    /// A file of JSON.
    File {
        /// The name for people.
        name: String,
        /// The content.
        text: String,
    },
    /// Single values, in an order that has no meaning.
    Settings(Vec<Setting>),
}

impl fmt::Debug for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { name, .. } => f.debug_tuple("File").field(name).finish(),
            Self::Settings(settings) => f.debug_tuple("Settings").field(settings).finish(),
        }
    }
}

/// A document of several layers, each on top of the ones before.
#[derive(Debug)]
pub struct Layered {
    /// The document.
    pub node: Node,
    /// Problems of the merge, with pointers from the document's root and with origins.
    pub problems: Problems,
    /// The origins of its values.
    pub origins: Origins,
}

impl Layered {
    /// Merges layers as .NET merges its providers: the last layer that has a value counts. See
    /// [`Node::overlaid`] and [`Node::nested`].
    ///
    /// # Errors
    ///
    /// A file is not a JSON object. The problems have its name as their origin.
    pub fn new(layers: Vec<Layer>) -> Result<Self, Problems> {
        let mut node = Node::Object(Object::default());
        let mut problems = Problems::new();
        let mut is_first = true;
        for layer in &layers {
            let mut found = Problems::new();
            let above = layer.document(&mut found)?;
            problems.append(found);
            node = match std::mem::take(&mut is_first) {
                true => above,
                false => node.overlaid(above, &mut problems),
            };
        }
        let origins = Origins {
            layers,
            places: OnceLock::new(),
        };
        origins.place(&mut problems);
        Ok(Self {
            node,
            problems,
            origins,
        })
    }
}

impl Layer {
    fn document(&self, problems: &mut Problems) -> Result<Node, Problems> {
        match self {
            Self::File { name, text } => {
                let of_file = |problems: Problems| {
                    let named = problems
                        .into_iter()
                        .map(|problem| problem.with_origin(name.as_str()));
                    Problems::from_iter(named)
                };
                let node = parse(text).map_err(|rejected| {
                    let origin = match rejected.line {
                        Some(line) => format!("{name}:{line}"),
                        None => name.clone(),
                    };
                    Problems::from(rejected.problem.with_origin(origin))
                })?;
                if !matches!(node, Node::Object(_)) {
                    let message = "the document is not an object";
                    let problem = Problem::error("", "wrong_type", message);
                    return Err(of_file(problem.into()));
                }
                let mut found = Problems::new();
                let node = node.nested(&mut found);
                problems.append(of_file(found));
                Ok(node)
            }
            Self::Settings(settings) => Ok(of_settings(settings, problems)),
        }
    }

    fn places(&self) -> Place {
        match self {
            Self::File { text, .. } => Place::of_text(text).unwrap_or_default(),
            Self::Settings(settings) => {
                let mut root = Place::default();
                for (at, setting) in settings.iter().enumerate() {
                    let path: Vec<&str> = setting.key.split(DELIMITER).collect();
                    if path.len() <= MOST_LEVELS {
                        let place = Place {
                            at,
                            is_value: true,
                            ..Place::default()
                        };
                        root.insert(&path, place);
                    }
                }
                root
            }
        }
    }

    /// Returns the name of a place of this layer.
    fn name_of(&self, place: &Place) -> String {
        match self {
            Self::File { name, .. } => match place.at {
                0 => name.clone(),
                line => format!("{name}:{line}"),
            },
            Self::Settings(settings) => settings
                .get(place.at)
                .map_or_else(String::new, |setting| setting.origin.clone()),
        }
    }
}

/// Returns the document of single values. Two settings with one key are an error, since their
/// order has no meaning.
fn of_settings(settings: &[Setting], problems: &mut Problems) -> Node {
    let mut root = Object::default();
    let mut known: HashMap<Key, &Setting> = HashMap::new();
    for setting in settings {
        let pointer = setting
            .key
            .split(DELIMITER)
            .fold(String::new(), |pointer, key| pointer_to(&pointer, key));
        let levels = setting.key.split(DELIMITER).count();
        let problem = if levels > MOST_LEVELS || setting.key.len() > MOST_BYTES {
            Problem::error(
                "",
                "too_deep",
                format!(
                    "the key has {levels} levels and {} bytes",
                    setting.key.len()
                ),
            )
        } else if let Some(first) = known.insert(Key::new(setting.key.as_str()), setting) {
            let message = format!("the same value is set by {}", first.origin);
            Problem::error(pointer, "duplicate_key", message)
                .with_suggestion("keep one of them; keys are compared ignoring case")
        } else {
            let mut node = Node::Text(setting.value.clone());
            let mut keys: Vec<&str> = setting.key.split(DELIMITER).collect();
            let first = keys.remove(0);
            for key in keys.into_iter().rev() {
                let mut object = Object::default();
                object.entries.insert(Key::new(key), node);
                node = Node::Object(object);
            }
            let mut found = Problems::new();
            root.join(Key::new(first), node, "", &mut found);
            for problem in found {
                problems.push(problem.with_origin(setting.origin.as_str()));
            }
            continue;
        };
        problems.push(problem.with_origin(setting.origin.as_str()));
    }
    Node::Object(root)
}

/// The longest path of a setting, in bytes.
const MOST_BYTES: usize = 16 << 10;

/// A value of a document with its origin.
#[derive(Clone, Debug, PartialEq)]
pub struct OriginatedValue {
    /// The place in the document.
    pub pointer: String,
    /// The value. It may be a secret.
    pub value: Node,
    /// The layer that the value comes from: `appsettings.json:12`.
    pub origin: String,
    /// The layers below that have a value there too, the uppermost first.
    pub over: Vec<String>,
}

/// The origins of a document's values: the layers that it was made of.
pub struct Origins {
    layers: Vec<Layer>,
    /// The places of each layer, found when a problem needs them.
    places: OnceLock<Vec<Place>>,
}

impl Origins {
    fn places(&self) -> &[Place] {
        self.places
            .get_or_init(|| self.layers.iter().map(Layer::places).collect())
    }

    /// Returns the origin of the value at `pointer`: `appsettings.json:12`. Of a value that is not there,
    /// the origin of the nearest object around it. Of several layers that have it, the uppermost.
    pub fn of(&self, pointer: &str) -> Option<String> {
        let found = self.layers.iter().zip(self.places());
        let found = found.map(|(layer, root)| (layer, root.find(pointer)));
        // Of equals, `max_by_key` returns the last.
        let (layer, (place, depth)) = found.max_by_key(|(_, (_, depth))| *depth)?;
        // The root is in every layer, and so says nothing.
        let says_where = depth > 0 || self.layers.len() == 1;
        says_where.then(|| layer.name_of(place))
    }

    /// Sets the origins of problems that have none.
    pub fn place(&self, problems: &mut Problems) {
        problems.place_repeated(|pointer| self.of_repeated(pointer));
        problems.set_origins(|pointer| self.of(pointer));
    }

    /// Returns the origin of a key that a file has twice, and that of the first of the two.
    fn of_repeated(&self, pointer: &str) -> Option<(String, String)> {
        let mut found = self.layers.iter().zip(self.places()).rev();
        found.find_map(|(layer, root)| {
            let (place, depth) = root.find(pointer);
            let is_there = depth == pointer.split('/').count() - 1;
            let line = place.again.filter(|_| is_there)?;
            let Layer::File { name, .. } = layer else {
                return None;
            };
            Some((format!("{name}:{line}"), layer.name_of(place)))
        })
    }
}

impl Layered {
    /// Returns the values of the document with their origins, without objects and lists.
    pub fn values(&self) -> Vec<OriginatedValue> {
        let layers = self.origins.layers.iter().zip(self.origins.places());
        let roots: Vec<(&Layer, &Place)> = layers.rev().collect();
        let mut all = Vec::new();
        collect(&self.node, "", &roots, &mut all);
        all
    }
}

/// Adds the values of `node`, which is at `pointer`. `layers` have something there, the uppermost first.
fn collect(
    node: &Node,
    pointer: &str,
    layers: &[(&Layer, &Place)],
    all: &mut Vec<OriginatedValue>,
) {
    let mut inside = |key: &str, node: &Node| {
        let key = Key::new(key);
        let layers: Vec<_> = layers
            .iter()
            .filter_map(|(layer, place)| Some((*layer, place.inside.get(&key)?)))
            .collect();
        collect(node, &pointer_to(pointer, key.as_str()), &layers, all);
    };
    match node {
        Node::Object(object) => object.iter().for_each(|(key, node)| inside(key, node)),
        Node::List(nodes) => {
            let nodes = nodes.iter().enumerate();
            nodes.for_each(|(index, node)| inside(&index.to_string(), node));
        }
        value => {
            let with_value = layers.iter().filter(|(_, place)| place.is_value);
            let mut names = with_value.map(|(layer, place)| layer.name_of(place));
            all.push(OriginatedValue {
                pointer: pointer.to_owned(),
                value: value.clone(),
                origin: names.next().unwrap_or_default(),
                over: names.collect(),
            });
        }
    }
}

// Texts may have secrets.
impl fmt::Debug for Origins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Origins").field(&self.layers).finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::json::parse_document;

    fn file(name: &str, text: &str) -> Layer {
        Layer::File {
            name: name.to_owned(),
            text: text.to_owned(),
        }
    }

    fn settings(settings: &[(&str, &str)]) -> Layer {
        let setting = |(key, value): &(&str, &str)| Setting {
            key: (*key).to_owned(),
            value: (*value).to_owned(),
            origin: format!("${key}"),
        };
        Layer::Settings(settings.iter().map(setting).collect())
    }

    #[test]
    fn of_several_layers_the_last_that_has_a_value_counts() {
        let layers = vec![
            file(
                "base",
                "{\n\"r\": { \"order\": 1, \"hosts\": [\"a\",\n\"b\"] } }",
            ),
            file("env", "{\n\n\"R:Order\": 2,\n\"r:path\": \"/\" }"),
            settings(&[("r:ORDER", "3"), ("r:hosts:2", "c"), ("x:y", "z")]),
        ];
        let layered = Layered::new(layers).unwrap();
        assert!(layered.problems.is_empty(), "{}", layered.problems);
        let expected = r#"{ "r": { "order": "3", "hosts": ["a", "b", "c"], "path": "/" }, "x": { "y": "z" } }"#;
        assert_eq!(layered.node, parse_document(expected).unwrap());
        for (pointer, origin) in [
            ("/r/order", "$r:ORDER"),
            ("/R/ORDER", "$r:ORDER"),
            ("/r/path", "env:4"),
            ("/r/hosts/1", "base:3"),
            ("/r/hosts/2", "$r:hosts:2"),
            ("/x/y", "$x:y"),
            ("/x/none", "$x:y"),
        ] {
            assert_eq!(
                layered.origins.of(pointer).as_deref(),
                Some(origin),
                "{pointer}"
            );
        }
        assert_eq!(layered.origins.of("/none"), None);
        let values = layered.values();
        let order = values.iter().find(|v| v.pointer == "/r/order").unwrap();
        assert_eq!(order.over, ["env:3", "base:2"]);
        assert_eq!(values.len(), 6);
    }

    #[test]
    fn keys_that_differ_only_in_case_are_an_error_that_names_both() {
        let layers = vec![settings(&[("a:B", "1"), ("A:b", "2")])];
        let layered = Layered::new(layers).unwrap();
        let problem = layered.problems.iter().next().unwrap();
        assert_eq!(problem.code, "duplicate_key");
        assert_eq!(problem.origin.as_deref(), Some("$A:b"));
        assert!(problem.message.contains("$a:B"), "{problem}");
    }

    #[test]
    fn problems_of_the_merge_say_where() {
        let layers = vec![
            file("base", "{ \"a\": { \"b\": 1 } }"),
            settings(&[("a", "text")]),
        ];
        let layered = Layered::new(layers).unwrap();
        assert_eq!(
            layered.problems.to_string(),
            "error at /a ($a): there are keys below this value; .NET keeps both and reads the keys alone \
             (remove the value, or write what it replaces key by key)"
        );
        let failed = Layered::new(vec![file("base", "{}"), file("env", "[]")]).unwrap_err();
        assert_eq!(
            failed.to_string(),
            "error at / (env): the document is not an object"
        );
    }

    #[test]
    fn long_and_deep_keys_are_rejected() {
        let deep = "a:".repeat(20_000);
        let layered = Layered::new(vec![settings(&[(&deep, "1")])]).unwrap();
        assert_eq!(layered.problems.iter().next().unwrap().code, "too_deep");
        assert!(layered.values().is_empty());
    }

    #[test]
    fn a_repeated_key_is_where_its_value_is() {
        for (below, above, expected) in [
            (
                r#"{"A:": [null]}"#,
                r#"{"A:": null, "a:": [[]]}"#,
                "below:1",
            ),
            (
                r#"{"a": {"b": 1}}"#,
                r#"{"a": {"c": 1}, "A": {"b": 2}}"#,
                "below:1",
            ),
            (
                r#"{"a": {"b": 1}}"#,
                r#"{"a": {"b": 2}, "A": 3}"#,
                "above:1",
            ),
        ] {
            let layers = vec![file("below", below), file("above", above)];
            let layered = Layered::new(layers).unwrap();
            let values = layered.values();
            assert_eq!(values[0].origin, expected, "{above}");
            let of_problem = layered.origins.of(&values[0].pointer);
            assert_eq!(of_problem.as_deref(), Some(expected), "{above}");
        }
    }

    fn any_document() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<i8>().prop_map(Into::into)
        ];
        let inner = leaf.prop_recursive(3, 16, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Into::into),
                prop::collection::hash_map("[abAB:]{1,3}", inner, 0..3)
                    .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
            ]
        });
        prop::collection::hash_map("[abAB:]{1,3}", inner, 0..4)
            .prop_map(|map| serde_json::Value::Object(map.into_iter().collect()))
    }

    proptest! {
        /// The origin of each value is one of its layers, and the same for a problem there.
        #[test]
        fn every_value_has_an_origin(documents in prop::collection::vec(any_document(), 1..4)) {
            let layers = documents.iter().enumerate();
            let layers = layers.map(|(i, document)| file(&i.to_string(), &document.to_string()));
            let layered = Layered::new(layers.collect()).unwrap();
            let values = layered.values();
            for value in values {
                prop_assert!(value.origin.ends_with(":1"), "{value:?}");
                prop_assert_eq!(layered.origins.of(&value.pointer), Some(value.origin));
            }
        }
    }
}
