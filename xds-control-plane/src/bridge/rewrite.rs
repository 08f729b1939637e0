//! Changes of the path as one replacement by a regular expression, which is all that Envoy has for it.

use proxy_model::matching::{PathTemplate, TemplateSegment};
use proxy_model::transform::{PathText, TargetTransform};
use xds_types::pb::envoy::r#type::matcher::v3::RegexMatchAndSubstitute;

use super::path;
use super::re2;
use super::re2_size;
use super::report::{Inexpressible, Report};

/// The key to report. The compiled form does not contain the position in `Transforms`.
const KEY: &str = "Transforms";

/// The combined effect of the transforms.
enum Change<'t> {
    /// An optional removal of a prefix, then an optional new prefix.
    Prefixes {
        off: Option<&'t PathText>,
        before: String,
    },
    /// The path is this.
    Set(String),
    /// The path is made of values of the route's template.
    Pattern {
        template: &'t PathTemplate,
        before: String,
    },
}

/// Returns the replacement that has the effect of `transforms` followed by the path `base` of the
/// destinations' addresses, on paths that `template` matched. `None` if nothing is replaced.
pub(super) fn rewrite(
    transforms: &[TargetTransform],
    template: &PathTemplate,
    base: &str,
    report: &mut Report<'_>,
) -> Result<Option<RegexMatchAndSubstitute>, Inexpressible> {
    let mut change = Change::Prefixes {
        off: None,
        before: String::new(),
    };
    for transform in transforms {
        change = match (change, transform) {
            (_, TargetTransform::PathSet(path)) => Change::Set(path.as_str().to_owned()),
            (_, TargetTransform::PathPattern(template)) => Change::Pattern {
                template,
                before: String::new(),
            },
            (Change::Set(path), TargetTransform::PathPrefix(prefix)) => {
                Change::Set(joined(prefix.as_str(), &path))
            }
            (Change::Pattern { template, before }, TargetTransform::PathPrefix(prefix)) => {
                Change::Pattern {
                    template,
                    before: joined(prefix.as_str(), &before),
                }
            }
            (Change::Prefixes { off, before }, TargetTransform::PathPrefix(prefix)) => {
                Change::Prefixes {
                    off,
                    before: joined(prefix.as_str(), &before),
                }
            }
            (Change::Prefixes { off: None, before }, TargetTransform::PathRemovePrefix(prefix))
                // A prefix is removed from the original path only: Envoy has one replacement for a path.
                if before.is_empty() =>
            {
                Change::Prefixes {
                    off: Some(prefix),
                    before,
                }
            }
            (_, TargetTransform::PathRemovePrefix(_)) => {
                return Err(Inexpressible::new(
                    KEY,
                    "Envoy replaces in a path once, so a prefix cannot be removed after another change of the path",
                ));
            }
            (_, TargetTransform::Query(_)) => {
                return Err(Inexpressible::new(
                    KEY,
                    "Envoy's routes cannot change the query",
                ));
            }
            (_, TargetTransform::Method { .. }) => {
                return Err(Inexpressible::new(
                    KEY,
                    "Envoy's routes cannot change the method",
                ));
            }
            _ => {
                return Err(Inexpressible::new(
                    KEY,
                    "Envoy's routes cannot make this change",
                ));
            }
        };
    }
    let rewrite = written(change, template, base, report)?;
    let pattern = rewrite
        .as_ref()
        .and_then(|rewrite| rewrite.pattern.as_ref());
    if let Some(pattern) = pattern {
        re2_size::check(KEY, &pattern.regex)?;
    }
    Ok(rewrite)
}

/// Returns the replacement that makes the path of a redirect, on paths that `template` matched.
pub(super) fn redirected(
    made: &PathTemplate,
    template: &PathTemplate,
    report: &mut Report<'_>,
) -> Result<RegexMatchAndSubstitute, Inexpressible> {
    let (pattern, groups) = captures(template, report)?;
    let path = formatted(made, &groups)?;
    re2_size::check(KEY, &pattern)?;
    Ok(re2::substitution(pattern, path))
}

fn written(
    change: Change<'_>,
    template: &PathTemplate,
    base: &str,
    report: &mut Report<'_>,
) -> Result<Option<RegexMatchAndSubstitute>, Inexpressible> {
    match change {
        Change::Set(path) => {
            let path = joined(base, &path);
            Ok(Some(re2::substitution("^/.*$", literal(&path))))
        }
        Change::Pattern {
            template: made,
            before,
        } => {
            let (pattern, groups) = captures(template, report)?;
            let before = joined(base, &before);
            let before = before.strip_suffix('/').unwrap_or(&before);
            let path = formatted(made, &groups)?;
            Ok(Some(re2::substitution(pattern, literal(before) + &path)))
        }
        Change::Prefixes { off, before } => prefixes(off, &joined(base, &before)),
    }
}

/// `first` and then `second`, with one `/` where they meet.
fn joined(first: &str, second: &str) -> String {
    match second {
        "" => first.to_owned(),
        second => first.strip_suffix('/').unwrap_or(first).to_owned() + second,
    }
}

/// Text of a replacement, in which a backslash begins the number of a group.
fn literal(text: &str) -> String {
    text.replace('\\', "\\\\")
}

fn prefixes(
    off: Option<&PathText>,
    before: &str,
) -> Result<Option<RegexMatchAndSubstitute>, Inexpressible> {
    let ends_with_slash = before.ends_with('/');
    let before = before.strip_suffix('/').unwrap_or(before);
    let Some(off) = off else {
        return Ok(
            (!before.is_empty()).then(|| re2::substitution("^(/.*)$", literal(before) + "\\1"))
        );
    };
    let off = decoded(off.as_str())
        .filter(|text| !text.ends_with('/') && !text.is_empty())
        .ok_or_else(|| {
            Inexpressible::new(
                KEY,
                "a removed prefix that ends with `/`, or is no text, is not expressed",
            )
        })?;
    let off = re2::in_any_case(&re2::in_path(&off), true);
    let before_text = literal(before);
    // A path loses the prefix if it has it, and every path gets the new beginning. A path that was only the
    // prefix becomes the new beginning as it was written, since a path cannot be empty.
    Ok(Some(if before.is_empty() || ends_with_slash {
        re2::substitution(
            format!("^(?:{off}(?:/(.*))?|/(.*))$"),
            before_text + "/\\1\\2",
        )
    } else {
        re2::substitution(format!("^(?:{off}(/.*)?|(/.*))$"), before_text + "\\1\\2")
    }))
}

/// Decodes a percent-encoded path, except slashes. `None` if the result is not UTF-8.
fn decoded(path: &str) -> Option<String> {
    let bytes = path.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let escaped = (byte == b'%')
            .then(|| path.get(at + 1..at + 3))
            .flatten()
            .and_then(|digits| u8::from_str_radix(digits, 16).ok())
            .filter(|byte| *byte != b'/');
        match escaped {
            Some(escaped) => {
                out.push(escaped);
                at += 3;
            }
            None => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8(out).ok()
}

/// A parameter and the group that has its value.
struct Group<'t> {
    name: &'t str,
    number: usize,
    /// True if it is the whole rest, with the `/` before it.
    is_rest: bool,
}

/// The expression for the paths of a template, with a group for each parameter.
fn captures<'t>(
    template: &'t PathTemplate,
    report: &mut Report<'_>,
) -> Result<(String, Vec<Group<'t>>), Inexpressible> {
    let mut pattern = String::from("(?i)^");
    let mut groups = Vec::new();
    for (index, segment) in template.segments().enumerate() {
        let number = groups.len() + 1;
        match segment {
            TemplateSegment::Literal(text) => {
                pattern.push('/');
                pattern.push_str(&re2::in_path(text));
            }
            TemplateSegment::Parameter(parameter) if index < template.required_segments() => {
                let value = path::value(&parameter, report)?;
                pattern.push_str(&format!("/({value})"));
                groups.push(Group {
                    name: parameter.name,
                    number,
                    is_rest: false,
                });
            }
            TemplateSegment::CatchAll(parameter) if parameter.constraints.is_empty() => {
                pattern.push_str("(/.+)?");
                groups.push(Group {
                    name: parameter.name,
                    number,
                    is_rest: true,
                });
            }
            _ => {
                return Err(Inexpressible::new(
                    KEY,
                    "a path is only made of values that are whole segments and always there, or all that is left",
                ));
            }
        }
    }
    // RE2 puts in nine groups.
    if groups.len() > 9 {
        return Err(Inexpressible::new(
            KEY,
            "Envoy makes paths of at most nine values",
        ));
    }
    pattern.push_str("/?$");
    Ok((pattern, groups))
}

/// The replacement that makes a path of the values in `groups`.
fn formatted(made: &PathTemplate, groups: &[Group<'_>]) -> Result<String, Inexpressible> {
    let mut out = String::new();
    for segment in made.segments() {
        let (parameter, takes_rest) = match &segment {
            TemplateSegment::Literal(text) => {
                out.push('/');
                out.push_str(&literal(
                    PathText::new(text).as_str().trim_start_matches('/'),
                ));
                continue;
            }
            TemplateSegment::Parameter(parameter) => (parameter, false),
            // `{*name}` encodes the slashes of its value.
            TemplateSegment::CatchAll(parameter) => (parameter, made.as_str().contains("{**")),
            _ => {
                return Err(Inexpressible::new(
                    KEY,
                    "Envoy cannot make a segment of several parts",
                ));
            }
        };
        let group = (groups.iter())
            .find(|group| group.name.eq_ignore_ascii_case(parameter.name))
            .filter(|group| takes_rest || !group.is_rest)
            .filter(|_| parameter.default.is_none())
            .ok_or_else(|| {
                Inexpressible::new(
                    KEY,
                    format!(
                        "Envoy cannot put the value of `{{{}}}` into a path",
                        parameter.name
                    ),
                )
            })?;
        if !group.is_rest {
            out.push('/');
        }
        out.push_str(&format!("\\{}", group.number));
    }
    if out.is_empty() {
        out.push('/');
    }
    // What is nothing but a value that may be missing would be no path at all.
    if !out.starts_with('/') {
        return Err(Inexpressible::new(
            KEY,
            "the path that is made may be empty",
        ));
    }
    Ok(out)
}
