//! Methods that a route takes.

use std::collections::BTreeSet;
use std::fmt;

use thiserror::Error;

use crate::suggest;

/// The methods that routes usually name (RFC 9110 section 9, RFC 5789), by their position in a [`MethodSet`].
const STANDARD: [&str; 8] = [
    "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE",
];

/// The longest custom method.
const MAX_LENGTH: usize = 64;

/// The methods that a route takes; all of them, if none is listed.
///
/// GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH and TRACE ignore case. HEAD is not part of GET. Any other method can be
/// listed too, in upper case, and matches exactly.
///
/// Shown sorted, with `, ` between the methods, as the header `Allow` has them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct MethodSet {
    standard: u8,
    custom: BTreeSet<Box<str>>,
}

/// The reason why a list of methods is rejected.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{kind}")]
pub struct MethodError {
    index: usize,
    kind: MethodErrorKind,
}

impl MethodError {
    /// Position of the method in the list.
    pub fn index(&self) -> usize {
        self.index
    }

    /// The kind of error.
    pub fn kind(&self) -> &MethodErrorKind {
        &self.kind
    }

    /// Returns the correction, if one is known.
    pub fn suggestion(&self) -> Option<String> {
        match &self.kind {
            MethodErrorKind::Empty => {
                Some("write a method, or leave `Methods` out to take all".into())
            }
            MethodErrorKind::Unknown { method } => Some(match near(method) {
                Some(standard) => format!("did you mean `{standard}`?"),
                None => format!("write `{}`", method.to_ascii_uppercase()),
            }),
            MethodErrorKind::Invalid { .. } | MethodErrorKind::TooLong => None,
            MethodErrorKind::Duplicate { .. } => Some("remove it".into()),
        }
    }
}

/// The kinds of errors in a list of methods.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MethodErrorKind {
    /// An empty method.
    #[error("empty method")]
    Empty,
    /// A method that looks like a slip of the pen, or is not in upper case.
    #[error("unsupported method `{method}`")]
    Unknown {
        /// The method as written.
        method: String,
    },
    /// A method that is not a token (RFC 9110 section 5.6.2).
    #[error("the method `{}` cannot have `{}` in it", method.escape_debug(), character.escape_debug())]
    Invalid {
        /// The method as written.
        method: String,
        /// The character that a method cannot have.
        character: char,
    },
    /// A method of more than 64 characters.
    #[error("the method is longer than {MAX_LENGTH} characters")]
    TooLong,
    /// A method that was listed before, ignoring case.
    #[error("the method `{method}` is listed twice")]
    Duplicate {
        /// The method as written.
        method: String,
    },
}

impl MethodSet {
    /// Reads a list of methods. An empty one takes all.
    ///
    /// # Errors
    ///
    /// Returns all problems of the list, in its order.
    pub fn parse<T: AsRef<str>>(methods: &[T]) -> Result<Self, Vec<MethodError>> {
        let mut set = Self::default();
        let mut errors = Vec::new();
        for (index, method) in methods.iter().enumerate() {
            if let Err(kind) = set.add(method.as_ref()) {
                errors.push(MethodError { index, kind });
            }
        }
        if errors.is_empty() {
            Ok(set)
        } else {
            Err(errors)
        }
    }

    /// Returns true if no method is listed, so that all are accepted.
    pub fn takes_all(&self) -> bool {
        self.standard == 0 && self.custom.is_empty()
    }

    /// Returns true if a method, given as sent, is accepted.
    pub fn takes(&self, method: &str) -> bool {
        self.takes_all() || self.lists(method)
    }

    /// The methods that are listed, sorted.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let mut all: Vec<&str> = (self.custom.iter().map(|method| &**method))
            .chain(
                (STANDARD.into_iter().enumerate())
                    .filter(|(position, _)| self.standard & (1 << position) != 0)
                    .map(|(_, method)| method),
            )
            .collect();
        all.sort_unstable();
        all.into_iter()
    }

    /// Returns true if a method is listed.
    pub(super) fn lists(&self, method: &str) -> bool {
        match standard_bit(method) {
            0 => self.custom.contains(method),
            bit => self.standard & bit != 0,
        }
    }

    /// The standard methods that it takes, one bit each.
    pub(super) fn standard_bits(&self) -> u8 {
        if self.takes_all() { !0 } else { self.standard }
    }

    /// Returns true if methods that are not standard are accepted.
    pub(super) fn takes_custom(&self) -> bool {
        self.takes_all() || !self.custom.is_empty()
    }

    /// Adds all methods that `other` lists.
    pub(super) fn extend(&mut self, other: &Self) {
        self.standard |= other.standard;
        self.custom.extend(other.custom.iter().cloned());
    }

    fn add(&mut self, method: &str) -> Result<(), MethodErrorKind> {
        let duplicate = || MethodErrorKind::Duplicate {
            method: method.into(),
        };
        let bit = standard_bit(method);
        if bit != 0 {
            if self.standard & bit != 0 {
                return Err(duplicate());
            }
            self.standard |= bit;
            return Ok(());
        }
        if method.is_empty() {
            return Err(MethodErrorKind::Empty);
        }
        if method.len() > MAX_LENGTH {
            return Err(MethodErrorKind::TooLong);
        }
        if let Some(character) = method.chars().find(|c| !is_token_char(*c)) {
            return Err(MethodErrorKind::Invalid {
                method: method.into(),
                character,
            });
        }
        if method.bytes().any(|b| b.is_ascii_lowercase()) || near(method).is_some() {
            return Err(MethodErrorKind::Unknown {
                method: method.into(),
            });
        }
        if self.custom.insert(method.into()) {
            Ok(())
        } else {
            Err(duplicate())
        }
    }
}

/// The bit of a standard method, or 0.
pub(super) fn standard_bit(method: &str) -> u8 {
    STANDARD
        .iter()
        .position(|standard| standard.eq_ignore_ascii_case(method))
        .map_or(0, |position| 1 << position)
}

/// Returns the standard method that was probably intended.
fn near(method: &str) -> Option<&'static str> {
    suggest::nearest(method, STANDARD)
}

/// RFC 9110 section 5.6.2.
fn is_token_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c)
}

impl fmt::Display for MethodSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, method) in self.iter().enumerate() {
            if position > 0 {
                f.write_str(", ")?;
            }
            f.write_str(method)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(methods: &[&str]) -> Vec<MethodErrorKind> {
        match MethodSet::parse(methods) {
            Ok(_) => Vec::new(),
            Err(errors) => errors.into_iter().map(|error| error.kind).collect(),
        }
    }

    #[test]
    fn d10_standard_methods_in_any_case() {
        for methods in [
            &["get"] as &[&str],
            &["gEt", "put"],
            &["gEt", "put", "POST", "traCE", "PATCH", "DELETE", "Head"],
        ] {
            assert_eq!(kinds(methods), [], "{methods:?}");
        }
    }

    #[test]
    fn d11_slips_are_rejected() {
        assert_eq!(kinds(&[""]), [MethodErrorKind::Empty]);
        let errors = MethodSet::parse(&["GET", "gett"]).unwrap_err();
        assert_eq!(errors.len(), 1);
        assert_eq!(errors[0].index(), 1);
        assert_eq!(errors[0].to_string(), "unsupported method `gett`");
        assert_eq!(
            errors[0].suggestion().as_deref(),
            Some("did you mean `GET`?")
        );
        let errors = MethodSet::parse(&["GETT", "PSOT", "purge"]).unwrap_err();
        let suggestions: Vec<_> = errors.iter().filter_map(MethodError::suggestion).collect();
        assert_eq!(
            suggestions,
            [
                "did you mean `GET`?",
                "did you mean `POST`?",
                "write `PURGE`"
            ]
        );
    }

    #[test]
    fn registered_methods_are_no_slips() {
        // The registry of RFC 9110 section 16.1.1, except `PRI` and `*`, and the methods of caches.
        let registered = "ACL BASELINE-CONTROL BIND CHECKIN CHECKOUT CONNECT COPY DELETE GET HEAD LABEL LINK LOCK MERGE \
             MKACTIVITY MKCALENDAR MKCOL MKREDIRECTREF MKWORKSPACE MOVE OPTIONS ORDERPATCH PATCH POST PROPFIND PROPPATCH \
             PUT QUERY REBIND REPORT SEARCH TRACE UNBIND UNCHECKOUT UNLINK UNLOCK UPDATE UPDATEREDIRECTREF \
             VERSION-CONTROL PURGE BAN";
        for method in registered.split_whitespace() {
            assert_eq!(kinds(&[method]), [], "{method}");
        }
    }

    #[test]
    fn duplicates_are_rejected_ignoring_case() {
        let duplicate = |method: &str| MethodErrorKind::Duplicate {
            method: method.into(),
        };
        assert_eq!(kinds(&["GET", "get"]), [duplicate("get")]);
        assert_eq!(kinds(&["PURGE", "PURGE"]), [duplicate("PURGE")]);
    }

    #[test]
    fn what_is_not_a_token_is_rejected() {
        for method in ["PUR GE", "PÜRGE", "PURGE\n", "A,B"] {
            assert!(
                matches!(kinds(&[method])[..], [MethodErrorKind::Invalid { .. }]),
                "{method:?}"
            );
        }
        assert_eq!(
            kinds(&["X".repeat(65).as_str()]),
            [MethodErrorKind::TooLong]
        );
    }

    #[test]
    fn custom_methods_match_exactly_and_standard_ones_in_any_case() {
        let set = MethodSet::parse(&["PROPFIND", "M-SEARCH", "get"]).unwrap();
        for (method, taken) in [
            ("PROPFIND", true),
            ("propfind", false),
            ("M-SEARCH", true),
            ("GET", true),
            ("get", true),
            ("HEAD", false),
            ("POST", false),
            ("", false),
        ] {
            assert_eq!(set.takes(method), taken, "{method}");
        }
        assert_eq!(set.to_string(), "GET, M-SEARCH, PROPFIND");
        assert!(MethodSet::default().takes("ANYTHING"));
    }
}
