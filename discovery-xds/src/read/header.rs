//! Conditions on headers.

use proxy_model::config::{HeaderMatchMode as Mode, RouteHeader};
use xds_types::pb::envoy::config::route::v3::HeaderMatcher;
use xds_types::pb::envoy::config::route::v3::header_matcher::HeaderMatchSpecifier;
use xds_types::pb::envoy::r#type::matcher::v3::string_matcher::MatchPattern;

use super::Reading;
use super::expression::{Language, language};
use super::matching::string;

/// Envoy's condition, except for its inversion.
struct Condition {
    mode: Mode,
    values: Option<Vec<String>>,
    is_case_sensitive: bool,
}

impl Condition {
    fn presence() -> Self {
        Self {
            mode: Mode::Exists,
            values: None,
            is_case_sensitive: false,
        }
    }

    fn with(mode: Mode, value: &str, is_case_sensitive: bool) -> Self {
        Self {
            mode,
            values: Some(vec![value.to_owned()]),
            is_case_sensitive,
        }
    }

    fn expression(regex: &str) -> Option<Self> {
        Some(match language(regex)? {
            Language::AnyText => Self::presence(),
            Language::Texts { texts, ignore_case } => Self {
                mode: Mode::ExactHeader,
                values: Some(texts),
                is_case_sensitive: !ignore_case,
            },
        })
    }
}

/// Returns the condition, or `None` if it is rejected.
pub(super) fn header(header: &HeaderMatcher, reading: &mut Reading) -> Option<RouteHeader> {
    let specifier = header.header_match_specifier.as_ref();
    let Some(condition) = condition(specifier) else {
        let field = match specifier {
            Some(HeaderMatchSpecifier::StringMatch(_)) => "string_match",
            _ => "header_match_specifier",
        };
        reading.reject(field, "this way to match a header cannot be honoured");
        return None;
    };
    if !can_be_compared(header, &condition, reading) {
        return None;
    }
    // For a missing header, only its presence and explicit settings are inverted.
    let holds_without = header.treat_missing_header_as_empty
        || matches!(
            specifier,
            None | Some(HeaderMatchSpecifier::PresentMatch(_))
        );
    let mode = match (condition.mode, header.invert_match) {
        (mode, false) => mode,
        (Mode::Exists, true) if holds_without => Mode::NotExists,
        (Mode::NotExists, true) => Mode::Exists,
        (Mode::Contains, true) if holds_without => Mode::NotContains,
        (_, true) => {
            reading.reject(
                "invert_match",
                "the opposite of this condition cannot be honoured",
            );
            return None;
        }
    };
    match mode {
        Mode::ExactHeader | Mode::HeaderPrefix => reading.differs(
            "header_match_specifier",
            "each element of a list is compared, not the whole header",
        ),
        Mode::Exists | Mode::NotExists => reading.differs(
            "present_match",
            "a header without a value counts as missing",
        ),
        Mode::Contains | Mode::NotContains => {}
    }
    Some(RouteHeader {
        name: header.name.clone(),
        values: condition.values,
        mode,
        is_case_sensitive: condition.is_case_sensitive,
    })
}

fn condition(specifier: Option<&HeaderMatchSpecifier>) -> Option<Condition> {
    use HeaderMatchSpecifier::{
        ContainsMatch, ExactMatch, PrefixMatch, PresentMatch, SafeRegexMatch, StringMatch,
    };
    Some(match specifier {
        None | Some(PresentMatch(true)) => Condition::presence(),
        Some(PresentMatch(false)) => Condition {
            mode: Mode::NotExists,
            ..Condition::presence()
        },
        Some(ExactMatch(value)) => Condition::with(Mode::ExactHeader, value, true),
        Some(PrefixMatch(value)) => Condition::with(Mode::HeaderPrefix, value, true),
        Some(ContainsMatch(value)) => Condition::with(Mode::Contains, value, true),
        Some(SafeRegexMatch(regex)) => Condition::expression(&regex.regex)?,
        Some(StringMatch(matcher)) => match string(matcher)? {
            (MatchPattern::Exact(value), case) => Condition::with(Mode::ExactHeader, value, case),
            (MatchPattern::Prefix(value), case) => Condition::with(Mode::HeaderPrefix, value, case),
            (MatchPattern::Contains(value), case) => Condition::with(Mode::Contains, value, case),
            // Flags of the expression decide about case, `ignore_case` does not.
            (MatchPattern::SafeRegex(regex), _) => Condition::expression(&regex.regex)?,
            _ => return None,
        },
        Some(_) => return None,
    })
}

/// Returns true if the model can compare the values. It reads headers as lists, whose elements contain no
/// separators and no quotes.
fn can_be_compared(header: &HeaderMatcher, condition: &Condition, reading: &mut Reading) -> bool {
    let values = condition.values.as_deref().unwrap_or_default();
    if values.iter().any(String::is_empty) {
        reading.reject(
            "header_match_specifier",
            "an empty value cannot be asked for",
        );
        return false;
    }
    if !matches!(condition.mode, Mode::ExactHeader | Mode::HeaderPrefix) {
        return true;
    }
    let separator = match header.name.eq_ignore_ascii_case("cookie") {
        true => ';',
        false => ',',
    };
    let is_list = |value: &&String| value.contains(['"', separator]) || value.starts_with(' ');
    match values.iter().find(is_list) {
        Some(value) => {
            let message = format!("`{value}` is no element of a list, which headers are taken for");
            reading.reject("header_match_specifier", message);
            false
        }
        None => true,
    }
}
