//! The resolver settings of the machine: `resolv.conf` (resolv.conf(5)).

use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV6};
use std::time::Duration;

use hickory_net::proto::rr::Name;
use resolv_conf::ScopedIp;

/// The port of name servers (RFC 1035 section 4.2).
const PORT: u16 = 53;

/// The limits of the C library.
const MOST_SERVERS: usize = 3;
const MOST_DOMAINS: usize = 6;
const LARGEST_NDOTS: usize = 15;
const LONGEST_TIMEOUT: u32 = 30;
const MOST_ATTEMPTS: u32 = 5;

/// The resolver settings.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Config {
    /// Never empty.
    pub(super) servers: Vec<SocketAddr>,
    pub(super) search: Vec<Name>,
    /// Number of dots from which a name is queried as absolute first.
    pub(super) ndots: usize,
    /// Time limit of one server.
    pub(super) timeout: Duration,
    /// Number of queries to each server.
    pub(super) attempts: usize,
    /// True if queries are distributed over the servers.
    pub(super) rotate: bool,
    pub(super) edns: bool,
    pub(super) tcp_only: bool,
    pub(super) ipv4_only: bool,
}

impl Config {
    /// Parses a `resolv.conf`; unknown parts are ignored, as in the C library. `servers` replace
    /// those of the text, unless empty.
    pub(super) fn read(text: &[u8], servers: &[SocketAddr]) -> Self {
        let (read, _) = resolv_conf::Config::parse_with_errors(text);
        let mut own: Vec<SocketAddr> = read
            .nameservers
            .iter()
            .take(MOST_SERVERS)
            .map(address)
            .collect();
        if !servers.is_empty() {
            own = servers.to_vec();
        } else if own.is_empty() {
            // As in the C library: without settings, the machine itself may have a name server.
            own.push((Ipv4Addr::LOCALHOST, PORT).into());
        }
        let search = read.get_last_search_or_domain();
        let search = search.filter_map(|domain| domain_name(domain));
        Self {
            servers: own,
            search: search.take(MOST_DOMAINS).collect(),
            ndots: usize::try_from(read.ndots).map_or(LARGEST_NDOTS, |it| it.min(LARGEST_NDOTS)),
            timeout: Duration::from_secs(read.timeout.clamp(1, LONGEST_TIMEOUT).into()),
            attempts: read.attempts.clamp(1, MOST_ATTEMPTS) as usize,
            rotate: read.rotate,
            edns: read.edns0,
            tcp_only: read.use_vc,
            ipv4_only: read.no_aaaa,
        }
    }

    /// The absolute names that `name` may stand for, in the order of queries. Empty if the name is
    /// invalid.
    pub(super) fn candidates(&self, name: &str) -> Vec<Name> {
        let Some(full) = domain_name(name) else {
            return Vec::new();
        };
        if name.ends_with('.') {
            return vec![full];
        }
        let searched = self.search.iter().filter_map(|domain| {
            let mut relative = full.clone();
            relative.set_fqdn(false);
            // With the domain, the name may be too long.
            relative.append_domain(domain).ok()
        });
        let dots = name.bytes().filter(|byte| *byte == b'.').count();
        let mut candidates: Vec<Name> = searched.collect();
        // A name with few dots is tried with the search domains first.
        match dots >= self.ndots {
            true => candidates.insert(0, full),
            false => candidates.push(full),
        }
        candidates
    }
}

/// Parses an absolute name. Host names are not checked further: some have underscores.
fn domain_name(text: &str) -> Option<Name> {
    let mut name = Name::from_ascii(text).ok()?;
    name.set_fqdn(true);
    Some(name)
}

fn address(server: &ScopedIp) -> SocketAddr {
    match server {
        ScopedIp::V6(ip, Some(zone)) => SocketAddrV6::new(*ip, PORT, 0, zone_index(zone)).into(),
        other => SocketAddr::new(IpAddr::from(other.clone()), PORT),
    }
}

/// The index of a zone, given as number or interface name. 0, which is any, if there is no such
/// interface.
fn zone_index(zone: &str) -> u32 {
    let number = zone.parse().ok();
    let of_interface = || {
        // A zone from the file must not lead out of the directory.
        let is_name = !zone.contains('/') && !zone.starts_with('.');
        let index = is_name.then(|| format!("/sys/class/net/{zone}/ifindex"))?;
        std::fs::read_to_string(index).ok()?.trim().parse().ok()
    };
    number.or_else(of_interface).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates(text: &str, name: &str) -> Vec<String> {
        let config = Config::read(text.as_bytes(), &[]);
        let candidates = config.candidates(name);
        candidates.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn names_are_searched_for_as_the_c_library_does() {
        let cluster = "nameserver 10.0.0.10\nsearch ns.svc.cluster.local svc.cluster.local\noptions ndots:5\n";
        assert_eq!(
            candidates(cluster, "db"),
            ["db.ns.svc.cluster.local.", "db.svc.cluster.local.", "db."]
        );
        assert_eq!(
            candidates(cluster, "a.b.c.d.e.f"),
            [
                "a.b.c.d.e.f.",
                "a.b.c.d.e.f.ns.svc.cluster.local.",
                "a.b.c.d.e.f.svc.cluster.local."
            ]
        );
        assert_eq!(candidates(cluster, "db.example."), ["db.example."]);
        assert_eq!(candidates("domain lan", "db"), ["db.lan.", "db."]);
        assert_eq!(
            candidates("search lan", "db.example"),
            ["db.example.", "db.example.lan."]
        );
        assert_eq!(candidates("", "db"), ["db."]);
        assert_eq!(candidates("search lan", "_a_b"), ["_a_b.lan.", "_a_b."]);
        assert_eq!(candidates("search lan", "a..b"), [""; 0]);
        assert_eq!(candidates("search lan", &"a".repeat(64)), [""; 0]);
    }

    #[test]
    fn what_is_not_understood_is_left_out() {
        let text = "# mine\nnameserver 10.0.0.1\nnameserver nonsense\nnameserver fe80::1%7\nfuture thing\n\
            nameserver 10.0.0.2\nnameserver 10.0.0.3\noptions rotate timeout:99 attempts:0 ndots:99 no-such use-vc edns0 no-aaaa\n\
            search -- a..b lan\n\u{fffd}\n";
        let read = Config::read(text.as_bytes(), &[]);
        let servers: Vec<_> = read.servers.iter().map(ToString::to_string).collect();
        assert_eq!(servers, ["10.0.0.1:53", "[fe80::1%7]:53", "10.0.0.2:53"]);
        assert!(read.rotate && read.tcp_only && read.edns && read.ipv4_only);
        assert_eq!((read.ndots, read.attempts), (15, 1));
        assert_eq!(read.timeout, Duration::from_secs(30));
        assert_eq!(read.search.last().unwrap().to_string(), "lan.");
    }

    #[test]
    fn servers_that_are_set_count_and_what_else_is_in_the_file_too() {
        let own: SocketAddr = "127.0.0.1:8600".parse().unwrap();
        let read = Config::read(b"nameserver 10.0.0.1\nsearch lan\n", &[own]);
        assert_eq!((read.servers, read.search.len()), (vec![own], 1));
        let read = Config::read(b"", &[]);
        assert_eq!(read.servers, ["127.0.0.1:53".parse().unwrap()]);
        assert_eq!(
            (read.ndots, read.attempts, read.timeout.as_secs()),
            (1, 2, 5)
        );
    }
}
