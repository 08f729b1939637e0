//! The tree that a document becomes.

use std::borrow::Cow;
use std::fmt;

use indexmap::IndexMap;
use indexmap::map::Entry;
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, de};
use serde_json::Number;

use super::lenient::{Blanked, ChangedNumbers, blanked};
use super::speller::Speller;
use super::syntax::{self, Rejected};
use crate::id::ClusterId;
use crate::problem::{Problem, Problems};

/// The largest document that is read, in bytes: 64 MiB, room for half a million destinations.
pub const MAX_DOCUMENT_BYTES: usize = 64 << 20;

/// The longest key, in bytes. Every problem below a key repeats it in its pointer.
const MAX_KEY_BYTES: usize = 1024;

/// A value of a document.
///
/// It can be deserialised from any format that describes itself, so a document may also come from TOML.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// `null`, which is the same as not being there.
    Null,
    /// A boolean, `true` or `false`.
    Boolean(bool),
    /// A number. A number that would be written in another form than it has (`1.10`, `1e3`) is a
    /// [`Text`](Self::Text) instead, as every value is in .NET.
    Number(Number),
    /// A string.
    Text(String),
    /// An array.
    List(Vec<Self>),
    /// An object.
    Object(Object),
}

impl Node {
    /// The value of `key`, compared ignoring case, if this is an object that has it.
    pub fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Object(object) => object.get(key),
            _ => None,
        }
    }

    /// `pointer` with its keys spelled as the document spells them, for a pointer to something below this node.
    ///
    /// Stops translating where the document has no such key.
    pub fn spelled(&self, pointer: &str) -> String {
        Speller::new(self, &[]).spelled(pointer)
    }

    /// Returns the node at `pointer`, if one exists.
    pub(crate) fn at(&self, pointer: &str) -> Option<&Self> {
        pointer.split('/').skip(1).try_fold(self, |node, token| {
            let key = token.replace("~1", "/").replace("~0", "~");
            Some(node.entry(&key)?.1)
        })
    }

    /// The kind of the node, for a message: `a list`.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean(_) => "true or false",
            Self::Number(_) => "a number",
            Self::Text(_) => "text",
            Self::List(_) => "a list",
            Self::Object(_) => "an object",
        }
    }

    pub(super) fn entry(&self, key: &str) -> Option<(Cow<'_, str>, &Self)> {
        match self {
            Self::Object(object) => {
                let (spelled, node) = object.entry(key)?;
                Some((Cow::Borrowed(spelled), node))
            }
            Self::List(nodes) => {
                let node = nodes.get(key.parse::<usize>().ok()?)?;
                Some((Cow::Owned(key.to_owned()), node))
            }
            _ => None,
        }
    }
}

/// The elements of a list that is written as an object whose keys are numbers, in the order of the numbers.
pub(super) fn numbered(node: &Node) -> Option<Vec<(&str, &Node)>> {
    let Node::Object(object) = node else {
        return None;
    };
    let mut elements: Vec<(u32, (&str, &Node))> = object
        .iter()
        .map(|(key, node)| Some((key.parse().ok()?, (key, node))))
        .collect::<Option<_>>()?;
    elements.sort_by_key(|(index, _)| *index);
    Some(elements.into_iter().map(|(_, element)| element).collect())
}

/// An object's keys and values in the order written. Of keys that differ in case only, the first counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Object {
    pub(super) entries: IndexMap<Key, Node>,
    pub(super) repeated: Vec<String>,
}

/// A key of an object, compared as ids are.
pub(super) type Key = ClusterId;

/// Objects with no more keys than this are searched one by one, which needs no copy of the key.
const FEW: usize = 16;

impl Object {
    /// The value of `key`, compared ignoring case.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|(_, node)| node)
    }

    /// Returns `key` in its spelling here, and its value.
    pub fn entry(&self, key: &str) -> Option<(&str, &Node)> {
        let (key, node) = if self.entries.len() <= FEW {
            self.entries.iter().find(|(k, _)| *k == key)?
        } else {
            self.entries.get_key_value(&Key::new(key))?
        };
        Some((key.as_str(), node))
    }

    /// Keys and values in the order written.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Node)> {
        self.entries.iter().map(|(key, node)| (key.as_str(), node))
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if there are no keys.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The keys that occur a second time, in the spelling of the second one.
    pub fn repeated(&self) -> &[String] {
        &self.repeated
    }
}

/// Parses a document of JSON, which may have comments, trailing commas and a byte order mark.
///
/// # Errors
///
/// Returns `invalid_json`, with line and column, if the text is not JSON, has more than 128 levels, or has
/// a key of more than 1,024 bytes. Returns `document_too_large` if it is larger than
/// [`MAX_DOCUMENT_BYTES`]. Readers report duplicate keys.
pub fn parse_document(text: &str) -> Result<Node, Problems> {
    parse(text).map_err(|rejected| rejected.problem.into())
}

/// Parses a document as [`parse_document`] does.
pub(super) fn parse(text: &str) -> Result<Node, Box<Rejected>> {
    if text.len() > MAX_DOCUMENT_BYTES {
        let message = format!(
            "the document has {} bytes, more than {MAX_DOCUMENT_BYTES}",
            text.len()
        );
        let problem = Problem::error("", "document_too_large", message);
        return Err(Box::new(Rejected {
            problem,
            line: None,
        }));
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let Blanked { text, changed } = blanked(text);
    let mut numbers = Numbers {
        text: &text,
        next: 0,
        changed,
    };
    let mut parser = serde_json::Deserializer::from_str(&text);
    NodeSeed(&mut numbers)
        .deserialize(&mut parser)
        .and_then(|node| parser.end().map(|()| node))
        .map_err(|error| Box::new(syntax::rejected(&text, &error)))
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        NodeSeed(&mut Numbers::default()).deserialize(deserializer)
    }
}

/// The numbers of a document while it is parsed.
#[derive(Default)]
struct Numbers<'t> {
    text: &'t str,
    /// Number of numbers read so far.
    next: usize,
    changed: ChangedNumbers,
}

impl Numbers<'_> {
    /// Returns the next number, parsed as `parsed`: in its written form if that differs.
    fn node(&mut self, parsed: Number) -> Node {
        let number = self.next;
        self.next += 1;
        let written = match self.changed.front() {
            Some((changed, place)) if *changed == number => self.text.get(place.clone()),
            _ => None,
        };
        let Some(written) = written else {
            return Node::Number(parsed);
        };
        self.changed.pop_front();
        Node::Text(written.to_owned())
    }
}

struct NodeSeed<'n, 't>(&'n mut Numbers<'t>);

impl<'de> DeserializeSeed<'de> for NodeSeed<'_, '_> {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for NodeSeed<'_, '_> {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_none<E: de::Error>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Boolean(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Node, E> {
        Ok(self.0.node(value.into()))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Node, E> {
        Ok(self.0.node(value.into()))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Node, E> {
        Number::from_f64(value)
            .map(|number| self.0.node(number))
            .ok_or_else(|| E::custom("a number is not finite"))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Text(value.to_owned()))
    }

    fn visit_string<E: de::Error>(self, value: String) -> Result<Node, E> {
        Ok(Node::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Node, A::Error> {
        let mut nodes = Vec::new();
        while let Some(node) = seq.next_element_seed(NodeSeed(self.0))? {
            nodes.push(node);
        }
        Ok(Node::List(nodes))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut object = Object::default();
        while let Some(key) = map.next_key::<String>()? {
            if key.len() > MAX_KEY_BYTES {
                return Err(de::Error::custom(format_args!(
                    "a key has {} bytes, more than {MAX_KEY_BYTES}",
                    key.len()
                )));
            }
            let node = map.next_value_seed(NodeSeed(self.0))?;
            match object.entries.entry(Key::new(key.as_str())) {
                Entry::Vacant(entry) => {
                    entry.insert(node);
                }
                Entry::Occupied(_) => object.repeated.push(key),
            }
        }
        Ok(Node::Object(object))
    }
}
