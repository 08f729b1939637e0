//! Paths that every program reads in the same way.

use proxy_model::compiled::Route;

/// Returns true if the path has doubled slashes.
///
/// # Errors
///
/// Programs may read the path in different ways: it has an encoded slash, a backslash or a parameter.
pub(crate) fn has_doubled_slashes(path: &[u8]) -> Result<bool, &'static str> {
    for (at, &byte) in path.iter().enumerate() {
        match (byte, &path[at + 1..]) {
            // Also encoded, as some programs decode before they read parameters.
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

/// Checks a path against the setting `StrictPaths` of the route that it matches.
///
/// The path is read only for a route with the setting. Doubled slashes are an error here and not merged, because
/// another route might match the merged path.
///
/// # Errors
///
/// The route accepts only paths that every program reads in the same way, and this is not one.
#[inline]
pub(crate) fn check<'a>(route: &Route, path: impl FnOnce() -> &'a str) -> Result<(), &'static str> {
    match route.has_strict_paths() {
        false => Ok(()),
        true => match has_doubled_slashes(path().as_bytes())? {
            false => Ok(()),
            true => Err("the path has doubled slashes"),
        },
    }
}
