//! The events of a watch: JSON, one per line.

use bytes::{Buf, BytesMut};
use serde_json::Value;

/// The maximum length of a line. An object of Kubernetes has at most 1.5 MB, the limit of etcd.
const LONGEST: usize = 8 * 1024 * 1024;

/// A splitter of streamed bytes into lines.
#[derive(Debug, Default)]
pub(super) struct Lines {
    pending: BytesMut,
}

impl Lines {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
    }

    /// Returns the next complete line as JSON, or its error.
    pub(super) fn next(&mut self) -> Option<Result<Value, String>> {
        loop {
            let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') else {
                if self.pending.len() <= LONGEST {
                    return None;
                }
                self.pending.clear();
                return Some(Err(format!("an event has more than {LONGEST} bytes")));
            };
            let line = self.pending.split_to(end);
            self.pending.advance(1);
            if !line.trim_ascii().is_empty() {
                return Some(
                    serde_json::from_slice(&line)
                        .map_err(|error| format!("an event is not JSON: {error}")),
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_in_any_pieces() {
        let text = b"{\"a\":1}\n\n{\"b\":2}\r\n{\"c\"";
        for size in 1..text.len() {
            let mut lines = Lines::default();
            let mut found = Vec::new();
            for piece in text.chunks(size) {
                lines.push(piece);
                while let Some(line) = lines.next() {
                    found.push(line.unwrap().to_string());
                }
            }
            assert_eq!(found, ["{\"a\":1}", "{\"b\":2}"], "{size}");
        }
    }

    #[test]
    fn what_has_no_end_is_given_up() {
        let mut lines = Lines::default();
        lines.push(&vec![b'x'; LONGEST]);
        assert!(lines.next().is_none());
        lines.push(b"x");
        lines.next().unwrap().unwrap_err();
        lines.push(b"}\n");
        lines.next().unwrap().unwrap_err();
        assert!(lines.next().is_none());
    }
}
