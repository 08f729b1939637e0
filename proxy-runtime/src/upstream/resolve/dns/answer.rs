//! A server's answer about a name.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use hickory_net::proto::op::{Message, ResponseCode};
use hickory_net::proto::rr::{Name, RData, RecordType};

/// Names that a chain of aliases may have.
const LONGEST_CHAIN: usize = 16;

/// A negative answer without a SOA record says nothing of its time to live.
const UNSAID: Duration = Duration::from_secs(1);

/// The knowledge of one name.
#[derive(Debug)]
pub(super) enum Answer {
    /// It has these addresses for this time.
    Addresses(Vec<IpAddr>, Duration),
    /// It has these addresses of one family for this time, and nobody has said whether it has some of the other one.
    Part(Vec<IpAddr>, Duration),
    /// It has no such address for this time.
    None(&'static str, Duration),
    /// The server cannot say.
    Failed(io::Error),
    /// No server has answered.
    Silent,
}

impl Answer {
    /// The one that a server's `message` gives to a question for addresses of `name`.
    pub(super) fn read(message: &Message, name: &Name, kind: RecordType) -> Self {
        match message.response_code {
            ResponseCode::NoError => {}
            ResponseCode::NXDomain => {
                return Self::None("there is no such name", negative(message));
            }
            code => {
                let why = format!("the name server answered: {code}");
                return Self::Failed(io::Error::other(why));
            }
        }
        let mut names = vec![name];
        let mut ttl = u32::MAX;
        // An alias may stand behind what it leads to.
        for _ in 0..LONGEST_CHAIN {
            let before = names.len();
            for record in &message.answers {
                if let RData::CNAME(target) = &record.data
                    && names.contains(&&record.name)
                    && !names.contains(&&target.0)
                    && names.len() < LONGEST_CHAIN
                {
                    ttl = ttl.min(record.ttl);
                    names.push(&target.0);
                }
            }
            if names.len() == before {
                break;
            }
        }
        let mut addresses = Vec::new();
        for record in &message.answers {
            let address = match (&record.data, kind) {
                (RData::A(a), RecordType::A) => IpAddr::V4(a.0),
                (RData::AAAA(a), RecordType::AAAA) => IpAddr::V6(a.0),
                _ => continue,
            };
            if names.contains(&&record.name) {
                ttl = ttl.min(record.ttl);
                addresses.push(address);
            }
        }
        match addresses.is_empty() {
            true => Self::None("the name has no address", negative(message)),
            false => Self::Addresses(addresses, Duration::from_secs(ttl.into())),
        }
    }

    /// The answer for both families together.
    pub(super) fn joined(self, other: Self) -> Self {
        use Answer::{Addresses, Failed, None as Nothing, Part, Silent};
        match (self, other) {
            (Addresses(mut all, ttl), Addresses(more, other)) => {
                all.extend(more);
                Addresses(all, ttl.min(other))
            }
            // A family that failed is asked for again with the other one.
            (Addresses(found, ttl), Failed(_) | Silent)
            | (Failed(_) | Silent, Addresses(found, ttl)) => Part(found, ttl),
            (it @ (Addresses(..) | Part(..)), _) | (_, it @ (Addresses(..) | Part(..))) => it,
            (it @ Failed(_), _) | (_, it @ Failed(_)) => it,
            (Silent, _) | (_, Silent) => Silent,
            // "No such name" says more than "no address of this family".
            (Nothing(why, ttl), Nothing(_, other)) => Nothing(why, ttl.min(other)),
        }
    }
}

/// RFC 2308 section 5.
fn negative(message: &Message) -> Duration {
    let ttl = message
        .authorities
        .iter()
        .find_map(|record| match &record.data {
            RData::SOA(soa) => Some(record.ttl.min(soa.minimum)),
            _ => None,
        });
    ttl.map_or(UNSAID, |ttl| Duration::from_secs(ttl.into()))
}
