//! Rules of Traefik's routers, translated to the conditions of a route.

use std::collections::BTreeSet;

use discovery_core::text::without_root;

/// The most alternatives that a rule may have when it is multiplied out.
const MOST_ALTERNATIVES: usize = 16;

/// Maximum depth of parentheses.
const DEEPEST: usize = 16;

/// Conditions that must all hold. A `None` or empty one always holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Conditions {
    /// One of these hosts.
    pub(super) hosts: Option<BTreeSet<String>>,
    /// The path, as a route template.
    pub(super) path: Option<String>,
    /// One of these methods.
    pub(super) methods: Option<BTreeSet<String>>,
    /// The required headers with their values.
    pub(super) headers: Vec<(String, String)>,
    /// The required query parameters with their values.
    pub(super) query: Vec<(String, String)>,
}

/// Reads a rule. One of the alternatives must hold.
pub(super) fn parse(rule: &str) -> Result<Vec<Conditions>, String> {
    let mut parser = Parser {
        rest: rule.trim(),
        depth: 0,
    };
    let alternatives = parser.any()?;
    match parser.rest.is_empty() {
        true => Ok(merged(alternatives)),
        false => Err(format!(
            "`{}` is not expected there",
            beginning(parser.rest)
        )),
    }
}

/// Alternatives that differ in their hosts only are one.
fn merged(alternatives: Vec<Conditions>) -> Vec<Conditions> {
    let mut merged: Vec<Conditions> = Vec::new();
    for alternative in alternatives {
        let others = |conditions: &Conditions| Conditions {
            hosts: None,
            ..conditions.clone()
        };
        let same = merged.iter_mut().find(|known| {
            others(known) == others(&alternative)
                && known.hosts.is_some()
                && alternative.hosts.is_some()
        });
        match (same, &alternative.hosts) {
            (Some(known), Some(hosts)) => {
                known
                    .hosts
                    .get_or_insert_default()
                    .extend(hosts.iter().cloned());
            }
            _ => merged.push(alternative),
        }
    }
    merged
}

struct Parser<'r> {
    rest: &'r str,
    depth: usize,
}

impl<'r> Parser<'r> {
    fn skip(&mut self, token: &str) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest.trim_start();
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, token: &str) -> Result<(), String> {
        match self.skip(token) {
            true => Ok(()),
            false => Err(format!(
                "expected `{token}` before `{}`",
                beginning(self.rest)
            )),
        }
    }

    fn any(&mut self) -> Result<Vec<Conditions>, String> {
        let mut alternatives = self.all()?;
        while self.skip("||") {
            alternatives.extend(self.all()?);
            bounded(&alternatives)?;
        }
        Ok(alternatives)
    }

    fn all(&mut self) -> Result<Vec<Conditions>, String> {
        let mut alternatives = self.one()?;
        while self.skip("&&") {
            let others = self.one()?;
            let mut product = Vec::new();
            for left in &alternatives {
                for right in &others {
                    product.extend(both(left, right)?);
                    bounded(&product)?;
                }
            }
            alternatives = product;
        }
        Ok(alternatives)
    }

    fn one(&mut self) -> Result<Vec<Conditions>, String> {
        if self.skip("!") {
            return Err("`!` is not supported".to_owned());
        }
        if self.skip("(") {
            self.depth += 1;
            if self.depth > DEEPEST {
                return Err("there are too many parentheses".to_owned());
            }
            let inner = self.any()?;
            self.depth -= 1;
            self.expect(")")?;
            return Ok(inner);
        }
        self.matcher().map(|conditions| vec![conditions])
    }

    fn matcher(&mut self) -> Result<Conditions, String> {
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric());
        let (name, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        if name.is_empty() {
            return Err(format!("expected a matcher before `{}`", beginning(rest)));
        }
        self.rest = rest;
        self.expect("(")?;
        let mut values = vec![self.text()?];
        while self.skip(",") {
            values.push(self.text()?);
        }
        self.expect(")")?;
        conditions(name, &values)
    }

    /// Reads a text between backquotes or quotation marks.
    fn text(&mut self) -> Result<&'r str, String> {
        let rest = self.rest.trim_start();
        let quote = rest.chars().next().filter(|c| matches!(c, '`' | '"'));
        let text = quote.and_then(|quote| rest[1..].split_once(quote));
        let (text, rest) = text.ok_or_else(|| {
            format!(
                "expected a text between backquotes before `{}`",
                beginning(rest)
            )
        })?;
        self.rest = rest;
        Ok(text)
    }
}

fn conditions(name: &str, values: &[&str]) -> Result<Conditions, String> {
    let set = || {
        values
            .iter()
            .map(|value| (*value).to_owned())
            .collect::<BTreeSet<_>>()
    };
    let single = || match values {
        [value] => Ok(*value),
        _ => Err(format!("`{name}` with several values is not supported")),
    };
    let pair = || match values {
        [key, value] => Ok(((*key).to_owned(), (*value).to_owned())),
        _ => Err(format!("`{name}` needs a name and a value")),
    };
    let nothing = Conditions::default();
    Ok(match name {
        "Host" => Conditions {
            hosts: Some(
                set()
                    .iter()
                    .map(|host| without_root(host).to_ascii_lowercase())
                    .collect(),
            ),
            ..nothing
        },
        "Path" => Conditions {
            path: Some(literal(single()?)?.to_owned()),
            ..nothing
        },
        // Prefixes are whole segments here, as templates are; in Traefik they are any beginning of the text.
        "PathPrefix" => Conditions {
            path: Some(format!(
                "{}/{{**rest}}",
                literal(single()?)?.trim_end_matches('/')
            )),
            ..nothing
        },
        "Method" => Conditions {
            methods: Some(
                set()
                    .iter()
                    .map(|method| method.to_ascii_uppercase())
                    .collect(),
            ),
            ..nothing
        },
        "Header" | "Headers" => Conditions {
            headers: vec![pair()?],
            ..nothing
        },
        "Query" => Conditions {
            query: vec![match values {
                [one] => one
                    .split_once('=')
                    .map(|(key, value)| (key.to_owned(), value.to_owned()))
                    .ok_or("`Query` needs a name and a value")?,
                _ => pair()?,
            }],
            ..nothing
        },
        other => return Err(format!("`{other}` is not supported")),
    })
}

/// A path that means the same as a route template.
fn literal(path: &str) -> Result<&str, String> {
    match path.starts_with('/') && !path.contains(['{', '}', '*', '?', '#', '%']) {
        true => Ok(path),
        false => Err(format!("the path `{}` is not supported", beginning(path))),
    }
}

/// Combines two conditions that must both hold. `None` if they exclude each other.
fn both(left: &Conditions, right: &Conditions) -> Result<Option<Conditions>, String> {
    let common =
        |left: &Option<BTreeSet<String>>, right: &Option<BTreeSet<String>>| match (left, right) {
            (Some(left), Some(right)) => Some(left.intersection(right).cloned().collect()),
            (one, None) | (None, one) => one.clone(),
        };
    let path = match (&left.path, &right.path) {
        (Some(left), Some(right)) if left != right => {
            return Err("two paths that must both match are not supported".to_owned());
        }
        (one, None) | (None, one) | (one, Some(_)) => one.clone(),
    };
    let joined = |left: &[(String, String)], right: &[(String, String)]| [left, right].concat();
    let both = Conditions {
        hosts: common(&left.hosts, &right.hosts),
        methods: common(&left.methods, &right.methods),
        path,
        headers: joined(&left.headers, &right.headers),
        query: joined(&left.query, &right.query),
    };
    let is_never = [&both.hosts, &both.methods]
        .into_iter()
        .flatten()
        .any(BTreeSet::is_empty);
    Ok((!is_never).then_some(both))
}

fn bounded(alternatives: &[Conditions]) -> Result<(), String> {
    match alternatives.len() <= MOST_ALTERNATIVES {
        true => Ok(()),
        false => Err(format!(
            "there are more than {MOST_ALTERNATIVES} alternatives"
        )),
    }
}

fn beginning(text: &str) -> String {
    discovery_core::text::shortened(text, 40)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Each alternative as one line.
    fn shown(rule: &str) -> Result<Vec<String>, String> {
        let set = |set: &Option<BTreeSet<String>>| {
            let set = set
                .as_ref()
                .map(|set| set.iter().cloned().collect::<Vec<_>>());
            set.map_or_else(|| "*".to_owned(), |set| set.join(","))
        };
        let pairs = |pairs: &[(String, String)]| {
            let pairs = pairs.iter().map(|(key, value)| format!(" {key}={value}"));
            pairs.collect::<String>()
        };
        let line = |c: &Conditions| {
            let path = c.path.as_deref().unwrap_or("*");
            format!(
                "{} {} {path}{}{}",
                set(&c.hosts),
                set(&c.methods),
                pairs(&c.headers),
                pairs(&c.query)
            )
        };
        parse(rule).map(|alternatives| alternatives.iter().map(line).collect())
    }

    #[test]
    fn rules_become_alternatives() {
        for (rule, expected) in [
            ("Host(`a.example`)", &["a.example * *"][..]),
            (
                "Host(`A.example`, \"b.example\")",
                &["a.example,b.example * *"],
            ),
            ("Host(`a`) || Host(`b`)", &["a,b * *"]),
            (
                "Host(`a.example.`) || Host(`a.example`)",
                &["a.example * *"],
            ),
            ("Host(`a`)&&PathPrefix(`/x`)", &["a * /x/{**rest}"]),
            ("PathPrefix(`/`)", &["* * /{**rest}"]),
            ("Path(`/x/y`)", &["* * /x/y"]),
            (
                "(Host(`a`) || Host(`b`)) && (PathPrefix(`/x`) || PathPrefix(`/y/`))",
                &["a,b * /x/{**rest}", "a,b * /y/{**rest}"],
            ),
            (
                "Host(`a`) && Method(`GET`, `post`) && Header(`X-A`, `1`) && Query(`q`, `2`)",
                &["a GET,POST * X-A=1 q=2"],
            ),
            ("Headers(`X-A`, `1`) && Query(`q=2`)", &["* * * X-A=1 q=2"]),
            (
                "Host(`a`) || PathPrefix(`/x`)",
                &["a * *", "* * /x/{**rest}"],
            ),
            ("Host(`a`) && Host(`b`) || Host(`c`)", &["c * *"]),
        ] {
            assert_eq!(shown(rule).unwrap(), expected, "{rule}");
        }
    }

    #[test]
    fn what_cannot_be_said_is_rejected_with_a_reason() {
        for (rule, reason) in [
            ("", "expected a matcher"),
            ("Host(a)", "between backquotes"),
            ("Host(`a`", "expected `)`"),
            ("Host(`a`) Host(`b`)", "not expected"),
            ("Host(`a`) &&", "expected a matcher"),
            ("!Host(`a`)", "`!` is not supported"),
            ("HostRegexp(`.*`)", "`HostRegexp` is not supported"),
            ("PathPrefix(`/{id:[0-9]+}`)", "is not supported"),
            ("Path(`/a`) && Path(`/b`)", "two paths"),
            ("Header(`X`)", "a name and a value"),
        ] {
            let error = parse(rule).unwrap_err();
            assert!(error.contains(reason), "{rule}: {error}");
        }
        let deep = format!("{}Host(`a`){}", "(".repeat(1000), ")".repeat(1000));
        assert!(parse(&deep).unwrap_err().contains("parentheses"));
        let sum = "(Host(`a`) || Path(`/b`))";
        let wide = [sum; 10].join(" && ");
        parse(&wide).unwrap_err();
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_rejected(rule in "[HostPah(`)&|!, /\"é]{0,80}") {
            let _ = parse(&rule);
        }
    }
}
