//! Names and ids.

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

/// The characters that must be encoded in a segment of a path: all but `pchar` of RFC 3986, section 3.3.
/// `~` is a `pchar`.
pub(crate) const NOT_IN_SEGMENT: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'/')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// Returns the id of a name in paths of the REST gateway: `fabric:/Shop/Web` is `Shop~Web`.
///
/// Characters that are not allowed in a path are percent-encoded. Prefer an id that the gateway itself
/// returned, unchanged. Not every name can be requested by its id; see [`check_name`].
///
/// ```
/// use discovery_servicefabric::id_of;
///
/// assert_eq!(id_of("fabric:/Shop/Web"), "Shop~Web");
/// assert_eq!(id_of("fabric:/a/b/svc x"), "a~b~svc%20x");
/// ```
pub fn id_of(name: &str) -> String {
    let path = name.strip_prefix("fabric:").unwrap_or(name);
    let path = path.strip_prefix('/').unwrap_or(path);
    utf8_percent_encode(&path.replace('/', "~"), NOT_IN_SEGMENT).to_string()
}

/// Returns the name for an id, as the gateway interprets it: `Shop~Web` is `fabric:/Shop/Web`. The inverse
/// of [`id_of`].
///
/// `None` if its escapes are not UTF-8.
pub fn name_of(id: &str) -> Option<String> {
    let path = percent_decode_str(id).decode_utf8().ok()?;
    Some(format!("fabric:/{}", path.replace('~', "/")))
}

/// Checks that the entity with this name can be requested by its id.
///
/// # Errors
///
/// Returns the reason why the name is invalid.
pub fn check_name(name: &str) -> Result<(), NameError> {
    let path = name
        .strip_prefix("fabric:/")
        .ok_or(NameError::NotAFabricName)?;
    if path.contains('~') {
        return Err(NameError::Tilde);
    }
    if matches!(path, "" | "." | "..") {
        return Err(NameError::NoSegment);
    }
    Ok(())
}

/// The reason why an entity cannot be requested by its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// A name that does not begin with `fabric:/`.
    #[error("the name does not begin with `fabric:/`")]
    NotAFabricName,
    /// A name with a `~`.
    #[error("the name has a `~`, which the gateway reads as `/`, so it cannot be requested")]
    Tilde,
    /// An empty name, `.` or `..`, which have a meaning of their own in a path.
    #[error("the name cannot be a segment of a path")]
    NoSegment,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ids_of_names() {
        let cases = [
            ("fabric:/App", "App"),
            ("fabric:/App/Svc", "App~Svc"),
            ("fabric:/a/b/svc", "a~b~svc"),
            ("fabric:/a/b/svc x", "a~b~svc%20x"),
            ("fabric:/System", "System"),
            ("App/Svc", "App~Svc"),
            ("fabric:/a%20b", "a%2520b"),
            ("fabric:/a?b#c", "a%3Fb%23c"),
            (
                "fabric:/[a]^b\\c`{d}|\"<e>",
                "%5Ba%5D%5Eb%5Cc%60%7Bd%7D%7C%22%3Ce%3E",
            ),
            ("fabric:/a-._!$&'()*+,;=:@", "a-._!$&'()*+,;=:@"),
            ("fabric:/Grün", "Gr%C3%BCn"),
            ("fabric://a//b", "~a~~b"),
        ];
        for (name, id) in cases {
            assert_eq!(id_of(name), id, "{name}");
        }
    }

    #[test]
    fn names_of_ids() {
        let cases = [
            ("App~Svc", Some("fabric:/App/Svc")),
            ("a~b~svc%20x", Some("fabric:/a/b/svc x")),
            ("a%7Eb", Some("fabric:/a/b")),
            ("a/b", Some("fabric:/a/b")),
            ("100%", Some("fabric:/100%")),
            ("%FF", None),
        ];
        for (id, name) in cases {
            assert_eq!(name_of(id).as_deref(), name, "{id}");
        }
    }

    #[test]
    fn names_that_cannot_be_asked_for_are_diagnosed() {
        assert_eq!(check_name("fabric:/Shop/Web"), Ok(()));
        assert_eq!(check_name("fabric:/a~b"), Err(NameError::Tilde));
        assert_eq!(check_name("urn:x"), Err(NameError::NotAFabricName));
        assert_eq!(check_name("fabric:/"), Err(NameError::NoSegment));
        assert_eq!(check_name("fabric:/.."), Err(NameError::NoSegment));
    }

    proptest! {
        #[test]
        fn a_name_that_can_be_asked_for_survives_its_id(path in any::<String>()) {
            let name = format!("fabric:/{path}");
            let cycle = name_of(&id_of(&name));
            if path.contains('~') {
                prop_assert_eq!(check_name(&name), Err(NameError::Tilde));
                prop_assert_eq!(cycle, Some(name.replace('~', "/")));
            } else {
                prop_assert_eq!(cycle, Some(name));
            }
        }

        #[test]
        fn an_id_is_a_segment(name in any::<String>()) {
            let id = id_of(&name);
            let allowed = |c: char| c.is_ascii_graphic() && !"/?#[]\\^`{|}\"<>".contains(c);
            prop_assert!(id.chars().all(allowed), "{id}");
        }
    }
}
