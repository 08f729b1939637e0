//! Changes of a head that is already text.

use crate::transform::Invalid;

/// Makes a head of HTTP/1.1 one of HTTP/1.0. It is not changed twice.
///
/// # Errors
///
/// The length of the body is unknown: HTTP/1.0 has no chunks.
#[cold]
pub(crate) fn in_http10(head: &mut Vec<u8>) -> Result<(), Invalid> {
    const NEW: &[u8] = b" HTTP/1.1\r\n";
    const OLD: &[u8] = b" HTTP/1.0\r\n";
    let Some(line) = head.windows(NEW.len()).position(|part| part == NEW) else {
        return Ok(());
    };
    let lines = String::from_utf8_lossy(head).to_ascii_lowercase();
    if lines.contains("\r\ntransfer-encoding:") {
        return Err(Invalid);
    }
    head[line..line + OLD.len()].copy_from_slice(OLD);
    remove_lines(head, &["connection"]);
    head.truncate(head.len() - 2);
    // In HTTP/1.0, a connection closes unless both sides ask for more.
    head.extend_from_slice(b"Connection: keep-alive\r\n\r\n");
    Ok(())
}

/// Removes the lines with these names, which are in lower case, from a head.
#[cold]
pub(crate) fn remove_lines(head: &mut Vec<u8>, names: &[&str]) {
    let mut kept = Vec::with_capacity(head.len());
    for line in head.split_inclusive(|byte| *byte == b'\n') {
        let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
        let is_named = |other: &&str| name.eq_ignore_ascii_case(other.as_bytes());
        if !names.iter().any(is_named) {
            kept.extend_from_slice(line);
        }
    }
    *head = kept;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_of_http10_is_made_once_and_has_no_chunks() {
        let head = "GET /a HTTP/1.1\r\nHost: h\r\nConnection: TE\r\nTE: trailers\r\n\r\n";
        let expected =
            "GET /a HTTP/1.0\r\nHost: h\r\nTE: trailers\r\nConnection: keep-alive\r\n\r\n";
        let mut made = head.as_bytes().to_vec();
        for _ in 0..2 {
            in_http10(&mut made).unwrap();
            assert_eq!(String::from_utf8_lossy(&made), expected);
        }
        let chunked = "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_eq!(in_http10(&mut chunked.as_bytes().to_vec()), Err(Invalid));
    }
}
