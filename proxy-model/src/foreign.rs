//! Spellings of other programs that are literal text here.

use crate::problem::Problem;
use crate::suggest::shortened;

/// Returns a warning if a path template at `pointer` has literal text that is a pattern in nginx, Traefik, Envoy or
/// Express.
pub(crate) fn path(template: &str, pointer: String) -> Option<Problem> {
    let mut written = Vec::new();
    let mut found = None;
    let segments: Vec<&str> = segments(template).collect();
    for (position, segment) in segments.iter().enumerate() {
        let is_last = position + 1 == segments.len();
        let pattern = pattern(segment);
        found = found.or_else(|| pattern.map(|_| *segment));
        written.push(match pattern {
            None => (*segment).to_owned(),
            Some(ForeignPattern::Rest(name)) if is_last => format!("{{**{name}}}"),
            Some(ForeignPattern::Rest(name) | ForeignPattern::One(name)) => format!("{{{name}}}"),
            Some(ForeignPattern::Part) => segment.replacen('*', "{name}", 1),
            Some(ForeignPattern::Expression) => "{name:regex(…)}".to_owned(),
        });
    }
    let found = shortened(found?);
    let message = format!("`{found}` is literal text here, so only paths with `{found}` match");
    let problem = Problem::warning(pointer, "literal_pattern", message);
    Some(problem.with_suggestion(format!("write `{}`", shortened(&written.join("/")))))
}

/// A path segment that other programs read as a pattern, and that is literal text here.
#[derive(Clone, Copy)]
enum ForeignPattern<'t> {
    /// The rest of the path: `*`, `**`, `:name*`.
    Rest(&'t str),
    /// One segment: `:name`.
    One(&'t str),
    /// A part of a segment: `*.php`.
    Part,
    /// A regular expression: `(.*)`.
    Expression,
}

fn pattern(segment: &str) -> Option<ForeignPattern<'_>> {
    if segment.contains('{') {
        return None;
    }
    if segment == "*" || segment == "**" {
        return Some(ForeignPattern::Rest("rest"));
    }
    if let Some(name) = segment.strip_prefix(':') {
        let (name, is_rest) = match name.strip_suffix(['*', '+']) {
            Some(name) => (name, true),
            None => (name, false),
        };
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        return is_name.then_some(match is_rest {
            true => ForeignPattern::Rest(name),
            false => ForeignPattern::One(name),
        });
    }
    let is_expression = segment.contains(".*")
        || segment.contains(".+")
        || segment.contains("\\d")
        || segment.starts_with('^')
        || segment.ends_with('$');
    if is_expression {
        return Some(ForeignPattern::Expression);
    }
    segment.contains('*').then_some(ForeignPattern::Part)
}

/// The texts between slashes that are not in braces.
fn segments(template: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    template.split(move |c| {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == '/' && depth == 0
    })
}

/// Returns the correction for a value that is a variable in nginx, Envoy or Caddy.
pub(crate) fn variable(value: &str) -> Option<&'static str> {
    const SENT: &str = "every request has it already: as `X-Forwarded-For`, which the transform `X-Forwarded` renames";
    const OTHER: &str = "there are no variables; a program can register a transform of its own";
    let name = value.trim();
    let name = name
        .strip_prefix('$')
        .or_else(|| name.strip_prefix('%')?.strip_suffix('%'))
        .or_else(|| name.strip_prefix('{')?.strip_suffix('}'))?;
    let name = name.trim_matches(['{', '}']);
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && (name.bytes()).all(|b| b.is_ascii_alphanumeric() || b"_.:-()".contains(&b));
    if !is_name {
        return None;
    }
    Some(match &*name.to_ascii_lowercase() {
        "remote_addr"
        | "realip_remote_addr"
        | "proxy_add_x_forwarded_for"
        | "remote_host"
        | "client_ip"
        | "http.request.remote.host"
        | "downstream_remote_address"
        | "downstream_remote_address_without_port" => SENT,
        "host"
        | "http_host"
        | "hostport"
        | "http.request.host"
        | "http.request.hostport"
        | "req(:authority)"
        | "upstream_hostport" => {
            "the transform `\"RequestHeaderOriginalHost\": \"true\"` keeps the `Host`; `X-Forwarded-Host` has it always"
        }
        "scheme" | "http.request.scheme" | "req(:scheme)" => {
            "every request has it already: as `X-Forwarded-Proto`"
        }
        "ssl_client_cert" | "ssl_client_escaped_cert" => {
            "the transform `\"ClientCert\": \"X-Client-Cert\"` sends the certificate"
        }
        _ => OTHER,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_others_come_with_the_spelling_here() {
        for (template, expected) in [
            ("/api/*", Some("/api/{**rest}")),
            ("/api/**", Some("/api/{**rest}")),
            ("/*", Some("/{**rest}")),
            ("/c/:id", Some("/c/{id}")),
            ("/c/:id/orders/:order", Some("/c/{id}/orders/{order}")),
            ("/c/:rest*", Some("/c/{**rest}")),
            ("/a/*/b", Some("/a/{rest}/b")),
            ("/a/*.php", Some("/a/{name}.php")),
            ("^/api/(.*)$", Some("{name:regex(…)}/api/{name:regex(…)}")),
            ("/{tenant}/*", Some("/{tenant}/{**rest}")),
            // What templates have themselves.
            ("/api/{**rest}", None),
            ("/c/{id}", None),
            ("/c/{id:regex(^a/*b$)}", None),
            ("/files/{name}.{type?}", None),
            ("/a:b", None),
            ("/:1", None),
            ("/a.b/c", None),
            ("", None),
        ] {
            let found = path(template, String::new()).map(|problem| problem.suggestion.unwrap());
            let expected = expected.map(|path| format!("write `{path}`"));
            assert_eq!(found, expected, "{template}");
        }
    }

    #[test]
    fn variables_of_others_are_told_from_texts() {
        for (value, is_variable) in [
            ("$remote_addr", true),
            ("${HOST}", true),
            (" $scheme", true),
            ("%DOWNSTREAM_REMOTE_ADDRESS%", true),
            ("%REQ(:authority)%", true),
            ("{http.request.host}", true),
            ("{remote_host}", true),
            ("$100", false),
            ("100%", false),
            ("{}", false),
            ("{ \"a\": 1 }", false),
            ("a $b", false),
            ("$2y$10$abc", false),
            ("", false),
        ] {
            assert_eq!(variable(value).is_some(), is_variable, "{value}");
        }
        assert!(
            variable("$remote_addr")
                .unwrap()
                .contains("X-Forwarded-For")
        );
        assert!(
            variable("$host")
                .unwrap()
                .contains("RequestHeaderOriginalHost")
        );
    }
}
