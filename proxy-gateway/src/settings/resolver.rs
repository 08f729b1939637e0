//! `Server.Resolver`: the resolver of the names of destinations.

use std::net::{IpAddr, SocketAddr};

use proxy_model::Problem;
use proxy_model::json::{Node, ObjectReader};
use proxy_runtime::upstream::DnsOptions;

/// The default port of DNS servers.
const PORT: u16 = 53;

/// The maximum number of servers. More would only slow down failing look-ups.
const MOST_SERVERS: usize = 8;

/// The file that lists a machine's sources of names, on Linux (nsswitch.conf(5)).
const SOURCES: &str = "/etc/nsswitch.conf";

/// The resolver of names.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Resolver {
    kind: Kind,
    /// The servers. Empty: those of the machine.
    servers: Vec<SocketAddr>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    /// DNS, unless the machine has other sources of names.
    #[default]
    Auto,
    /// The resolver of the operating system.
    System,
    /// The table of hosts and DNS servers.
    Dns,
}

const KINDS: [(&str, Kind); 3] = [
    ("Auto", Kind::Auto),
    ("System", Kind::System),
    ("Dns", Kind::Dns),
];

pub(super) fn read(resolver: &mut ObjectReader<'_, '_>) -> Resolver {
    let kind = resolver.choice("Kind", &KINDS).unwrap_or_default();
    let servers = resolver.list("Servers", |node, pointer, problems| {
        let read = match node {
            Node::Text(text) => server(text),
            _ => None,
        };
        if read.is_none() {
            let message = "a name server is not an IP address, with or without a port";
            let problem = Problem::error(pointer, "invalid_name_server", message);
            problems.push(
                problem.with_suggestion("write `10.0.0.2`, `127.0.0.1:8600` or `[2001:db8::1]:53`"),
            );
        }
        read
    });
    let servers = servers.unwrap_or_default();
    let wrong = match (kind, servers.len()) {
        (Kind::System, 1..) => Some((
            "the operating system's resolver does not use `Servers`",
            "write `\"Kind\": \"Dns\"`, or leave the servers to `/etc/resolv.conf`",
        )),
        (_, MOST_SERVERS..) if servers.len() > MOST_SERVERS => {
            Some(("there are more than 8 name servers", "leave some out"))
        }
        _ => None,
    };
    if let Some((message, suggestion)) = wrong {
        let pointer = resolver.pointer_to("Servers");
        let problem = Problem::error(pointer, "invalid_name_servers", message);
        resolver
            .problems()
            .push(problem.with_suggestion(suggestion));
    }
    Resolver { kind, servers }
}

fn server(text: &str) -> Option<SocketAddr> {
    let without_port = |ip: IpAddr| SocketAddr::new(ip, PORT);
    text.parse()
        .ok()
        .or_else(|| text.parse().ok().map(without_port))
}

impl Resolver {
    /// Returns the options for DNS. `None`: the resolver of the operating system is used.
    pub(crate) fn dns(&self) -> Option<DnsOptions> {
        let asks_dns = match self.kind {
            Kind::System => false,
            Kind::Dns => true,
            // Configured servers are meant to be used.
            Kind::Auto => !self.servers.is_empty() || suits_this_machine(),
        };
        asks_dns.then(|| {
            let mut options = DnsOptions::default();
            options.servers = self.servers.clone();
            options
        })
    }
}

/// Returns true if the operating system would use no other source. Only known on Linux.
fn suits_this_machine() -> bool {
    // Without the file the C library uses the same two sources (musl has no others).
    let sources = || std::fs::read_to_string(SOURCES);
    cfg!(target_os = "linux") && sources().map_or(true, |text| has_no_other_source(&text))
}

/// Returns true if names of hosts come from the table of hosts and DNS alone, according to the text of an
/// `nsswitch.conf`.
fn has_no_other_source(text: &str) -> bool {
    let lines = text.lines().filter_map(|line| line.split('#').next());
    let mut databases = lines.filter_map(|line| line.split_once(':'));
    let Some((_, sources)) = databases.find(|(database, _)| database.trim() == "hosts") else {
        return true;
    };
    // Brackets after a source contain an action. Any action makes the file a special case.
    sources.split_whitespace().eq(["files", "dns"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dns_is_asked_where_the_system_would_ask_nobody_else() {
        for (text, expected) in [
            ("", true),
            ("passwd: files\nhosts:\tfiles dns\n", true),
            ("hosts: files dns # and no more", true),
            ("# hosts: nis\n", true),
            ("hosts: files mdns4_minimal [NOTFOUND=return] dns", false),
            (
                "hosts: files resolve [!UNAVAIL=return] dns myhostname",
                false,
            ),
            ("hosts: dns files", false),
            ("hosts: files", false),
        ] {
            assert_eq!(has_no_other_source(text), expected, "{text}");
        }
    }

    #[test]
    fn who_names_servers_has_them_asked() {
        let resolver = |kind, servers: &[&str]| Resolver {
            kind,
            servers: servers.iter().filter_map(|text| server(text)).collect(),
        };
        let asked = |kind, servers: &[&str]| resolver(kind, servers).dns().map(|dns| dns.servers);
        assert_eq!(asked(Kind::System, &[]), None);
        assert_eq!(asked(Kind::Dns, &[]), Some(Vec::new()));
        let servers = ["10.0.0.2", "127.0.0.1:8600", "::1", "[::1]:54"];
        let read = ["10.0.0.2:53", "127.0.0.1:8600", "[::1]:53", "[::1]:54"];
        let read = read.map(|text| text.parse().unwrap());
        assert_eq!(asked(Kind::Auto, &servers), Some(read.to_vec()));
        assert_eq!(server("ns.example"), None);
    }
}
