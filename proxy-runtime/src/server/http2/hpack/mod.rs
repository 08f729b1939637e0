//! Validation of header blocks before `h2` reads them: `h2` closes the connection for a field that
//! it cannot parse, and does not report other fields that a request must not have.
//!
//! The HPACK table belongs to the connection, not to a stream, so a block is read to its end even
//! if a field is invalid (RFC 9113 section 4.3). The text of a field that `h2` cannot parse is
//! replaced by as many harmless bytes, which keeps its table in step with the client's.

mod huffman;
mod table;
#[cfg(test)]
pub(super) mod tests;

use h2::Reason;

use self::table::{Entry, Name, Table};

/// The state of the header blocks of a connection.
#[derive(Debug, Default)]
pub(super) struct Fields {
    table: Table,
    /// Buffer for decoded strings.
    text: Vec<u8>,
}

/// The result of reading a header block.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum HeaderBlock {
    /// The block may be passed on unchanged. Errors of the fields as a whole are found elsewhere.
    Fine,
    /// The request is malformed (RFC 9113 section 8.1.1). If `h2` cannot parse the block, a
    /// replacement that it can parse.
    Malformed(Option<Vec<u8>>),
}

/// Maximum buffer kept for the next string, in bytes.
const KEPT_TEXT: usize = 1024;

impl Fields {
    /// Number of fields in the table of this connection.
    #[cfg(feature = "testing")]
    pub(super) fn numbered(&self) -> usize {
        self.table.count()
    }

    /// Reads a whole header block.
    ///
    /// # Errors
    ///
    /// Fails if the block is invalid HPACK, or if `h2` could not keep its table in step: the
    /// connection must end for this reason.
    pub(super) fn read(&mut self, block: &[u8], is_trailers: bool) -> Result<HeaderBlock, Reason> {
        let mut reading = Reading {
            block,
            at: 0,
            is_trailers,
            is_malformed: false,
            replaced: Vec::new(),
        };
        reading.all(self)?;
        // A long string must not hold memory for the life of the connection.
        if self.text.capacity() > KEPT_TEXT {
            self.text = Vec::new();
        }
        let replaced = reading.replaced;
        Ok(match reading.is_malformed {
            false => HeaderBlock::Fine,
            true => HeaderBlock::Malformed((!replaced.is_empty()).then_some(replaced)),
        })
    }
}

/// The state of reading a header block.
struct Reading<'a> {
    block: &'a [u8],
    at: usize,
    is_trailers: bool,
    is_malformed: bool,
    /// The block so far with harmless fields in place of invalid ones; empty if there were none.
    replaced: Vec<u8>,
}

/// The first byte of a literal that is added to the table.
const WITH_INDEX: u8 = 0x40;

impl Reading<'_> {
    fn all(&mut self, fields: &mut Fields) -> Result<(), Reason> {
        let mut has_fields = false;
        while let Some(&first) = self.block.get(self.at) {
            let begin = self.at;
            match first {
                0x80.. => {
                    let entry = self.entry(7, &fields.table)?;
                    self.note(entry);
                    self.keep(begin);
                }
                0x20..0x40 => {
                    // Size updates are allowed only before the fields (RFC 7541 section 4.2).
                    let most = self.integer(5)?;
                    let resized = fields.table.resize(most);
                    resized.filter(|()| !has_fields).ok_or(UNREADABLE)?;
                    self.keep(begin);
                    continue;
                }
                _ => self.literal(first, fields)?,
            }
            has_fields = true;
        }
        Ok(())
    }

    fn note(&mut self, entry: Entry) {
        let is_misplaced = self.is_trailers && entry.name != Name::Regular;
        self.is_malformed |= entry.is_bad || is_misplaced;
    }

    /// Copies the last representation, if the block is being replaced.
    fn keep(&mut self, begin: usize) {
        // Empty while the block can be passed on unchanged.
        if !self.replaced.is_empty() {
            self.replaced.extend_from_slice(&self.block[begin..self.at]);
        }
    }

    fn literal(&mut self, first: u8, fields: &mut Fields) -> Result<(), Reason> {
        let begin = self.at;
        let prefix = if first < WITH_INDEX { 4 } else { 6 };
        let is_named = first & ((1 << prefix) - 1) == 0;
        let mut entry = match is_named {
            true => {
                self.at += 1;
                named(self.string(&mut fields.text)?)?
            }
            false => Entry {
                is_bad: false,
                ..self.entry(prefix, &fields.table)?
            },
        };
        entry.is_bad |= entry.has_bad_name;
        let value_begin = self.at;
        let value = self.string(&mut fields.text)?;
        entry.value_length = value.len();
        let value_fits = match entry.name {
            Name::Regular => is_value(value),
            Name::Method => is_token(value),
            Name::Status => false,
            Name::Path if value.contains(&b'#') => {
                // The `http` crate would silently drop the fragment.
                entry.is_bad = true;
                str::from_utf8(value).is_ok()
            }
            Name::Authority | Name::Path | Name::Protocol | Name::Scheme => {
                str::from_utf8(value).is_ok()
            }
        };
        if value_fits && !(is_named && entry.has_bad_name) {
            self.keep(begin);
        } else {
            if self.replaced.is_empty() {
                self.replaced.extend_from_slice(&self.block[..begin]);
            }
            entry.is_bad = true;
            if entry.name == Name::Regular && !(is_named && entry.has_bad_name) {
                self.replaced
                    .extend_from_slice(&self.block[begin..value_begin]);
            } else {
                // `h2` does not accept a pseudo-header field with this value.
                entry.name = Name::Regular;
                entry.has_bad_name = true;
                let kind = first & if prefix == 6 { 0xc0 } else { 0xf0 };
                self.replaced.push(kind);
                push_harmless(entry.name_length, &mut self.replaced);
            }
            push_harmless(entry.value_length, &mut self.replaced);
        }
        self.note(entry);
        // Only literals with incremental indexing enter the table.
        if prefix == 6 {
            fields.table.add(entry);
        }
        Ok(())
    }

    fn entry(&mut self, prefix: u32, table: &Table) -> Result<Entry, Reason> {
        let index = self.integer(prefix)?;
        table.get(index).ok_or(UNREADABLE)
    }

    /// Reads an integer (RFC 7541 section 5.1) of up to 28 bits beyond the prefix.
    fn integer(&mut self, prefix: u32) -> Result<usize, Reason> {
        let most = (1 << prefix) - 1;
        let mut number = usize::from(self.byte()?) & most;
        if number < most {
            return Ok(number);
        }
        // Further bytes would encode a number beyond every limit.
        for shift in [0, 7, 14, 21] {
            let byte = usize::from(self.byte()?);
            number += (byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(UNREADABLE)
    }

    /// Reads a string (RFC 7541 section 5.2).
    fn string<'a>(&'a mut self, text: &'a mut Vec<u8>) -> Result<&'a [u8], Reason> {
        // The high bit marks Huffman code (RFC 7541 section 5.2).
        let is_coded = self.block.get(self.at).is_some_and(|&first| first >= 0x80);
        let length = self.integer(7)?;
        let begin = self.at;
        let end = begin.saturating_add(length);
        let bytes = self.block.get(begin..end).ok_or(UNREADABLE)?;
        self.at = end;
        if !is_coded {
            return Ok(bytes);
        }
        text.clear();
        huffman::decode(bytes, text).ok_or(UNREADABLE)?;
        Ok(text)
    }

    fn byte(&mut self) -> Result<u8, Reason> {
        let byte = self.block.get(self.at).copied().ok_or(UNREADABLE)?;
        self.at += 1;
        Ok(byte)
    }
}

/// The error for invalid HPACK (RFC 9113 section 4.3).
const UNREADABLE: Reason = Reason::COMPRESSION_ERROR;

/// A field with this name, without a value yet.
fn named(name: &[u8]) -> Result<Entry, Reason> {
    let kind = match name {
        // There is no harmless name of the same length.
        b"" => return Err(Reason::PROTOCOL_ERROR),
        b":authority" => Name::Authority,
        b":method" => Name::Method,
        b":path" => Name::Path,
        b":protocol" => Name::Protocol,
        b":scheme" => Name::Scheme,
        b":status" => Name::Status,
        _ => Name::Regular,
    };
    Ok(Entry {
        name: kind,
        name_length: name.len(),
        value_length: 0,
        has_bad_name: kind == Name::Regular && !is_name(name),
        is_bad: false,
    })
}

/// Returns true for a token without upper case (RFC 9113 section 8.2.1).
fn is_name(name: &[u8]) -> bool {
    is_token(name) && !name.iter().any(u8::is_ascii_uppercase)
}

/// Returns true for a token (RFC 9110 section 5.6.2).
fn is_token(bytes: &[u8]) -> bool {
    let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    !bytes.is_empty() && bytes.iter().all(is_token)
}

/// Returns true for a value that `http` accepts: all that RFC 9113 section 8.2.1 allows, and outer
/// white space.
fn is_value(value: &[u8]) -> bool {
    let is_control = |byte: &u8| (*byte < b' ' && *byte != b'\t') || *byte == 0x7f;
    !value.iter().any(is_control)
}

/// Appends a string of this length that is valid as name and as value.
fn push_harmless(length: usize, block: &mut Vec<u8>) {
    match length {
        0..0x7f => block.push(length as u8),
        _ => {
            // RFC 7541 section 5.1.
            block.push(0x7f);
            let mut rest = length - 0x7f;
            while rest >= 0x80 {
                block.push((rest & 0x7f) as u8 | 0x80);
                rest >>= 7;
            }
            block.push(rest as u8);
        }
    }
    block.resize(block.len() + length, b'x');
}
