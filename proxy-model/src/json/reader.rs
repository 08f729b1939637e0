//! Reading an object key by key.

use std::ops::RangeInclusive;

use indexmap::IndexMap;

use super::node::{Node, Object, numbered};
use super::scalar::{self, TypeMismatch};
use super::shape;
use crate::id::same_id;
use crate::problem::{Problem, Problems, pointer_to};
use crate::suggest::{did_you_mean, listed, shortened};
use crate::time_span::TimeSpan;

/// Maximum number of unknown keys of one object that are reported.
const MAX_UNKNOWN: usize = 20;

/// Reads the values of an object and reports their problems.
///
/// Every key that is read counts as known; the other keys are reported as errors at the end. A missing
/// value, `null`, and a value with a problem read as `None`; the problem is added to [`Problems`].
#[derive(Debug)]
pub struct ObjectReader<'n, 'p> {
    object: &'n Object,
    pointer: &'p str,
    problems: &'p mut Problems,
    known: Vec<&'static str>,
    /// Unknown keys that have been reported already.
    reported: Vec<&'static str>,
    /// Corrections for unknown keys.
    hints: Vec<(&'static str, String)>,
    open: bool,
}

impl<'n> ObjectReader<'n, '_> {
    /// Reads `node`, found at `pointer`, with `read`. `None` if it is not an object.
    pub fn read<T>(
        node: &'n Node,
        pointer: &str,
        problems: &mut Problems,
        read: impl FnOnce(&mut ObjectReader<'n, '_>) -> T,
    ) -> Option<T> {
        let Node::Object(object) = node else {
            report(pointer, shape::not_an_object(node), problems);
            return None;
        };
        let mut reader = ObjectReader {
            object,
            pointer,
            problems,
            known: Vec::new(),
            reported: Vec::new(),
            hints: Vec::new(),
            open: false,
        };
        let value = read(&mut reader);
        reader.finish();
        Some(value)
    }

    /// The JSON pointer of the object.
    pub fn pointer(&self) -> &str {
        self.pointer
    }

    /// Returns the pointer of the value of `key`, with the key as the object spells it.
    pub fn pointer_to(&self, key: &str) -> String {
        let spelled = self.object.entry(key).map_or(key, |(spelled, _)| spelled);
        pointer_to(self.pointer, spelled)
    }

    /// Returns the problems so far, to add one.
    pub fn problems(&mut self) -> &mut Problems {
        self.problems
    }

    /// Accepts unknown keys, for objects that others read as well.
    pub fn allow_unknown(&mut self) {
        self.open = true;
    }

    /// The value of `key`, without making it a known one.
    pub fn peek(&self, key: &str) -> Option<&'n Node> {
        self.object.entry(key).map(|(_, node)| node)
    }

    /// Makes `key` a known one without reading it.
    pub fn skip(&mut self, key: &'static str) {
        self.known.push(key);
    }

    /// Reports `key`, if it is there, as one that is written otherwise now: `code` is `renamed_key`.
    pub fn renamed(&mut self, key: &'static str, instead: &str) {
        let Some((spelled, _)) = self.object.entry(key) else {
            return;
        };
        let message = format!("`{key}` is a key of an earlier format");
        self.problems.push(
            Problem::error(pointer_to(self.pointer, spelled), "renamed_key", message)
                .with_suggestion(instead),
        );
        self.reported.push(key);
    }

    /// Adds a hint for `key`, a key of other programs that is unknown here. `correct` makes the hint, and runs only
    /// if the key is present.
    pub(super) fn foreign(&mut self, key: &'static str, correct: impl FnOnce(&Node) -> String) {
        if let Some(node) = self.peek(key) {
            self.hints.push((key, correct(node)));
        }
    }

    /// Returns the value of `key`, which is not `null`, and its pointer.
    pub fn node(&mut self, key: &'static str) -> Option<(&'n Node, String)> {
        self.known.push(key);
        let (spelled, node) = self.object.entry(key)?;
        if matches!(node, Node::Null) {
            return None;
        }
        Some((node, pointer_to(self.pointer, spelled)))
    }

    /// Reads text. Numbers, `true` and `false` are read in their written form.
    pub fn text(&mut self, key: &'static str) -> Option<String> {
        self.scalar(key, scalar::text)
    }

    /// Reads a boolean: `true` or `false`, with quotes or without.
    pub fn boolean(&mut self, key: &'static str) -> Option<bool> {
        self.scalar(key, scalar::boolean)
    }

    /// Reads a whole number in `range`, with quotes or without.
    pub fn integer<T>(&mut self, key: &'static str, range: RangeInclusive<T>) -> Option<T>
    where
        T: Copy + TryFrom<i64> + Into<i64>,
    {
        let (least, most): (i64, i64) = ((*range.start()).into(), (*range.end()).into());
        self.scalar(key, |node| {
            let number = scalar::integer(node)?;
            (least..=most)
                .contains(&number)
                .then_some(number)
                .and_then(|number| T::try_from(number).ok())
                .ok_or_else(|| TypeMismatch {
                    code: "out_of_range",
                    message: format!("{number} is not between {least} and {most}"),
                    suggestion: None,
                })
        })
    }

    /// Reads a number, with quotes or without.
    pub fn number(&mut self, key: &'static str) -> Option<f64> {
        self.scalar(key, scalar::number)
    }

    /// Reads a length of time.
    pub fn time_span(&mut self, key: &'static str) -> Option<TimeSpan> {
        self.scalar(key, scalar::time_span)
    }

    /// Reads a length of time longer than 0. If nothing `uses` it, an unreadable one is ignored with a
    /// warning.
    pub(super) fn positive_time_span(&mut self, key: &'static str, uses: bool) -> Option<TimeSpan> {
        let (node, pointer) = self.node(key)?;
        let mismatch = match scalar::positive_time_span(node) {
            Ok(span) => return Some(span),
            Err(mismatch) => mismatch,
        };
        if uses || mismatch.code == "wrong_type" {
            report(&pointer, mismatch, self.problems);
        } else {
            let message = format!(
                "{}; it is ignored, since nothing here is enabled",
                mismatch.message
            );
            self.problems
                .push(Problem::warning(pointer, mismatch.code, message));
        }
        None
    }

    /// Reads one of `names`, compared ignoring case.
    pub fn choice<T: Clone>(&mut self, key: &'static str, names: &[(&str, T)]) -> Option<T> {
        self.scalar(key, |node| scalar::choice(node, names))
    }

    /// Reads a list of texts. An element that is `null`, or has a problem, becomes an empty text, so that
    /// the others keep their positions.
    pub fn texts(&mut self, key: &'static str) -> Option<Vec<String>> {
        self.list(key, |node, pointer, problems| match node {
            Node::Null => Some(String::new()),
            node => Some(value_of(scalar::text(node), pointer, problems).unwrap_or_default()),
        })
    }

    /// Reads an object whose values are texts, in the order written. Keys whose value is `null` are left
    /// out.
    pub fn text_map(&mut self, key: &'static str) -> Option<IndexMap<String, String>> {
        self.entries(key, |_, node, pointer, problems| {
            value_of(scalar::text(node), pointer, problems)
        })
        .map(|entries| entries.into_iter().collect())
    }

    /// Reads the object under `key` with `read`. `None` if the key is missing or has no object.
    pub fn object<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&mut ObjectReader<'n, '_>) -> T,
    ) -> Option<T> {
        let (node, pointer) = self.node(key)?;
        ObjectReader::read(node, &pointer, self.problems, read)
    }

    /// Reads a list, each element of it with `read`. Elements for which `read` returns `None` are left out.
    ///
    /// As in .NET an object whose keys are numbers is a list as well, in the order of the numbers.
    pub fn list<T>(
        &mut self,
        key: &'static str,
        mut read: impl FnMut(&'n Node, &str, &mut Problems) -> Option<T>,
    ) -> Option<Vec<T>> {
        let (node, pointer) = self.node(key)?;
        let Some(elements) = elements(node) else {
            let mismatch = shape::not_a_list(key, node);
            report(&pointer, mismatch, self.problems);
            return None;
        };
        if let Node::Object(object) = node {
            report_repeated(object, &pointer, self.problems);
        }
        Some(
            elements
                .into_iter()
                .filter_map(|(index, node)| {
                    read(node, &pointer_to(&pointer, &index), self.problems)
                })
                .collect(),
        )
    }

    /// Reads a list of objects, each with `read`. An element that is not an object is replaced by the
    /// default, so that the others keep their positions.
    pub(super) fn objects<T: Default>(
        &mut self,
        key: &'static str,
        read: impl Fn(&mut ObjectReader<'n, '_>) -> T,
    ) -> Option<Vec<T>> {
        self.list(key, |node, pointer, problems| {
            Some(ObjectReader::read(node, pointer, problems, &read).unwrap_or_default())
        })
    }

    /// Reads an object whose keys are names: returns each key with the result of `read` for its value, in
    /// the order written. Keys for which `read` returns `None` are left out. So are those whose value is
    /// `null`, with a warning (`null_entry`).
    pub fn entries<T>(
        &mut self,
        key: &'static str,
        read: impl FnMut(&'n str, &'n Node, &str, &mut Problems) -> Option<T>,
    ) -> Option<Vec<(String, T)>> {
        self.all_entries(key, false, read)
    }

    /// Like [`entries`](Self::entries), but also reads entries whose value is `null` if `null_counts`.
    pub(super) fn all_entries<T>(
        &mut self,
        key: &'static str,
        null_counts: bool,
        mut read: impl FnMut(&'n str, &'n Node, &str, &mut Problems) -> Option<T>,
    ) -> Option<Vec<(String, T)>> {
        let (node, pointer) = self.node(key)?;
        let Node::Object(object) = node else {
            report(&pointer, shape::not_by_name(key, node), self.problems);
            return None;
        };
        report_repeated(object, &pointer, self.problems);
        Some(
            object
                .iter()
                .filter_map(|(name, node)| {
                    let pointer = pointer_to(&pointer, name);
                    if matches!(node, Node::Null) && !null_counts {
                        let message = "`null` is the same as not being there";
                        let problem = Problem::warning(pointer, "null_entry", message);
                        self.problems.push(problem);
                        return None;
                    }
                    let value = read(name, node, &pointer, self.problems)?;
                    Some((name.to_owned(), value))
                })
                .collect(),
        )
    }

    fn scalar<T>(
        &mut self,
        key: &'static str,
        convert: impl FnOnce(&Node) -> Result<T, TypeMismatch>,
    ) -> Option<T> {
        let (node, pointer) = self.node(key)?;
        value_of(convert(node), &pointer, self.problems)
    }

    /// Reports the keys that were not read.
    fn finish(self) {
        report_repeated(self.object, self.pointer, self.problems);
        if self.open {
            return;
        }
        let is_known = |key: &str| {
            let mut known = self.known.iter().chain(&self.reported);
            known.any(|known| same_id(known, key))
        };
        let mut unknown = self.object.iter().filter(|(key, _)| !is_known(key));
        for (key, _) in unknown.by_ref().take(MAX_UNKNOWN) {
            let known = || self.known.iter().copied();
            let mut problem = Problem::error(
                pointer_to(self.pointer, key),
                "unknown_key",
                format!("unknown key; known here are {}", listed(known())),
            );
            let mut hints = self.hints.iter();
            let hint = hints.find(|(foreign, _)| same_id(foreign, key));
            problem.suggestion = match hint {
                Some((_, correction)) => Some(correction.clone()),
                None => did_you_mean(key, known()),
            };
            self.problems.push(problem);
        }
        let more = unknown.count();
        if more > 0 {
            self.problems.push(Problem::error(
                self.pointer,
                "unknown_key",
                format!("{more} more unknown keys"),
            ));
        }
    }
}

/// The value, or `None` after its problem has been reported.
pub(super) fn value_of<T>(
    result: Result<T, TypeMismatch>,
    pointer: &str,
    problems: &mut Problems,
) -> Option<T> {
    result
        .map_err(|mismatch| report(pointer, mismatch, problems))
        .ok()
}

fn report(pointer: &str, mismatch: TypeMismatch, problems: &mut Problems) {
    let mut problem = Problem::error(pointer, mismatch.code, mismatch.message);
    problem.suggestion = mismatch.suggestion;
    problems.push(problem);
}

fn report_repeated(object: &Object, pointer: &str, problems: &mut Problems) {
    for key in object.repeated() {
        let first = object.entry(key).map_or("", |(first, _)| first);
        let message = match first == key {
            true => format!("the key `{}` is written twice", shortened(key)),
            false => format!(
                "the key `{}` is there already, as `{}`: keys are compared ignoring case",
                shortened(key),
                shortened(first)
            ),
        };
        let problem = Problem::error(pointer_to(pointer, key), "duplicate_key", message);
        problems.push(problem.with_suggestion("keep one of them"));
    }
}

/// The elements of a list, or of an object whose keys are numbers, with their indices.
fn elements(node: &Node) -> Option<Vec<(String, &Node)>> {
    match node {
        Node::List(nodes) => Some(
            nodes
                .iter()
                .enumerate()
                .map(|(i, node)| (i.to_string(), node))
                .collect(),
        ),
        node => Some(
            numbered(node)?
                .into_iter()
                .map(|(key, node)| (key.to_owned(), node))
                .collect(),
        ),
    }
}
