//! The field `Connection`: RFC 9110 section 7.6.1, RFC 9112 section 9.

use super::Version;
use super::table::HeadTable;
use crate::http1::Rejection;
use crate::http1::bytes::{TOKEN, all, trim};
use crate::http1::field::{ClassSet, FieldClass, classify, is};

/// The options in `Connection` that concern the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::http1) struct ConnectionOptions {
    pub(in crate::http1) close: bool,
    pub(in crate::http1) keep_alive: bool,
    pub(in crate::http1) upgrade: bool,
}

impl ConnectionOptions {
    /// Returns true if the sender keeps the connection open (RFC 9112 section 9.3).
    #[inline]
    pub(super) fn is_persistent(self, version: Version) -> bool {
        !self.close && (version == Version::Http11 || self.keep_alive)
    }
}

/// Maximum number of elements. Each element that is a field name is compared with every field.
const MOST_ELEMENTS: usize = 32;

/// Reads all `Connection` lines, and marks the fields that they name.
#[inline]
pub(super) fn read_connection(
    window: &[u8],
    table: &mut HeadTable,
) -> Result<ConnectionOptions, Rejection> {
    if !table.seen.contains(FieldClass::Connection) {
        return Ok(ConnectionOptions::default());
    }
    read_lines(window, table)
}

fn read_lines(window: &[u8], table: &mut HeadTable) -> Result<ConnectionOptions, Rejection> {
    let mut options = ConnectionOptions::default();
    let mut elements = 0;
    for index in 0..table.fields.len() {
        let field = table.fields[index];
        if field.class() != FieldClass::Connection {
            continue;
        }
        for element in field.value().get(window).split(|byte| *byte == b',') {
            elements += 1;
            if elements > MOST_ELEMENTS {
                return Err(Rejection::TooManyConnectionOptions);
            }
            let element = trim(element);
            match element.len() {
                // Empty elements must be ignored (RFC 9110 section 5.6.1.2).
                0 => {}
                5 if is(element, b"close") => options.close = true,
                7 if is(element, b"upgrade") => options.upgrade = true,
                10 if is(element, b"keep-alive") => options.keep_alive = true,
                _ if !all(element, TOKEN) => return Err(Rejection::ConnectionOption),
                _ => mark(window, table, element),
            }
        }
    }
    Ok(options)
}

/// Marks the fields of a name, unless they concern the content or belong to the proxy: a client
/// must not remove what earlier proxies have added.
fn mark(window: &[u8], table: &mut HeadTable, name: &[u8]) {
    let class = classify(name);
    // Fields with a meaning of their own keep it even if `Connection` names them.
    if !matches!(class, FieldClass::Other | FieldClass::Date) {
        return;
    }
    for field in &mut table.fields {
        if field.class() == class && field.name().get(window).eq_ignore_ascii_case(name) {
            field.set_class(FieldClass::NamedByConnection);
            if table.seen.contains(FieldClass::NamedByConnection) {
                table.repeated = table.repeated.with(FieldClass::NamedByConnection);
            }
            table.seen = table.seen.with(FieldClass::NamedByConnection);
        }
    }
}

/// Returns true if a comma-separated list has an element, over all lines of a class.
pub(super) fn has_element<const N: usize>(
    window: &[u8],
    table: &HeadTable,
    class: FieldClass,
    element: &[u8; N],
) -> bool {
    let lines = table.fields.iter().filter(|field| field.class() == class);
    lines
        .flat_map(|field| field.value().get(window).split(|byte| *byte == b','))
        .any(|other| is(trim(other), element))
}

/// Classes that need processing, besides `Host`.
pub(super) const NOTEWORTHY: ClassSet = ClassSet::EMPTY
    .with(FieldClass::Connection)
    .with(FieldClass::ContentLength)
    .with(FieldClass::TransferEncoding)
    .with(FieldClass::Te)
    .with(FieldClass::Upgrade)
    .with(FieldClass::Expect);
