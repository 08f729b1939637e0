use http::HeaderValue;

use super::*;

const NOBODY: Peer = Peer {
    certificate: false,
    role: None,
};

fn with(authorization: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(AUTHORIZATION, HeaderValue::from_str(authorization).unwrap());
    headers
}

fn tokens() -> Security {
    Security {
        certificates: false,
        tokens: vec![
            ("admin".to_owned(), Role::Admin),
            ("reader".to_owned(), Role::Reader),
        ],
        metadata: AadMetadata {
            authority: "https://login.example/tenant".to_owned(),
            cluster: "cluster-app".to_owned(),
            ..AadMetadata::default()
        },
    }
}

#[test]
fn without_security_everybody_may_do_everything() {
    let open = Security::default();
    assert!(open.admit(&HeaderMap::new(), NOBODY, false, false).is_ok());
}

#[test]
fn tokens_let_in_those_who_have_them() {
    let security = tokens();
    for (authorization, reads, status) in [
        ("Bearer admin", false, None),
        ("Bearer admin", true, None),
        ("Bearer reader", true, None),
        ("Bearer reader", false, Some(403)),
        ("Bearer other", true, Some(401)),
        ("bearer admin", true, Some(401)),
        ("Basic admin", true, Some(401)),
    ] {
        let outcome = security.admit(&with(authorization), NOBODY, reads, false);
        let rejected = outcome
            .err()
            .map(|rejection| rejection.answer().0.status.as_u16());
        assert_eq!(rejected, status, "{authorization} {reads}");
    }
}

#[test]
fn who_has_no_token_is_told_where_to_get_one() {
    let rejection = tokens()
        .admit(&HeaderMap::new(), NOBODY, true, false)
        .unwrap_err();
    let (answer, _) = rejection.answer();
    assert_eq!(answer.status, 401);
    assert_eq!(
        answer.headers["www-authenticate"],
        "Bearer authorization_uri=\"https://login.example/tenant\", resource_id=\"cluster-app\""
    );
    assert!(answer.body.is_empty());
    assert!(
        tokens()
            .admit(&HeaderMap::new(), NOBODY, true, true)
            .is_ok()
    );
}

#[test]
fn certificates_count_by_who_vouches_for_them() {
    let security = Security {
        certificates: true,
        ..Security::default()
    };
    let peer = |certificate, role| Peer { certificate, role };
    for (peer, reads, reason) in [
        (peer(false, None), true, Some("Client certificate required")),
        (
            peer(true, None),
            true,
            Some("Client certificate not trusted"),
        ),
        (peer(true, Some(Role::Reader)), true, None),
        (
            peer(true, Some(Role::Reader)),
            false,
            Some("Read-only client"),
        ),
        (peer(true, Some(Role::Admin)), false, None),
    ] {
        let outcome = security.admit(&HeaderMap::new(), peer, reads, false);
        let rejected = outcome.err().and_then(|rejection| rejection.answer().1);
        assert_eq!(rejected, reason, "{peer:?} {reads}");
    }
}

#[cfg(feature = "tls")]
#[test]
fn keys_that_are_none_are_rejected() {
    let error = TlsOptions::new("", "").build().map(|_| ()).unwrap_err();
    assert!(matches!(error, TlsError::Pem { .. }), "{error:?}");
    let authority = testkit::certs::CertificateAuthority::new("test");
    let identity = authority.issue(&["localhost"]);
    let error = TlsOptions::new(identity.certificate_pem(), "no key")
        .build()
        .map(|_| ())
        .unwrap_err();
    assert!(
        matches!(
            error,
            TlsError::Pem {
                what: "server key",
                ..
            }
        ),
        "{error:?}"
    );
    let other = authority.issue(&["localhost"]);
    let error = TlsOptions::new(identity.certificate_pem(), other.key_pem())
        .build()
        .map(|_| ())
        .unwrap_err();
    assert!(matches!(error, TlsError::Unusable { .. }), "{error:?}");
}
