//! Published addresses of replicas.

use std::error::Error;

use discovery_servicefabric::labels::{EndpointError, Endpoints, Schemes};
use http::Uri;

use crate::input::text;

/// Maximum length of a message about an address.
const MAX_MESSAGE: usize = 2_000;

/// Fuzzes the address of a replica: endpoints in JSON, or a URL.
///
/// * A chosen endpoint is a URL with an allowed scheme and a host, to which a path can be appended.
///   Chosen again from its own text, it stays the same.
/// * An endpoint is chosen exactly if a usable one exists: the requested one, or the first usable
///   one.
/// * A message about an address is short, on one line, and does not repeat it.
pub fn servicefabric_endpoints(data: &[u8]) {
    let address = text(data);
    let endpoints = match Endpoints::parse(&address) {
        Ok(endpoints) => endpoints,
        Err(error) => return check_error(&error),
    };
    let names: Vec<&str> = endpoints.names().collect();
    let in_order = |pair: &[&str]| pair[0].encode_utf16().lt(pair[1].encode_utf16());
    assert!(names.windows(2).all(in_order), "{names:?}");
    for schemes in [Schemes::Secure, Schemes::All] {
        let usable: Vec<&str> = endpoints.usable_names(schemes).collect();
        match endpoints.choose(None, schemes) {
            Ok(chosen) => {
                assert_eq!(usable.first(), Some(&chosen.listener));
                check_url(&chosen.url, schemes);
            }
            Err(error) => {
                assert!(usable.is_empty(), "{error}, but {usable:?} can be used");
                check_error(&error);
            }
        }
        for name in &names {
            match endpoints.choose(Some(name), schemes) {
                Ok(chosen) => {
                    assert!(usable.contains(name) && chosen.listener == *name);
                    check_url(&chosen.url, schemes);
                }
                Err(error) => {
                    assert!(!usable.contains(name), "{error}");
                    check_error(&error);
                }
            }
        }
        // Names are compared exactly, so only an address with this name matches.
        match endpoints.choose(Some("nobody"), schemes) {
            Ok(chosen) => assert_eq!(chosen.listener, "nobody"),
            Err(error) => check_error(&error),
        }
    }
}

fn check_url(url: &str, schemes: Schemes) {
    let uri: Uri = url.parse().unwrap_or_else(|error| panic!("{url}: {error}"));
    let allowed = match uri.scheme_str() {
        Some("https") => true,
        Some("http") => schemes == Schemes::All,
        _ => false,
    };
    assert!(allowed, "{url}");
    assert!(uri.host().is_some_and(|host| !host.is_empty()), "{url}");
    assert!(uri.port_u16() != Some(0), "{url}");
    assert!(
        !url.contains(['@', '?', '#']) || uri.path().contains('@'),
        "{url}"
    );
    assert!(
        uri.path().starts_with('/') && uri.query().is_none(),
        "{url}"
    );
    let again = Endpoints::parse(url).expect("a URL is an address");
    let again = again.choose(None, schemes).expect("it could be used");
    assert_eq!(again.url, url);
}

fn check_error(error: &EndpointError) {
    assert!(error.source().is_none());
    let suggestion = error.suggestion().unwrap_or_default();
    for said in [error.to_string(), suggestion] {
        assert!(said.len() <= MAX_MESSAGE, "{said}");
        assert!(!said.contains(char::is_control), "{said:?}");
    }
    assert!(!error.to_string().is_empty());
}
