//! Certificates that are known by name.

use discovery_servicefabric::client::ServerTrust;
use testkit::certs::{Alpn, CertificateAuthority, Leaf};

use super::{HOST, call, common_name_only, rejected, showing, thumbprint};

#[tokio::test]
async fn names_count_instead_of_hosts() {
    let (ours, other) = (
        CertificateAuthority::new("ours"),
        CertificateAuthority::new("other"),
    );
    let pem = ours.certificate_pem();
    let trust = |names: &[&str]| {
        let trust = ServerTrust::names(names.iter().copied()).unwrap();
        trust.authorities(pem.as_bytes()).unwrap()
    };
    let config = |authority: &CertificateAuthority, names: &[&str]| {
        authority.issue(names).server_config(Alpn::Both)
    };
    call(
        config(&ours, &["a.example", "b.example"]),
        trust(&["x", "B.Example"]),
    )
    .await
    .unwrap();
    call(config(&ours, &["*.a.example"]), trust(&["b.a.example"]))
        .await
        .unwrap();
    rejected(
        call(config(&ours, &["a.example"]), trust(&["b.example"])).await,
        "a.example, which is not in the list",
    );
    rejected(
        call(config(&ours, &[HOST]), trust(&["b.example"])).await,
        "not in the list",
    );
    rejected(
        call(config(&other, &["b.example"]), trust(&["b.example"])).await,
        "UnknownIssuer",
    );
    let expired = ours.issue_leaf(&Leaf::server(&["b.example"]).expired());
    rejected(
        call(expired.server_config(Alpn::Both), trust(&["b.example"])).await,
        "expired",
    );
    let client = ours.issue_leaf(&Leaf::client("b.example"));
    rejected(
        call(client.server_config(Alpn::Both), trust(&["b.example"])).await,
        "extended key usage",
    );
}

#[tokio::test]
async fn names_with_pinned_issuers_need_no_authority() {
    let (ours, other) = (
        CertificateAuthority::new("ours"),
        CertificateAuthority::new("other"),
    );
    let pin = thumbprint(&ours.certificate());
    let trust = || {
        ServerTrust::names(["b.example"])
            .unwrap()
            .issued_by([&pin])
            .unwrap()
    };
    let good = ours.issue(&["b.example"]);
    let with = |issuer: &CertificateAuthority| {
        showing(vec![good.certificate(), issuer.certificate()], &good.key())
    };
    call(with(&ours), trust()).await.unwrap();
    rejected(call(with(&other), trust()).await, "UnknownIssuer");
    // The issuer is not sent along, so it is unknown, unless it was configured before, in either order.
    rejected(
        call(good.server_config(Alpn::Both), trust()).await,
        "UnknownIssuer",
    );
    let pem = ours.certificate_pem();
    let known = trust().authorities(pem.as_bytes()).unwrap();
    call(good.server_config(Alpn::Both), known).await.unwrap();
    let known = ServerTrust::names(["b.example"])
        .unwrap()
        .authorities(pem.as_bytes())
        .unwrap();
    call(
        good.server_config(Alpn::Both),
        known.issued_by([&pin]).unwrap(),
    )
    .await
    .unwrap();
    // Sent by a server whose certificate it has not signed.
    let forged = other.issue(&["b.example"]);
    let chain = vec![forged.certificate(), ours.certificate()];
    assert!(call(showing(chain, &forged.key()), trust()).await.is_err());
    // An authority that is known but not pinned does not count.
    let known = trust()
        .authorities(other.certificate_pem().as_bytes())
        .unwrap();
    rejected(
        call(forged.server_config(Alpn::Both), known).await,
        "UnknownIssuer",
    );
    let wrong_name = ours.issue(&["c.example"]);
    let chain = vec![wrong_name.certificate(), ours.certificate()];
    rejected(
        call(showing(chain, &wrong_name.key()), trust()).await,
        "c.example, which is not in the list",
    );
}

#[tokio::test]
async fn common_names_of_self_signed_certificates_count() {
    let (certificate, key) = common_name_only("cluster.contoso.example");
    let pin = thumbprint(&certificate);
    let named = |name: &str| ServerTrust::names([name]).unwrap();
    let config = || showing(vec![certificate.clone()], &key);
    call(
        config(),
        named("Cluster.Contoso.example").issued_by([&pin]).unwrap(),
    )
    .await
    .unwrap();
    rejected(
        call(config(), named("other").issued_by([&pin]).unwrap()).await,
        "the certificate is for cluster.contoso.example, which is not in the list",
    );
    rejected(
        call(
            config(),
            named("cluster.contoso.example")
                .issued_by(["11".repeat(20)])
                .unwrap(),
        )
        .await,
        "UnknownIssuer",
    );
    // The organization is not a name.
    rejected(
        call(config(), named("Contoso").issued_by([&pin]).unwrap()).await,
        "not in the list",
    );
}
