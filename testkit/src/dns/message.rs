//! Messages of DNS (RFC 1035 section 4).

use std::net::IpAddr;

const A: u16 = 1;
const CNAME: u16 = 5;
const SOA: u16 = 6;
const AAAA: u16 = 28;

/// A pointer to the name of the question.
const QUESTION: [u8; 2] = [0xc0, 12];

const NAME_ERROR: u8 = 3;
const SERVER_FAILURE: u8 = 2;

/// A query for one name.
#[derive(Clone, Debug)]
pub(super) struct Question {
    id: [u8; 2],
    /// The name in lower case, without a final dot.
    pub(super) name: String,
    kind: u16,
    /// Name, type and class as received.
    bytes: Vec<u8>,
}

impl Question {
    /// `None` if the message is no query for one name.
    pub(super) fn read(message: &[u8]) -> Option<Self> {
        let id = *message.first_chunk::<2>()?;
        if message.get(4..6)? != [0, 1] {
            return None;
        }
        let mut labels = Vec::new();
        let mut at = 12;
        loop {
            let length = usize::from(*message.get(at)?);
            at += 1;
            if length == 0 {
                break;
            }
            let label = message.get(at..at + length)?;
            labels.push(String::from_utf8_lossy(label).to_ascii_lowercase());
            at += length;
        }
        let kind = u16::from_be_bytes(*message.get(at..)?.first_chunk::<2>()?);
        Some(Self {
            id,
            name: labels.join("."),
            kind,
            bytes: message.get(12..at + 4)?.to_vec(),
        })
    }

    pub(super) fn is_v6(&self) -> bool {
        self.kind == AAAA
    }

    /// The same query with another id.
    pub(super) fn with_another_id(&self) -> Self {
        let id = [self.id[0] ^ 1, self.id[1]];
        Self { id, ..self.clone() }
    }

    /// A query for another name with the same id.
    pub(super) fn with_another_name(&self) -> Self {
        let mut other = self.clone();
        if let Some(letter) = other.bytes.get_mut(1) {
            *letter = b'0';
        }
        other
    }

    pub(super) fn addresses(&self, addresses: &[IpAddr], ttl: u32) -> Vec<u8> {
        self.message(0, &self.records(&QUESTION, addresses, ttl), &[])
    }

    pub(super) fn alias(&self, name: &str, addresses: &[IpAddr], ttl: u32) -> Vec<u8> {
        let target = encoded(name);
        let mut records = vec![record(&QUESTION, CNAME, ttl, &target)];
        records.extend(self.records(&target, addresses, ttl));
        self.message(0, &records, &[])
    }

    pub(super) fn no_name(&self, ttl: u32) -> Vec<u8> {
        let mut data = vec![0, 0];
        for number in [1, 3600, 600, 86_400, ttl] {
            data.extend(number.to_be_bytes());
        }
        self.message(NAME_ERROR, &[], &[record(&[0], SOA, 86_400, &data)])
    }

    pub(super) fn fails(&self) -> Vec<u8> {
        self.message(SERVER_FAILURE, &[], &[])
    }

    pub(super) fn cut_off(&self) -> Vec<u8> {
        let mut message = self.message(0, &[], &[]);
        message[2] |= 2;
        message
    }

    /// An invalid message that begins like a response.
    pub(super) fn nonsense(&self) -> Vec<u8> {
        let mut message = self.message(0, &[], &[]);
        // Far more records than the message has.
        message[6..8].fill(0xff);
        message.extend([0xc0, 0xff, 0xff]);
        message
    }

    /// The records of the requested family.
    fn records(&self, owner: &[u8], addresses: &[IpAddr], ttl: u32) -> Vec<Vec<u8>> {
        let records = addresses.iter().filter_map(|address| match address {
            IpAddr::V4(v4) if self.kind == A => Some(record(owner, A, ttl, &v4.octets())),
            IpAddr::V6(v6) if self.kind == AAAA => Some(record(owner, AAAA, ttl, &v6.octets())),
            _ => None,
        });
        records.collect()
    }

    fn message(&self, code: u8, answers: &[Vec<u8>], authorities: &[Vec<u8>]) -> Vec<u8> {
        let count = |records: &[Vec<u8>]| u16::try_from(records.len()).unwrap_or(0).to_be_bytes();
        // A response to a recursive query, with recursion available.
        let flags = [0x81, 0x80 | code];
        let counts = [[0, 1], count(answers), count(authorities), [0, 0]];
        [
            &self.id[..],
            &flags,
            &counts.concat(),
            &self.bytes,
            &answers.concat(),
            &authorities.concat(),
        ]
        .concat()
    }
}

fn record(owner: &[u8], kind: u16, ttl: u32, data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(data.len()).unwrap_or(0);
    [
        owner,
        &kind.to_be_bytes(),
        &[0, 1],
        &ttl.to_be_bytes(),
        &length.to_be_bytes(),
        data,
    ]
    .concat()
}

fn encoded(name: &str) -> Vec<u8> {
    let labels = name.split('.').filter(|label| !label.is_empty());
    let mut bytes: Vec<u8> = labels
        .flat_map(|label| {
            let length = u8::try_from(label.len()).unwrap_or(63);
            std::iter::once(length).chain(label.bytes())
        })
        .collect();
    bytes.push(0);
    bytes
}
