use super::Consul;

#[tokio::test]
async fn a_restart_forgets_everything() {
    let Some(consul) = Consul::find() else { return };
    let mut sas = consul.datacenter("sas").start().await;
    sas.call("PUT", "/v1/kv/a", "1").await.json();
    assert_eq!(sas.call("GET", "/v1/kv/a?raw", "").await.body, "1");
    sas.restart().await;
    assert_eq!(sas.call("GET", "/v1/kv/a?raw", "").await.status, 404);
    let nodes = sas.call("GET", "/v1/catalog/nodes", "").await.json();
    assert_eq!(nodes[0]["Node"], sas.node());
}
