//! Path templates as Envoy's path matchers.

use proxy_model::matching::{PathTemplate, TemplateParameter, TemplatePart, TemplateSegment};
use xds_types::pb::envoy::config::route::v3::route_match::PathSpecifier;

use super::re2;
use super::re2_size;
use super::report::{Inexpressible, Report};

/// The match of a path.
pub(super) struct PathMatch {
    pub(super) specifier: PathSpecifier,
    /// True if case matters. It applies to prefixes, since expressions contain it.
    pub(super) case_sensitive: bool,
}

const KEY: &str = "Match/Path";

/// The matcher for the paths that `template` matches.
pub(super) fn path_match(
    template: &PathTemplate,
    report: &mut Report<'_>,
) -> Result<PathMatch, Inexpressible> {
    let segments: Vec<TemplateSegment<'_>> = template.segments().collect();
    if let Some(prefix) = prefix(&segments) {
        return Ok(match &*prefix {
            "" => PathMatch {
                specifier: PathSpecifier::Prefix("/".to_owned()),
                case_sensitive: true,
            },
            _ => PathMatch {
                specifier: PathSpecifier::PathSeparatedPrefix(prefix),
                case_sensitive: false,
            },
        });
    }
    if segments.is_empty() {
        return Ok(PathMatch {
            specifier: PathSpecifier::Path("/".to_owned()),
            case_sensitive: true,
        });
    }
    // Templates ignore case, and Envoy can do that in an expression only by its flag.
    let mut regex = String::from("(?i)");
    let mut open = 0;
    let mut catches_all = false;
    for (index, segment) in segments.iter().enumerate() {
        if let TemplateSegment::CatchAll(parameter) = segment {
            if open > 0 && !parameter.constraints.is_empty() {
                return Err(inexpressible(parameter));
            }
            regex.push_str(&rest(parameter)?);
            catches_all = open == 0;
            break;
        }
        if index >= template.required_segments() {
            regex.push_str("(?:");
            open += 1;
        }
        regex.push('/');
        regex.push_str(&one_segment(segment, report)?);
    }
    regex.push_str(&")?".repeat(open));
    // The router ignores a slash at the end of a path.
    if !catches_all {
        regex.push_str("/?");
    }
    re2_size::check(KEY, &regex)?;
    Ok(PathMatch {
        specifier: PathSpecifier::SafeRegex(re2::matcher(regex)),
        case_sensitive: true,
    })
}

/// Returns the matcher for all paths below the texts that `template` begins with, and these: those that it matches,
/// and more.
pub(super) fn wider_match(template: &PathTemplate) -> (PathMatch, String) {
    let mut prefix = String::new();
    for segment in template.segments() {
        match segment {
            TemplateSegment::Literal(text) if text.bytes().all(is_unreserved) => {
                prefix.push('/');
                prefix.push_str(text);
            }
            _ => break,
        }
    }
    let specifier = match &*prefix {
        "" => PathSpecifier::Prefix("/".to_owned()),
        _ => PathSpecifier::PathSeparatedPrefix(prefix.clone()),
    };
    let matched = PathMatch {
        specifier,
        case_sensitive: false,
    };
    (
        matched,
        if prefix.is_empty() {
            "/".to_owned()
        } else {
            prefix
        },
    )
}

/// The path before a catch-all without conditions, if it is nothing but texts that are sent in one form.
fn prefix(segments: &[TemplateSegment<'_>]) -> Option<String> {
    let (TemplateSegment::CatchAll(parameter), before) = segments.split_last()? else {
        return None;
    };
    if !parameter.constraints.is_empty() {
        return None;
    }
    let mut prefix = String::new();
    for segment in before {
        let TemplateSegment::Literal(text) = segment else {
            return None;
        };
        if !text.bytes().all(is_unreserved) {
            return None;
        }
        prefix.push('/');
        prefix.push_str(text);
    }
    Some(prefix)
}

/// RFC 3986 section 2.3
fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Returns the expression for the rest that a catch-all matches, with the `/` before it.
fn rest(parameter: &TemplateParameter<'_>) -> Result<String, Inexpressible> {
    // A file has a period in its last segment with something other than periods behind it.
    match &parameter.constraints[..] {
        [] => Ok("(?:/.*)?".to_owned()),
        ["nonfile"] => Ok("(?:/(?:.*/)?[^/.]*\\.*)?".to_owned()),
        ["file"] => Ok("/(?:.*/)?[^/.]*\\.[^/]*[^/.][^/]*".to_owned()),
        _ => Err(inexpressible(parameter)),
    }
}

fn one_segment(
    segment: &TemplateSegment<'_>,
    report: &mut Report<'_>,
) -> Result<String, Inexpressible> {
    match segment {
        TemplateSegment::Literal(text) => Ok(re2::in_path(text)),
        TemplateSegment::Parameter(parameter) => value(parameter, report),
        TemplateSegment::Parts(parts) => several(parts),
        _ => Err(Inexpressible::new(KEY, "the path has a part of a new kind")),
    }
}

/// A segment of several parts. The parts are placed from the end. A regular expression need not do that to
/// find out whether the segment matches.
fn several(parts: &[TemplatePart<'_>]) -> Result<String, Inexpressible> {
    let mut regex = String::new();
    for part in parts {
        match part {
            TemplatePart::Literal(text) => regex.push_str(&re2::in_path(text)),
            TemplatePart::Parameter(parameter) if !parameter.constraints.is_empty() => {
                return Err(inexpressible(parameter));
            }
            TemplatePart::Parameter(parameter) if parameter.optional => {
                return optional_end(parts).ok_or_else(|| {
                    Inexpressible::new(KEY, "the end of a segment that may be missing is only expressed in `{name}.{end?}`")
                });
            }
            TemplatePart::Parameter(_) => regex.push_str("[^/]+"),
            _ => return Err(Inexpressible::new(KEY, "the path has a part of a new kind")),
        }
    }
    Ok(regex)
}

/// `{name}.{end?}`: what has no end does not end with the period either.
fn optional_end(parts: &[TemplatePart<'_>]) -> Option<String> {
    let [
        TemplatePart::Parameter(first),
        TemplatePart::Literal(separator),
        TemplatePart::Parameter(_),
    ] = parts
    else {
        return None;
    };
    let mut characters = separator.chars();
    let (Some(one), None) = (characters.next(), characters.next()) else {
        return None;
    };
    if !first.constraints.is_empty() || !u8::try_from(one).is_ok_and(is_unreserved) {
        return None;
    }
    let one = re2::plain(separator);
    Some(format!("(?:[^/]+{one}[^/]+|[^/]*[^/{one}])"))
}

/// The value of a parameter that is a whole segment.
pub(super) fn value(
    parameter: &TemplateParameter<'_>,
    report: &mut Report<'_>,
) -> Result<String, Inexpressible> {
    let mut found: Option<String> = None;
    for constraint in &parameter.constraints {
        let (name, arguments) = match constraint.split_once('(') {
            Some((name, rest)) => (name, rest.strip_suffix(')').unwrap_or(rest)),
            None => (*constraint, ""),
        };
        let regex = match name {
            "required" => continue,
            "int" | "long" | "min" | "max" | "range" => {
                report.differs(
                    KEY,
                    format!(
                        "Envoy takes every integer for `{{{}}}`, whatever `{constraint}` says of its size",
                        parameter.name
                    ),
                );
                "[+-]?[0-9]+".to_owned()
            }
            "bool" => "(?:true|false)".to_owned(),
            "alpha" => "[a-z]+".to_owned(),
            "guid" => {
                report.differs(
                    KEY,
                    format!(
                        "Envoy takes every way to put dashes into `{{{}}}`, and no braces",
                        parameter.name
                    ),
                );
                GUID.to_owned()
            }
            "nonfile" => "(?:[^/.]+\\.*|\\.+)".to_owned(),
            "file" => "[^/.]*\\.[^/]*[^/.][^/]*".to_owned(),
            "length" | "minlength" | "maxlength" => {
                report.differs(
                    KEY,
                    format!("Envoy counts each escaped byte of `{{{}}}`", parameter.name),
                );
                length(name, arguments).ok_or_else(|| inexpressible(parameter))?
            }
            _ => return Err(inexpressible(parameter)),
        };
        match &found {
            // RE2 has no look-ahead, so two different conditions cannot both be checked.
            Some(other) if *other != regex => return Err(inexpressible(parameter)),
            _ => found = Some(regex),
        }
    }
    Ok(found.unwrap_or_else(|| "[^/]+".to_owned()))
}

/// A regular expression for 32 hexadecimal digits, with or without dashes.
const GUID: &str = "[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}";

/// A regular expression for one plain character, or one percent-encoded byte.
const CHARACTER: &str = "(?:[^/%]|%[0-9a-f][0-9a-f])";

fn length(name: &str, arguments: &str) -> Option<String> {
    // RE2 counts to 1,000.
    let number = |text: &str| text.trim().parse::<u32>().ok().filter(|n| *n <= 1000);
    let counts = match name {
        "minlength" => format!("{{{},}}", number(arguments)?.max(1)),
        "maxlength" => format!("{{1,{}}}", number(arguments).filter(|n| *n > 0)?),
        _ => match arguments.split_once(',') {
            Some((min, max)) => format!("{{{},{}}}", number(min)?.max(1), number(max)?.max(1)),
            None => format!("{{{}}}", number(arguments).filter(|n| *n > 0)?),
        },
    };
    Some(format!("{CHARACTER}{counts}"))
}

fn inexpressible(parameter: &TemplateParameter<'_>) -> Inexpressible {
    Inexpressible::new(
        KEY,
        format!(
            "Envoy's path matchers cannot say `{{{}:{}}}`",
            parameter.name,
            parameter.constraints.join(":")
        ),
    )
}
