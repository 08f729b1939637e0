//! Conversion of a head that was written for one destination into one for another. The client's own text may no
//! longer be in it.

use http::HeaderValue;
use proxy_model::compiled::Destination;

use super::downstream::Headed;
use crate::connection::ConnectionInfo;
use crate::head::HeaderMutations;
use crate::http1::{HeadLimits, HeadTable, RawRequest, RequestView, Status, parse_request};
use crate::transform::{CompiledTransforms, HOST_LINE, Host, HostHeaderRule};

/// A head as it was sent to a destination.
pub(crate) struct SentHead {
    text: Box<[u8]>,
    request: RawRequest,
    table: HeadTable,
    connection: ConnectionInfo,
}

impl SentHead {
    /// Reads the head of a client's request, which came over `connection`.
    #[cold]
    pub(crate) fn read(text: &[u8], connection: ConnectionInfo) -> Option<Self> {
        // The proxy wrote this head itself, so the limits for clients do not apply.
        let limits = HeadLimits::default()
            .with_bytes(text.len())
            .with_request_line(text.len())
            .with_fields(usize::MAX);
        let mut table = HeadTable::new();
        match parse_request(text, &limits, &mut table) {
            Ok(Status::Complete(request)) => Some(Self {
                text: text.into(),
                request,
                table,
                connection,
            }),
            _ => None,
        }
    }
}

impl Headed for SentHead {
    type Head<'h>
        = RequestView<'h>
    where
        Self: 'h;

    fn head(&self) -> RequestView<'_> {
        RequestView::of_connection(&self.text, &self.request, &self.table, &self.connection)
    }
}

/// True if the `Host` of one request names the destination. `has_authority`: the client named an
/// authority.
#[inline]
pub(crate) fn is_of_destination(
    host: Host<'_>,
    edits: Option<&HeaderMutations>,
    has_authority: bool,
) -> bool {
    match host {
        Host::Named(_) => false,
        Host::Restored => true,
        Host::Original if has_authority => false,
        Host::Original | Host::Destination => edits.and_then(HeaderMutations::host).is_none(),
    }
}

/// True if the `Host` of a written head names its destination, unless it is
/// [marked](crate::transform::mark_host).
pub(crate) fn names_destination(
    plan: &CompiledTransforms,
    edits: Option<&HeaderMutations>,
    has_authority: bool,
) -> bool {
    match &plan.host {
        // A computed value may be missing, and then the destination's takes its place.
        HostHeaderRule::Computed(_) => true,
        rule => is_of_destination(rule.resolve(&[]), edits, has_authority),
    }
}

/// The `Host` that names a destination.
#[inline]
pub(crate) fn host_of(destination: &Destination) -> &HeaderValue {
    let own = destination.host();
    own.unwrap_or_else(|| destination.address().authority())
}

/// Changes the parts of a head that depend on the destination: `Host`, if it names the destination, and the base
/// path of its address. A path that became empty was written as `/`, and keeps that slash.
#[cold]
pub(crate) fn readdress(head: &mut Vec<u8>, from: &Destination, to: &Destination, names_it: bool) {
    let find = |text: &[u8], what: &[u8]| text.windows(what.len()).position(|there| there == what);
    let Some(line) = find(head, b"\r\n") else {
        return;
    };
    // `Host` is the first field of a written head. It changes before the target, whose place stays the same then.
    if names_it && head[line..].starts_with(HOST_LINE) {
        let begin = line + HOST_LINE.len();
        let length = find(&head[begin..], b"\r\n").unwrap_or(0);
        let host = host_of(to).as_bytes().iter().copied();
        head.splice(begin..begin + length, host);
    }
    let (before, after) = (from.address().base_path(), to.address().base_path());
    if before == after {
        return;
    }
    let target = find(head, b" ").map_or(0, |space| space + 1);
    if head[target..].starts_with(before.as_bytes()) {
        // `OPTIONS *`, as below any path.
        let slash = match head[target] {
            b'*' => "/",
            _ => "",
        };
        head.splice(
            target..target + before.len(),
            after.bytes().chain(slash.bytes()),
        );
    }
}

#[cfg(test)]
mod tests {
    use proxy_model::RequestHead;

    use super::*;
    use crate::fixtures::snapshot;
    use crate::server::engine::PreparedHead;

    #[test]
    fn it_is_the_head_that_would_have_been_written() {
        let addresses = [
            r#""Address":"http://127.0.0.1:1/""#,
            r#""Address":"http://one.example/""#,
            r#""Address":"http://one.example/base/""#,
            r#""Address":"http://two.example:8080/another/base/""#,
            r#""Address":"http://two.example/base/","Host":"own.example""#,
        ];
        let destinations = addresses
            .iter()
            .enumerate()
            .map(|(number, address)| format!(r#""d{number}":{{{address}}}"#))
            .collect::<Vec<_>>()
            .join(",");
        for transforms in [
            "",
            r#"{"RequestHeaderOriginalHost":"true"}"#,
            r#"{"RequestHeader":"Host","Set":"fixed.example"}"#,
            r#"{"PathRemovePrefix":"/a"},{"RequestHeader":"X-Long","Set":"x"}"#,
            r#"{"PathSet":"/base/base"}"#,
            r#"{"RequestHeaderRouteValue":"Host","Set":"rest"}"#,
            r#"{"RequestHeaderRouteValue":"Host","Set":"none"}"#,
            r#"{"RequestHeaderOriginalHost":"true"},{"RequestHeaderRouteValue":"Host","Set":"none"}"#,
            r#"{"RequestHeader":"Host","Set":"fixed.example"},{"RequestHeaderRouteValue":"Host","Set":"rest"},{"PathSet":"/b"}"#,
        ] {
            let snapshot = snapshot(&format!(
                r#"{{"Routes":{{"r":{{"ClusterId":"c","Match":{{"Path":"/{{**rest}}"}},"Transforms":[{transforms}]}}}},
                "Clusters":{{"c":{{"Destinations":{{{destinations}}}}}}}}}"#
            ));
            let route = &snapshot.routes()[0];
            let plan = CompiledTransforms::of(route, None);
            let destinations = snapshot.clusters()[0].destinations();
            for start in [
                "GET /a/b?q=/base/ HTTP/1.1",
                "GET /a HTTP/1.1",
                "GET / HTTP/1.1",
                // As the first of the destinations is called.
                "GET /one.example HTTP/1.1",
                "GET /%0A HTTP/1.1",
            ] {
                let buffer = format!("{start}\r\nHost: client.example\r\nX-Long: a\r\n\r\n");
                let buffer = buffer.as_bytes();
                let mut table = HeadTable::new();
                let parsed = parse_request(buffer, &HeadLimits::default(), &mut table);
                let Ok(Status::Complete(request)) = parsed else {
                    panic!("{parsed:?}");
                };
                let view = RequestView::new(buffer, &request, &table, false);
                let write = |destination| {
                    let outgoing = PreparedHead {
                        buffer,
                        request: &request,
                        table: &table,
                        view: &view,
                        route,
                        plan: &plan,
                        edits: None,
                        destination,
                        remote: None,
                        connection: &ConnectionInfo::default(),
                    };
                    let mut head = Vec::new();
                    outgoing.write(&mut head).expect("it is valid");
                    head
                };
                for (from, to) in destinations
                    .iter()
                    .flat_map(|from| destinations.iter().map(move |to| (from, to)))
                {
                    let mut head = write(from);
                    let over_tls = ConnectionInfo {
                        tls: true,
                        ..ConnectionInfo::default()
                    };
                    let read = SentHead::read(&head, over_tls).expect("it is a head");
                    assert!(read.head().is_https());
                    readdress(&mut head, from, to, names_destination(&plan, None, true));
                    assert_eq!(
                        head.escape_ascii().to_string(),
                        write(to).escape_ascii().to_string(),
                        "{transforms} {start} from {} to {}",
                        from.address(),
                        to.address()
                    );
                }
            }
        }
    }
}
