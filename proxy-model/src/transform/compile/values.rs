//! Values of transforms' keys.

use http::header::{CONTENT_LENGTH, HOST, TRANSFER_ENCODING};
use http::{HeaderName, HeaderValue, Method};

use super::Copying;
use crate::foreign;
use crate::problem::{Problem, Problems};
use crate::suggest::{did_you_mean, listed, shortened};
use crate::transform::entry::TransformEntry;
use crate::transform::{HeaderChange, PathText, ResponseCondition, ResponseTransform, SetOrAppend};

/// Fields that concern one connection only (RFC 9110 section 7.6.1). They are left out even if a transform
/// allows them.
const NEVER_PASSED_ON: [&str; 5] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "transfer-encoding",
    "upgrade",
];

/// Returns the warning about a field for which a transform has no effect.
fn no_effect(entry: &TransformEntry<'_>, name: &HeaderName, why: &str) -> Problem {
    Problem::warning(
        entry.place(entry.kind()),
        "connection_header",
        format!("`{name}` {why}; this has no effect"),
    )
}

pub(super) fn response(
    entry: &TransformEntry<'_>,
    problems: &mut Problems,
) -> Option<ResponseTransform> {
    const CONDITIONS: [(&str, ResponseCondition); 3] = [
        ("Success", ResponseCondition::Success),
        ("Failure", ResponseCondition::Failure),
        ("Always", ResponseCondition::Always),
    ];
    let condition = match entry.partner("When") {
        None => Some(ResponseCondition::default()),
        Some(text) => {
            let found = CONDITIONS
                .into_iter()
                .find(|(name, _)| name.eq_ignore_ascii_case(text.trim()));
            if found.is_none() {
                problems.push(unknown_name(
                    entry,
                    "When",
                    text,
                    CONDITIONS.map(|(name, _)| name),
                ));
            }
            found.map(|(_, condition)| condition)
        }
    };
    let name = header_name(entry, entry.kind(), entry.value(), problems);
    let change = if entry.kind().ends_with("Remove") {
        HeaderChange::Remove(name?)
    } else {
        let (action, key, text) = entry.set_or_append(problems)?;
        let value = header_value(entry, key, text, problems);
        let name = writable(name?, action, entry, problems)?;
        match action {
            SetOrAppend::Set => HeaderChange::Set(name, value?),
            SetOrAppend::Append => HeaderChange::Append(name, value?),
        }
    };
    Some(ResponseTransform {
        condition: condition?,
        change,
    })
}

pub(super) fn path(entry: &TransformEntry<'_>) -> PathText {
    PathText::new(entry.value())
}

pub(super) fn check_removed_prefix(
    prefix: &PathText,
    entry: &TransformEntry<'_>,
    problems: &mut Problems,
) {
    let pattern = ["{", "*"].iter().find_map(|sign| entry.value().find(sign));
    if let Some(at) = pattern {
        let text = entry.value();
        let plain = text[..at].trim_end_matches('/');
        let message = format!("`{}` is literal text here", shortened(text));
        let problem = Problem::warning(entry.place(entry.kind()), "literal_pattern", message);
        problems.push(match plain.is_empty() {
            true => problem,
            false => problem.with_suggestion(format!("write `{}`", shortened(plain))),
        });
        return;
    }
    if prefix.as_str().len() > 1 && prefix.as_str().ends_with('/') {
        let text = entry.value();
        problems.push(
            Problem::warning(
                entry.place(entry.kind()),
                "trailing_slash",
                format!(
                    "`{}` is removed only where another `/` or the end follows it",
                    shortened(text)
                ),
            )
            .with_suggestion(format!("write `{}`", shortened(text.trim_end_matches('/')))),
        );
    }
}

pub(super) fn switch(entry: &TransformEntry<'_>, problems: &mut Problems) -> Option<bool> {
    let text = entry.value().trim();
    if text.eq_ignore_ascii_case("true") {
        return Some(true);
    }
    if text.eq_ignore_ascii_case("false") {
        return Some(false);
    }
    problems.push(unknown_name(entry, entry.kind(), text, ["true", "false"]));
    None
}

pub(super) fn allow(
    copying: &mut Copying,
    entry: &TransformEntry<'_>,
    problems: &mut Problems,
) -> Option<()> {
    let errors_before = problems.error_count();
    let names = entry.value().split(';').map(str::trim);
    let names: Vec<HeaderName> = names
        .filter(|name| !name.is_empty())
        .filter_map(|name| header_name(entry, entry.kind(), name, problems))
        .collect();
    if problems.error_count() > errors_before {
        return None;
    }
    let only = copying.only.get_or_insert_default();
    for name in names {
        if NEVER_PASSED_ON.contains(&name.as_str()) {
            let why = "concerns one connection and is never passed on";
            problems.push(no_effect(entry, &name, why));
        } else {
            only.push(name);
        }
    }
    Some(())
}

pub(super) fn method(
    entry: &TransformEntry<'_>,
    key: &str,
    text: &str,
    problems: &mut Problems,
) -> Option<Method> {
    const KNOWN: [Method; 9] = [
        Method::GET,
        Method::HEAD,
        Method::POST,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
        Method::OPTIONS,
        Method::TRACE,
        Method::CONNECT,
    ];
    if let Some(known) = KNOWN
        .into_iter()
        .find(|known| known.as_str().eq_ignore_ascii_case(text))
    {
        return Some(known);
    }
    let method = Method::from_bytes(text.as_bytes());
    if method.is_err() {
        let message = format!(
            "`{}` is not a method (RFC 9110 section 9.1)",
            shortened(text)
        );
        problems.push(entry.invalid(key, message));
    }
    method.ok()
}

pub(super) fn header_name(
    entry: &TransformEntry<'_>,
    key: &str,
    text: &str,
    problems: &mut Problems,
) -> Option<HeaderName> {
    let name = HeaderName::from_bytes(text.as_bytes());
    if name.is_err() {
        let message = format!(
            "`{}` is not a header name (RFC 9110 section 5.1)",
            shortened(text)
        );
        problems.push(entry.invalid(key, message));
    }
    name.ok()
}

pub(super) fn header_value(
    entry: &TransformEntry<'_>,
    key: &str,
    text: &str,
    problems: &mut Problems,
) -> Option<HeaderValue> {
    check_variable(entry, key, text, problems);
    let value = HeaderValue::from_bytes(text.as_bytes());
    if value.is_err() {
        // The value is not shown: it may be a secret.
        let message = "a header value may not hold line breaks or other control characters";
        problems.push(entry.invalid(key, message.to_owned()));
    }
    value.ok()
}

/// Warns of a value that is a variable in other programs.
pub(super) fn check_variable(
    entry: &TransformEntry<'_>,
    key: &str,
    text: &str,
    problems: &mut Problems,
) {
    if let Some(correction) = foreign::variable(text) {
        let message = format!("`{}` is sent as it is written", shortened(text));
        let problem = Problem::warning(entry.place(key), "literal_variable", message);
        problems.push(problem.with_suggestion(correction));
    }
}

/// `name`, unless the proxy writes that header itself or it cannot have a second value.
pub(super) fn writable(
    name: HeaderName,
    action: SetOrAppend,
    entry: &TransformEntry<'_>,
    problems: &mut Problems,
) -> Option<HeaderName> {
    if name == CONTENT_LENGTH || name == TRANSFER_ENCODING {
        // A body with other framing than in its headers enables request smuggling (RFC 9112 section 11.2).
        problems.push(Problem::warning(
            entry.place(entry.kind()),
            "framing_header",
            format!(
                "`{name}` says how the body is framed, which the proxy decides; this has no effect"
            ),
        ));
        return None;
    }
    let not_written: &[&str] = match entry.kind().starts_with("Request") {
        true => &["connection", "te", "upgrade"],
        false => &[
            "connection",
            "host",
            "keep-alive",
            "proxy-connection",
            "te",
            "upgrade",
        ],
    };
    if not_written.contains(&name.as_str()) {
        let why = match name == HOST {
            true => "is a field of requests",
            false => "concerns one connection and is the proxy's to write",
        };
        problems.push(no_effect(entry, &name, why));
        return None;
    }
    if name == HOST && action == SetOrAppend::Append && entry.kind().starts_with("Request") {
        problems.push(
            entry
                .invalid(
                    "Append",
                    "a request has one `Host` (RFC 9112 section 3.2)".to_owned(),
                )
                .with_suggestion("use `Set`"),
        );
        return None;
    }
    Some(name)
}

/// `name`, unless it has a meaning for every request, which the value of a transform would replace.
pub(super) fn own_header(
    name: HeaderName,
    entry: &TransformEntry<'_>,
    problems: &mut Problems,
) -> Option<HeaderName> {
    const TAKEN: [&str; 9] = [
        "connection",
        "content-length",
        "host",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ];
    if !TAKEN.contains(&name.as_str()) {
        return Some(name);
    }
    let message = format!("`{name}` has a meaning of its own in every request");
    let problem = entry.invalid(entry.kind(), message);
    problems.push(problem.with_suggestion("write `X-Client-Cert`, or what the destination reads"));
    None
}

pub(super) fn not_empty<'a>(
    entry: &TransformEntry<'a>,
    problems: &mut Problems,
) -> Option<&'a str> {
    if entry.value().is_empty() {
        problems.push(entry.invalid(entry.kind(), format!("`{}` is empty", entry.kind())));
        return None;
    }
    Some(entry.value())
}

/// The name of a route parameter.
pub(super) fn parameter(
    entry: &TransformEntry<'_>,
    key: &str,
    text: &str,
    problems: &mut Problems,
) -> Option<Box<str>> {
    if text.is_empty() {
        problems.push(entry.invalid(key, "the name of a route parameter is empty".to_owned()));
        return None;
    }
    Some(text.into())
}

pub(super) fn unknown_name<const N: usize>(
    entry: &TransformEntry<'_>,
    key: &str,
    text: &str,
    names: [&'static str; N],
) -> Problem {
    let message = format!("`{}` is not one of {}", shortened(text), listed(names));
    let mut problem = entry.invalid(key, message);
    problem.suggestion = did_you_mean(text, names);
    problem
}
