//! The section `Server`.

use serde_json::{Value, json};

use super::{networks, object, switch, text, texts, word};

/// Returns the schema of the section that `settings` reads.
pub(super) fn section() -> Value {
    object(
        "The HTTP server.",
        &json!({
            "Workers": whole("Threads that serve. Unset: one per core.", 1, 1024),
            "ReadinessDelay": text("The time for which new requests are served after `/readyz` has reported the stop, so that load balancers can notice. Unset: 0s."),
            "DrainTimeout": text("Time limit of requests in flight when the program stops. Unset: 30s."),
            "Zone": text("The zone of this proxy. Destinations of the same zone are preferred."),
            "LoopGuard": switch("Whether a request in a loop gets 508. Each forwarded request gets a member in `CDN-Loop` for that.", true),
            "NegotiateErrors": switch("Whether errors of the program have the form that a client prefers by its `Accept`: JSON (`application/problem+json`), HTML or plain text.", false),
            "ErrorPages": error_pages(),
            "CauseHeader": object(
                "Gives clients the cause of an error response in the header `X-Proxy-Cause`. Unset: no client gets it.",
                &json!({ "Networks": networks("The networks of the clients.") }),
            ),
            "Handover": text("The socket file for hot restart: over it, a second instance takes over the listening sockets, so that no client is rejected. Linux only. Unset: off."),
            "AffinityKeys": texts("Keys of 32 bytes in base64 that encrypt the values of the affinity policies `Cookie` and `CustomHeader`: the first one encrypts, all decrypt. Unset: a random one."),
            "AffinityKeysFile": text("The file with these keys, one on each line; a changed file is read while the program runs. Unset: none."),
            "Resolver": resolver(),
            "DnsDestinationResolver": destination_resolver(),
            "Limits": limits(),
        }),
    )
}

fn error_pages() -> Value {
    let page = object(
        "The body of some errors. Either `File` or `Body` is required.",
        &json!({
            "Statuses": texts("The statuses: one from 400 to 599, or `4xx` or `5xx` for all that have no page of their own."),
            "File": text("The file with the body, at most 65,536 bytes. A changed file is read while the program runs."),
            "Body": text("The body, at most 65,536 bytes."),
            "ContentType": text("The media type. Unset: that of `.html`, `.json` and `.txt` files, and `text/plain; charset=utf-8` for `Body`."),
        }),
    );
    json!({
        "description": "Bodies of the program's own errors and those of policies, by any name. Unset: the status in words.",
        "type": "object",
        "additionalProperties": page,
    })
}

fn destination_resolver() -> Value {
    object(
        "Makes one destination of each address of a destination's name, as YARP's `AddDnsDestinationResolver`, and of each server of a service such as `_http._tcp.orders.example` (SRV records). Unset: a name is one destination.",
        &json!({
            "Enabled": switch("Whether names become several destinations.", true),
            "RefreshPeriod": text("How often names are looked up, unless their addresses are valid for a shorter time. Unset: 5m."),
            "AddressFamily": word("The address family that is used.", &["Unspecified", "InterNetwork", "InterNetworkV6"]),
        }),
    )
}

fn resolver() -> Value {
    object(
        "The resolver of destination names.",
        &json!({
            "Kind": word("`Dns`: the table of hosts and the servers of DNS, without a thread for each look-up and with times to live; `System`: the operating system; `Auto`: `Dns` where servers are named, and on Linux where `/etc/nsswitch.conf` names no other source.", &["Auto", "System", "Dns"]),
            "Servers": texts("Addresses of name servers, up to 8, with or without a port. Unset: those of `/etc/resolv.conf`."),
        }),
    )
}

fn limits() -> Value {
    let data_rate = object(
        "The minimum data rate of a client while the proxy waits for it.",
        &json!({
            "Enabled": switch("Whether clients must keep a minimum data rate.", true),
            "BytesPerSecond": whole("Bytes per second, on average over the window. Unset: 240.", 1, u32::MAX),
            "Window": text("The window over which the rate is measured. Unset: 30s."),
        }),
    );
    object(
        "Limits for clients.",
        &json!({
            "HeaderBytes": whole("Size of a request's head. Unset: 32768.", 1024, 1 << 20),
            "HeaderFields": whole("Header fields of a request. Unset: 100.", 1, 10_000),
            "RequestLine": whole("Size of a request's method and target. Unset: 8192.", 256, 1 << 20),
            "HeaderTimeout": text("From the first byte to the end of the head. Unset: 10s."),
            "KeepAlive": text("Maximum idle time of a connection, or `Infinite`. Unset: 75s."),
            "ClosingGrace": text("The time for which an idle connection is still read before it is closed. Unset: 500ms."),
            "RequestsPerConnection": at_least("Requests on one connection. Unset: 10000.", 1),
            "ConnectionAge": text("Age of a connection, give or take a tenth, or `Infinite`. Unset: 1h."),
            "Connections": whole("Connections at a time. Unset: 40 % of the open files.", 1, 10_000_000),
            "ConnectionsPerAddress": whole("Connections at a time of one client address, or of one network of 64 bits of IPv6. Unset: unlimited.", 1, 10_000_000),
            "MemoryBytes": at_least("Maximum memory that clients can make the program hold, in bytes, such as unread responses. Beyond it, the connections that hold the most are reset. Unset: a quarter of the memory of the machine or container.", 16 << 20),
            "BodyBytes": at_least("Size of a request's body, unless the route sets it. Unset: unlimited.", 0),
            "DataRate": data_rate,
            "BufferBytes": whole("Bytes of a response that are collected for one write unless it is forwarded unchanged, and bytes buffered for an HTTP/2 stream. Unset: 65536.", 8192, 64 << 20),
            "TlsHandshakeTimeout": text("From the connection to the end of the TLS handshake. Unset: 10s."),
            "Http2": http2(),
        }),
    )
}

fn http2() -> Value {
    const LARGEST_WINDOW: u32 = (1 << 31) - 1;
    let count = |description| whole(description, 1, u32::MAX);
    object(
        "Limits of HTTP/2.",
        &json!({
            "ConcurrentStreams": count("Streams of a connection that are open at a time. Unset: 100."),
            "StreamWindow": whole("Bytes that a client may send on a stream before the destination reads them. Unset: 262144.", 1024, LARGEST_WINDOW),
            "ConnectionWindow": whole("Bytes that a client may send on all streams of a connection before destinations read them. Unset: 1048576.", 65_535, LARGEST_WINDOW),
            "PendingResets": count("Streams that a client may reset before the server has accepted them. Unset: 20."),
            "ResetsPerSecond": count("Streams that a client may reset within a second while they are served. Unset: 100."),
            "ResetsPerConnection": count("Streams that a client may reset during the life of a connection. Unset: 500."),
            "PingsPerSecond": count("PING frames within a second. Unset: 100."),
            "SettingsPerSecond": count("SETTINGS frames within a second. Unset: 50."),
            "OtherFramesPerSecond": count("PRIORITY frames, acknowledgements of PING and frames of unknown types within a second. Unset: 1000."),
            "ErrorResets": count("Streams that a client may have the server reset by its errors. Unset: 100."),
        }),
    )
}

fn whole(description: &str, least: u32, most: u32) -> Value {
    json!({ "type": "integer", "minimum": least, "maximum": most, "description": description })
}

fn at_least(description: &str, least: u32) -> Value {
    json!({ "type": "integer", "minimum": least, "description": description })
}
