use super::path::Path;

/// The separator between the subject of an operation and its name.
const OPERATION: &str = "$";

/// A path with places for values: `/Applications/{application*}/$/GetServices/{service*}`.
///
/// `{name}` stands for one segment; `{name*}` for the segments of a hierarchical name, at least one, up to
/// the next `$` or the end. Text is compared case by case.
#[derive(Clone, Debug)]
pub(super) struct Template(Vec<Segment>);

#[derive(Clone, Debug)]
enum Segment {
    Text(&'static str),
    One(&'static str),
    Name(&'static str),
}

impl Template {
    /// Parses a template of the table.
    pub(super) fn new(template: &'static str) -> Self {
        let segments = template
            .split('/')
            .filter(|segment| !segment.is_empty())
            .map(|segment| {
                let place = segment
                    .strip_prefix('{')
                    .and_then(|rest| rest.strip_suffix('}'));
                match place {
                    None => Segment::Text(segment),
                    Some(place) => match place.strip_suffix('*') {
                        Some(name) => Segment::Name(name),
                        None => Segment::One(place),
                    },
                }
            })
            .collect();
        Self(segments)
    }

    /// Returns true if the first segment of the path is that of the template.
    pub(super) fn begins_like(&self, path: &Path) -> bool {
        match (self.0.first(), path.segments().first()) {
            (Some(Segment::Text(text)), Some(segment)) => text == segment,
            (None, None) => true,
            _ => false,
        }
    }

    /// Returns the parameters if the path matches. An empty segment never matches a parameter.
    pub(super) fn matches(&self, path: &Path) -> Option<Parameters> {
        let mut rest = path.segments();
        let mut found = Vec::new();
        for segment in &self.0 {
            let (first, behind) = rest.split_first()?;
            match segment {
                Segment::Text(text) if text == first => rest = behind,
                Segment::Text(_) => return None,
                Segment::One(_) | Segment::Name(_) if first.is_empty() || first == OPERATION => {
                    return None;
                }
                Segment::One(name) => {
                    found.push((*name, first.clone()));
                    rest = behind;
                }
                Segment::Name(name) => {
                    // A name may contain slashes, so it ends at the next `$`.
                    let end = rest
                        .iter()
                        .position(|segment| segment == OPERATION)
                        .unwrap_or(rest.len());
                    let (inside, behind) = rest.split_at(end);
                    if inside.iter().any(String::is_empty) {
                        return None;
                    }
                    found.push((*name, inside.join("/")));
                    rest = behind;
                }
            }
        }
        rest.is_empty().then_some(Parameters(found))
    }
}

/// The decoded parameters of a path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parameters(Vec<(&'static str, String)>);

impl Parameters {
    /// Returns the value of a parameter.
    ///
    /// # Panics
    ///
    /// When the template of the call has no such place, which is a mistake in a table of this crate.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.0
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value.as_str())
            .expect("handlers read parameters of their own templates")
    }
}
