//! Paths that every program reads in the same way.

use proxy_model::compiled::Route;

/// Returns whether there are doubled slashes, in a path of which every program knows the segments otherwise.
///
/// # Errors
///
/// Some programs read a part of the path as something else.
pub(crate) fn has_doubled_slashes(path: &[u8]) -> Result<bool, &'static str> {
    for (at, &byte) in path.iter().enumerate() {
        match (byte, &path[at + 1..]) {
            (b';', _) | (b'%', [b'3', b'b' | b'B', ..]) => {
                return Err("the path has a parameter");
            }
            (b'\\', _) | (b'%', [b'2', b'f' | b'F', ..]) | (b'%', [b'5', b'c' | b'C', ..]) => {
                return Err("the path has a slash that is encoded, or a backslash");
            }
            _ => {}
        }
    }
    Ok(path.windows(2).any(|pair| pair == b"//"))
}

/// Makes sure that `route` takes a request with this path, which it matches.
///
/// Doubled slashes are not made one here: another route might take what that leaves.
///
/// # Errors
///
/// The route takes only paths that every program reads in the same way, and this is none.
#[inline]
pub(crate) fn check(route: &Route, path: &str) -> Result<(), &'static str> {
    match route.has_strict_paths() {
        false => Ok(()),
        true => match has_doubled_slashes(path.as_bytes())? {
            false => Ok(()),
            true => Err("the path has doubled slashes"),
        },
    }
}
