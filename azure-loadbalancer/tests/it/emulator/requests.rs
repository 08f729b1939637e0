//! The checks of every request, and the paging of lists.

use azure_loadbalancer::emulator::EmulatorOptions;
use serde_json::json;

use crate::emulator::world::*;

#[test]
fn requests_are_checked_before_anything_else() {
    let mut machine = world(at_once());
    let lbs = format!("{NETWORK}/loadBalancers");
    for (method, path, status, code) in [
        (
            "GET",
            format!("{lbs}?x=api-version"),
            400,
            "MissingApiVersionParameter",
        ),
        (
            "GET",
            format!("{lbs}?api-version=latest"),
            400,
            "InvalidApiVersionParameter",
        ),
        ("GET", format!("{lbs}/lb"), 404, "ResourceNotFound"),
        (
            "GET",
            lbs.replace("/rg/", "/other/"),
            404,
            "ResourceGroupNotFound",
        ),
        (
            "GET",
            format!("{NETWORK}/virtualNetworks/vnet/subnets/nope"),
            404,
            "NotFound",
        ),
        (
            "GET",
            format!("{NETWORK}/virtualNetworks/vnet/peerings"),
            404,
            "NotFound",
        ),
        ("POST", lbs.clone(), 405, "MethodNotAllowed"),
        ("GET", "/nothing".to_owned(), 404, "InvalidRequestUri"),
    ] {
        ask(&mut machine, method, &path, None).rejected(status, code);
    }
    let put = |body: &str| {
        let request = http::Request::put(format!("{lbs}/lb?api-version=2025-05-01"))
            .body(bytes::Bytes::copy_from_slice(body.as_bytes()));
        request.unwrap()
    };
    for body in ["", "[]", "{", "{\"properties\":1}"] {
        let answer = machine.answer(&put(body)).unwrap();
        assert_eq!(answer.status(), 400, "{body}");
    }
    ask(
        &mut machine,
        "GET",
        &format!("{lbs}?api-version=2020-01-01-preview"),
        None,
    )
    .expect(200);
}

#[test]
fn segments_are_found_in_any_case_and_shown_as_they_were_written() {
    let mut machine = world(at_once());
    ask(
        &mut machine,
        "PUT",
        &network("publicIPAddresses", "MyIP"),
        Some(public_ip("Standard")),
    )
    .expect(201);
    let path = network("publicIPAddresses", "MyIP")
        .to_uppercase()
        .replace("/SUBSCRIPTIONS/S/", "/Subscriptions/S/");
    let found = ask(&mut machine, "GET", &path, None).expect(200);
    assert_eq!(found.body["id"], network("publicIPAddresses", "MyIP"));
    assert_eq!(found.body["name"], "MyIP");
    let again = ask(
        &mut machine,
        "PUT",
        &network("publicipaddresses", "myip"),
        Some(public_ip("Standard")),
    )
    .expect(200);
    assert_eq!(again.body["name"], "MyIP");
}

#[test]
fn lists_come_in_pages() {
    let mut machine = world(at_once().page_size(2));
    for number in 0..5 {
        machine
            .put(
                &network("publicIPAddresses", &format!("a{number}")),
                public_ip("Basic"),
            )
            .unwrap();
    }
    let mut path = format!("{NETWORK}/publicIPAddresses");
    let mut sizes = Vec::new();
    let mut names = Vec::new();
    loop {
        let page = ask(&mut machine, "GET", &path, None).expect(200);
        let items = page.body["value"].as_array().unwrap().clone();
        sizes.push(items.len());
        names.extend(
            items
                .iter()
                .map(|item| item["name"].as_str().unwrap().to_owned()),
        );
        let Some(next) = page.body["nextLink"].as_str() else {
            break;
        };
        path = next.strip_prefix("http://arm.test").unwrap().to_owned();
    }
    assert_eq!(sizes, [2, 2, 1]);
    assert_eq!(names, ["a0", "a1", "a2", "a3", "a4"]);
    let all = ask(
        &mut machine,
        "GET",
        "/subscriptions/S/providers/Microsoft.Network/publicIPAddresses",
        None,
    )
    .expect(200);
    assert_eq!(all.body["value"].as_array().unwrap().len(), 2);
    ask(
        &mut machine,
        "GET",
        &format!("{NETWORK}/publicIPAddresses?$skiptoken=x"),
        None,
    )
    .rejected(400, "InvalidSkipToken");
}

#[test]
fn tags_are_merged_and_everything_else_is_replaced() {
    let mut machine = world(at_once());
    let path = network("publicIPAddresses", "a");
    let mut body = public_ip("Standard");
    body["tags"] = json!({ "a": "1" });
    body["properties"]["dnsSettings"] = json!({ "domainNameLabel": "front" });
    let created = ask(&mut machine, "PUT", &path, Some(body)).expect(201);
    assert_eq!(
        created.body["properties"]["dnsSettings"]["fqdn"],
        "front.westus.cloudapp.azure.com"
    );
    let patched = ask(
        &mut machine,
        "PATCH",
        &path,
        Some(json!({ "tags": { "b": "2" } })),
    )
    .expect(200);
    assert_eq!(patched.body["tags"], json!({ "a": "1", "b": "2" }));
    let address = patched.body["properties"]["ipAddress"].clone();
    let replaced = ask(&mut machine, "PUT", &path, Some(public_ip("Standard"))).expect(200);
    assert!(
        replaced.body["tags"].is_null() && replaced.body["properties"]["dnsSettings"].is_null()
    );
    assert_eq!(
        replaced.body["properties"]["ipAddress"], address,
        "an address stays"
    );
}

#[test]
fn who_has_no_token_is_not_let_in() {
    let mut machine = world(EmulatorOptions::default().token("good"));
    let path = format!("{NETWORK}/loadBalancers");
    ask(&mut machine, "GET", &path, None).rejected(401, "AuthenticationFailed");
    ask_with(
        &mut machine,
        "GET",
        &path,
        None,
        &[("authorization", "Bearer bad")],
    )
    .rejected(401, "AuthenticationFailed");
    ask_with(
        &mut machine,
        "GET",
        &path,
        None,
        &[("authorization", "Bearer good")],
    )
    .expect(200);
    let token = "/metadata/identity/oauth2/token?api-version=2018-02-01&resource=https://management.azure.com";
    assert_eq!(ask(&mut machine, "GET", token, None).status, 400);
    let given = ask_with(&mut machine, "GET", token, None, &[("metadata", "true")]).expect(200);
    assert_eq!(given.body["access_token"], "good");
}

#[test]
fn groups_are_made_and_shown() {
    let mut machine = world(at_once());
    let path = "/subscriptions/s/resourceGroups/rg2";
    ask(&mut machine, "GET", path, None).rejected(404, "ResourceGroupNotFound");
    ask(&mut machine, "PUT", path, Some(json!({}))).rejected(400, "LocationRequired");
    ask(
        &mut machine,
        "PUT",
        path,
        Some(json!({ "location": "westus" })),
    )
    .expect(201);
    ask(
        &mut machine,
        "PUT",
        path,
        Some(json!({ "location": "westus" })),
    )
    .expect(200);
    let groups = ask(&mut machine, "GET", "/subscriptions/s/resourceGroups", None).expect(200);
    assert_eq!(groups.body["value"].as_array().unwrap().len(), 2);
}

#[test]
fn answers_say_which_request_and_which_version() {
    use bytes::Bytes;
    use http::Request;

    let mut machine = world(at_once());
    let path = format!("{NETWORK}/publicIPAddresses/web?api-version=2025-05-01");
    let mut call = |method: &str, body: serde_json::Value| {
        let request = Request::builder().method(method).uri(&path);
        let request = request.body(Bytes::from(body.to_string())).unwrap();
        machine.answer(&request).unwrap()
    };
    let tags = |count: usize| {
        let tags = (0..count).map(|number| (format!("tag-{number}"), json!("x")));
        let tags: serde_json::Map<_, _> = tags.collect();
        json!({ "location": "westus", "tags": tags })
    };
    assert_eq!(call("PUT", tags(51)).status(), 400);
    let put = call("PUT", tags(50));
    assert_eq!(put.status(), 201);
    let get = call("GET", json!(null));
    let body: serde_json::Value = serde_json::from_slice(get.body()).unwrap();
    let header = |answer: &http::Response<Bytes>, name: &str| {
        answer
            .headers()
            .get(name)
            .map(|value| value.to_str().unwrap().to_owned())
    };
    assert_eq!(header(&get, "etag").as_deref(), body["etag"].as_str());
    assert_ne!(
        header(&get, "x-ms-request-id"),
        header(&put, "x-ms-request-id")
    );
    assert!(header(&get, "x-ms-ratelimit-remaining-subscription-reads").is_some());
    assert!(header(&put, "x-ms-ratelimit-remaining-subscription-writes").is_some());
}
