//! Fields of messages (<https://protobuf.dev/programming-guides/encoding/>).

/// The target of a message: a buffer or a counter.
pub(super) trait Sink {
    fn put(&mut self, bytes: &[u8]);
}

impl Sink for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// Number of bytes.
#[derive(Debug, Default)]
pub(super) struct Count(pub(super) usize);

impl Sink for Count {
    fn put(&mut self, bytes: &[u8]) {
        self.0 += bytes.len();
    }
}

pub(super) fn text(sink: &mut impl Sink, number: u32, value: &str) {
    field(sink, number, value.as_bytes());
}

/// Writes a field that occurs once, unless it is empty.
pub(super) fn singular(sink: &mut impl Sink, number: u32, value: &[u8]) {
    if !value.is_empty() {
        field(sink, number, value);
    }
}

fn field(sink: &mut impl Sink, number: u32, value: &[u8]) {
    head(sink, number, value.len());
    sink.put(value);
}

/// Writes the key and length of a field that is delimited by its length.
pub(super) fn head(sink: &mut impl Sink, number: u32, length: usize) {
    const LENGTH_DELIMITED: u32 = 2;
    varint(sink, u64::from(number << 3 | LENGTH_DELIMITED));
    varint(sink, length as u64);
}

fn varint(sink: &mut impl Sink, mut value: u64) {
    while value >= 0x80 {
        sink.put(&[(value & 0x7f) as u8 | 0x80]);
        value >>= 7;
    }
    sink.put(&[value as u8]);
}
