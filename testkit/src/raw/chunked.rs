use std::io;

use super::response::field;
use super::stream::{BODY_LIMIT, RawStream, invalid};

/// The content of a chunked body.
#[derive(Debug)]
pub(super) struct ChunkedBody {
    pub(super) content: Vec<u8>,
    pub(super) trailers: Vec<(String, String)>,
}

impl RawStream {
    /// Reads a chunked body strictly by RFC 9112 7.1, with extensions.
    pub(super) async fn read_chunked(&mut self) -> io::Result<ChunkedBody> {
        let mut content = Vec::new();
        loop {
            let size = chunk_size(&self.read_line().await?)?;
            if size == 0 {
                break;
            }
            if content.len() + size > BODY_LIMIT {
                return Err(invalid("chunked body of more than 64 MiB", b""));
            }
            content.extend(self.read_exact(size).await?);
            let end = self.read_exact(2).await?;
            if end != b"\r\n" {
                return Err(invalid("chunk is longer than it says", &end));
            }
        }
        let mut trailers = Vec::new();
        loop {
            let line = self.read_line().await?;
            if line.is_empty() {
                return Ok(ChunkedBody { content, trailers });
            }
            trailers.push(field(&line)?);
        }
    }

    /// A line without its CRLF.
    async fn read_line(&mut self) -> io::Result<Vec<u8>> {
        let mut line = self.read_until(b"\r\n").await?;
        line.truncate(line.len() - 2);
        Ok(line)
    }
}

fn chunk_size(line: &[u8]) -> io::Result<usize> {
    let digits = line
        .iter()
        .take_while(|byte| byte.is_ascii_hexdigit())
        .count();
    let extension = &line[digits..];
    // RFC 9112 7.1.1 allows whitespace only inside an extension; any bare CR or LF would be a smuggling vector.
    let well_formed = (1..=15).contains(&digits)
        && (extension.is_empty() || extension.starts_with(b";"))
        && !extension
            .iter()
            .any(|byte| matches!(byte, b'\r' | b'\n' | 0));
    if !well_formed {
        return Err(invalid("malformed chunk size", line));
    }
    let digits = std::str::from_utf8(&line[..digits]).expect("hex digits are ASCII");
    Ok(usize::from_str_radix(digits, 16).expect("at most 15 hex digits fit 64 bits"))
}
