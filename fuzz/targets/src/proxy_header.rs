//! Headers of the PROXY protocol.

use proxy_runtime::server::fuzz_proxy_header;

use crate::input::MAX_BYTES;

/// Fuzzes the beginning of a connection from a load balancer.
///
/// * A header ends where it ends: what is behind it makes no difference, and less is none.
/// * It is bounded.
pub fn proxy_header(data: &[u8]) {
    let data = &data[..data.len().min(MAX_BYTES)];
    let Some((client, length)) = fuzz_proxy_header(data) else {
        return;
    };
    assert!(length <= 16 + 4096, "{length}");
    let header = &data[..length];
    for behind in [&b""[..], b"\r\n", b"GET / HTTP/1.1\r\n\r\n", b"\0"] {
        let bytes = [header, behind].concat();
        assert_eq!(
            fuzz_proxy_header(&bytes),
            Some((client, length)),
            "what is behind"
        );
    }
    assert_eq!(
        fuzz_proxy_header(&header[..length - 1]),
        None,
        "a part of it"
    );
}
