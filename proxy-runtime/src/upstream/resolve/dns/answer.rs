//! The response of a name server.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use discovery_core::resolver::SrvRecord;
use hickory_net::proto::op::{Message, ResponseCode};
use hickory_net::proto::rr::{Name, RData, RecordType};

/// Maximum of names in a chain of aliases.
const LONGEST_CHAIN: usize = 16;

/// Time to live of a negative response without a SOA record.
const UNSAID: Duration = Duration::from_secs(1);

/// The result of a query for one name.
#[derive(Debug)]
pub(super) enum QueryResult {
    /// The addresses, valid for this time.
    Addresses(Vec<IpAddr>, Duration),
    /// The addresses of one family, valid for this time. The other family is unknown.
    Part(Vec<IpAddr>, Duration),
    /// The servers of a service, valid for this time.
    Servers(Vec<SrvRecord>, Duration),
    /// The name has no such address, valid for this time.
    None(&'static str, Duration),
    /// The server could not resolve the name.
    Failed(io::Error),
    /// No server has responded.
    Silent,
}

impl QueryResult {
    /// Reads the response `message` to a query for addresses of `name`.
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
        // An alias may follow the records of its target.
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
        if kind == RecordType::SRV {
            return Self::servers(message, &names, ttl);
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

    fn servers(message: &Message, names: &[&Name], mut ttl: u32) -> Self {
        let mut servers = Vec::new();
        for record in &message.answers {
            if let RData::SRV(server) = &record.data
                && names.contains(&&record.name)
            {
                ttl = ttl.min(record.ttl);
                let target = server.target.to_ascii();
                servers.push(SrvRecord {
                    priority: server.priority,
                    weight: server.weight,
                    target: target.trim_end_matches('.').to_owned(),
                    port: server.port,
                });
            }
        }
        match servers.is_empty() {
            true => Self::None("the name has no server", negative(message)),
            false => Self::Servers(servers, Duration::from_secs(ttl.into())),
        }
    }

    /// Combines the results of both families.
    pub(super) fn joined(self, other: Self) -> Self {
        use QueryResult::{Addresses, Failed, None as Nothing, Part, Servers, Silent};
        match (self, other) {
            // No question for addresses is answered so.
            (it @ Servers(..), _) | (_, it @ Servers(..)) => it,
            (Addresses(mut all, ttl), Addresses(more, other)) => {
                all.extend(more);
                Addresses(all, ttl.min(other))
            }
            // A family that failed is queried again together with the other one.
            (Addresses(found, ttl), Failed(_) | Silent)
            | (Failed(_) | Silent, Addresses(found, ttl)) => Part(found, ttl),
            (it @ (Addresses(..) | Part(..)), _) | (_, it @ (Addresses(..) | Part(..))) => it,
            (it @ Failed(_), _) | (_, it @ Failed(_)) => it,
            (Silent, _) | (_, Silent) => Silent,
            // The reason "no such name" is more precise than "no address of this family".
            (Nothing(why, ttl), Nothing(_, other)) => Nothing(why, ttl.min(other)),
        }
    }
}

/// The time to live of a negative response (RFC 2308 section 5).
fn negative(message: &Message) -> Duration {
    // RFC 2308 section 5.
    let ttl = message
        .authorities
        .iter()
        .find_map(|record| match &record.data {
            RData::SOA(soa) => Some(record.ttl.min(soa.minimum)),
            _ => None,
        });
    ttl.map_or(UNSAID, |ttl| Duration::from_secs(ttl.into()))
}
