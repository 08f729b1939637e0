//! A parser for messages of HTTP/1.1 that may be incomplete.

/// A message, as far as it came.
#[derive(Debug, Default)]
pub(super) struct Message {
    pub(super) content: Vec<u8>,
    /// True if the message is complete.
    pub(super) is_whole: bool,
}

/// The head that `bytes` begin with, with its empty line.
pub(super) fn head(bytes: &[u8]) -> Option<&str> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    Some(std::str::from_utf8(&bytes[..end + 4]).unwrap())
}

impl Message {
    /// Reads the content that follows `head`, which declares the framing.
    pub(super) fn read(head: &str, rest: &[u8]) -> Self {
        let head = head.to_ascii_lowercase();
        if head.contains("transfer-encoding: chunked") {
            return Self::read_chunks(rest);
        }
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .map_or(0, |length| length.parse().unwrap());
        Self {
            content: rest[..rest.len().min(length)].to_vec(),
            is_whole: rest.len() >= length,
        }
    }

    fn read_chunks(mut rest: &[u8]) -> Self {
        let mut message = Self::default();
        while let Some(end) = rest.windows(2).position(|two| two == b"\r\n") {
            let size = std::str::from_utf8(&rest[..end]).unwrap();
            let size = usize::from_str_radix(size, 16).unwrap();
            rest = &rest[end + 2..];
            if size == 0 {
                message.is_whole = rest.starts_with(b"\r\n") || head(rest).is_some();
                break;
            }
            let content = &rest[..rest.len().min(size)];
            message.content.extend_from_slice(content);
            rest = rest.get(size + 2..).unwrap_or_default();
        }
        message
    }
}
