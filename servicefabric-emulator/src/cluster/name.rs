//! Names, and their ids in paths.

use std::fmt;
use std::sync::Arc;

use super::error::{ErrorCode, FabricError};

/// The maximum length of a name, in bytes.
const MAX_NAME: usize = 1024;
const SCHEME: &str = "fabric:/";

/// The name of an application, of a service or of anything else in the naming service: `fabric:/Shop/Web`.
///
/// Names compare byte by byte, and this order is the order of lists and pages.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FabricName(Arc<str>);

impl FabricName {
    /// Reads a name with its scheme, `fabric:/Shop/Web`.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_INVALID_NAME_URI` if it is not a `fabric:/` URI with a path, or is too long. A `~` is
    /// rejected as well: ids use it in place of `/`, so such a name could not be addressed.
    pub fn parse(text: &str) -> Result<Self, FabricError> {
        let reject = |why: &str| {
            let shown: String = text.chars().take(120).collect();
            let message = format!("'{shown}' is not a name: {why}");
            Err(FabricError::new(ErrorCode::InvalidNameUri, message))
        };
        let Some(path) = text.strip_prefix(SCHEME) else {
            return reject("it has to begin with fabric:/");
        };
        if text.len() > MAX_NAME {
            return reject("it is longer than 1024 bytes");
        }
        if path.is_empty() || path.split('/').any(str::is_empty) {
            return reject("it has an empty part");
        }
        if path.contains(['~', '?', '#']) || path.contains(char::is_control) {
            return reject(
                "it has a character that names cannot have (~ ? # or a control character)",
            );
        }
        Ok(Self(text.into()))
    }

    /// Returns the name with this id: `Shop~Web` or, as before version 6.0, `Shop/Web`. The id must have no
    /// percent-escapes.
    ///
    /// # Errors
    ///
    /// As [`parse`](Self::parse).
    pub fn from_id(id: &str) -> Result<Self, FabricError> {
        Self::parse(&format!("{SCHEME}{}", id.replace('~', "/")))
    }

    /// The name, `fabric:/Shop/Web`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the id for responses and paths, `Shop~Web`, percent-encoded as needed.
    pub fn id(&self) -> String {
        let mut id = String::with_capacity(self.0.len());
        for character in self.path().chars() {
            match character {
                '/' => id.push('~'),
                '[' | ']' | '&' | '^' | '`' | '{' | '}' | '|' | '"' | '<' | '>' | '\\' | ' '
                | '%' => id.push_str(&format!("%{:02X}", u32::from(character))),
                other => id.push(other),
            }
        }
        id
    }

    /// Returns the part after `fabric:/`.
    pub fn path(&self) -> &str {
        self.0.strip_prefix(SCHEME).unwrap_or(&self.0)
    }

    /// Returns the name one level up. `None` at the top.
    pub fn parent(&self) -> Option<Self> {
        let (parent, _) = self.path().rsplit_once('/')?;
        Some(Self(format!("{SCHEME}{parent}").into()))
    }

    /// Returns true if `self` lies below `other`, at any depth.
    pub fn is_below(&self, other: &Self) -> bool {
        let rest = self.0.strip_prefix(&*other.0);
        rest.is_some_and(|rest| rest.starts_with('/'))
    }

    /// Returns the name `part` below this one.
    ///
    /// # Errors
    ///
    /// As [`parse`](Self::parse).
    pub fn join(&self, part: &str) -> Result<Self, FabricError> {
        Self::parse(&format!("{}/{part}", self.0))
    }
}

impl fmt::Display for FabricName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for FabricName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

impl std::borrow::Borrow<str> for FabricName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_names_stand_for_each_other() {
        for (name, id) in [
            ("fabric:/App", "App"),
            ("fabric:/App/Svc", "App~Svc"),
            ("fabric:/a/b/svc", "a~b~svc"),
            ("fabric:/a/b/svc x", "a~b~svc%20x"),
            ("fabric:/a/100%", "a~100%25"),
        ] {
            let parsed = FabricName::parse(name).unwrap();
            assert_eq!(parsed.id(), id);
            let unescaped = id.replace("%20", " ").replace("%25", "%");
            assert_eq!(FabricName::from_id(&unescaped).unwrap(), parsed);
        }
        let hierarchical = FabricName::from_id("a/b/svc").unwrap();
        assert_eq!(hierarchical.as_str(), "fabric:/a/b/svc");
    }

    #[test]
    fn what_is_no_name_is_rejected() {
        let long = format!("fabric:/{}", "x".repeat(2000));
        for text in [
            "",
            "App",
            "fabric:/",
            "fabric:/a//b",
            "fabric:/a/",
            "fabric:/a~b",
            "fabric:/a?b",
            "http://a/b",
            "fabric:/a\nb",
            &long,
        ] {
            let error = FabricName::parse(text).unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidNameUri, "{text}");
        }
    }

    #[test]
    fn names_know_their_place() {
        let service = FabricName::parse("fabric:/a/b/c").unwrap();
        let parent = FabricName::parse("fabric:/a/b").unwrap();
        assert_eq!(service.parent(), Some(parent.clone()));
        assert!(service.is_below(&parent));
        assert!(!FabricName::parse("fabric:/a/bc").unwrap().is_below(&parent));
        assert_eq!(FabricName::parse("fabric:/a").unwrap().parent(), None);
    }
}
