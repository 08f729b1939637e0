//! The common parts of conditions on headers and on query parameters: a name, and texts to compare values
//! with.

use thiserror::Error;

use super::text::Pattern;
use crate::suggest::shortened;

/// The reason why a condition on a header or a query parameter is rejected.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CriterionError {
    /// The name is empty.
    #[error("the name is missing")]
    NoName,
    /// The name of a header that no header can have.
    #[error("`{}` cannot be the name of a header", shortened(name))]
    InvalidName {
        /// The name as written.
        name: String,
    },
    /// No values for a mode that compares values.
    #[error("the mode `{mode}` needs at least one value")]
    NoValues {
        /// The mode.
        mode: &'static str,
    },
    /// The mode does not compare values, but there are some.
    #[error("the mode `{mode}` takes no values")]
    UnusedValues {
        /// The mode.
        mode: &'static str,
    },
    /// An empty text among the values.
    #[error("value {index} is empty")]
    EmptyValue {
        /// The value's position, from 0.
        index: usize,
    },
}

impl CriterionError {
    /// Returns the correction, if one is known.
    pub fn suggestion(&self) -> Option<String> {
        Some(match self {
            Self::NoName | Self::InvalidName { .. } => return None,
            Self::NoValues { .. } => {
                "add `Values`, or set `Mode` to `Exists` if any value will do".into()
            }
            Self::UnusedValues { .. } => {
                "remove `Values`, or choose a mode that compares them".into()
            }
            Self::EmptyValue { .. } => {
                "remove the empty text; no mode compares with an empty value".into()
            }
        })
    }
}

/// Maximum of values that are named.
const VALUES: usize = 5;

/// Returns the values of a condition, with its mode, for users: `HeaderPrefix a or b`.
pub(super) fn shown_values(mode: &str, values: &[Pattern]) -> String {
    let named = values.iter().take(VALUES);
    let named: Vec<_> = named.map(|value| shortened(value.as_str())).collect();
    let more = match values.len().saturating_sub(VALUES) {
        0 => String::new(),
        more => format!(" or {more} others"),
    };
    format!("{mode} {}{more}", named.join(" or "))
        .trim_end()
        .to_owned()
}

/// The parts of a condition, or everything that is wrong with them.
pub(super) fn both<N, V>(
    name: Result<N, CriterionError>,
    values: Result<V, Vec<CriterionError>>,
) -> Result<(N, V), Vec<CriterionError>> {
    match (name, values) {
        (Ok(name), Ok(values)) => Ok((name, values)),
        (name, values) => Err((name.err().into_iter())
            .chain(values.err().into_iter().flatten())
            .collect()),
    }
}

/// The first of several errors.
pub(super) fn first(errors: Vec<CriterionError>) -> CriterionError {
    errors
        .into_iter()
        .next()
        .expect("what is rejected has an error")
}

/// Makes patterns of the values of a condition.
pub(super) fn patterns(
    values: Option<&[String]>,
    mode: &'static str,
    takes_values: bool,
    case_matters: bool,
) -> Result<Box<[Pattern]>, Vec<CriterionError>> {
    let values = values.unwrap_or_default();
    match (takes_values, values.is_empty()) {
        (true, true) => return Err(vec![CriterionError::NoValues { mode }]),
        (false, false) => return Err(vec![CriterionError::UnusedValues { mode }]),
        _ => {}
    }
    let empty: Vec<CriterionError> = (values.iter().enumerate())
        .filter(|(_, value)| value.is_empty())
        .map(|(index, _)| CriterionError::EmptyValue { index })
        .collect();
    if !empty.is_empty() {
        return Err(empty);
    }
    let mut patterns: Vec<Pattern> = (values.iter())
        .map(|value| Pattern::new(value, case_matters))
        .collect();
    // One match is enough, so order and repetition have no meaning.
    patterns.sort_unstable();
    patterns.dedup();
    Ok(patterns.into())
}
