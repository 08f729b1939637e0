"""Application types, their manifests, applications and services."""

import xml.etree.ElementTree as ElementTree

from azure.servicefabric import models

from conformance.checks import expect, expect_equal, expect_fields, the_one
from . import checks

LABELS = "http://schemas.microsoft.com/2015/03/fabact-no-schema"


def local(element):
    """The name of an element without its namespace."""
    return element.tag.split("}")[-1]


@checks("application types: every version, in pages and by name")
def types(cluster):
    together = [(each.name, each.version) for each in cluster.get_application_type_info_list().items]
    expect_equal(together, [("MeterType", "3.1"), ("ShopType", "1.0.0"), ("ShopType", "2.0.0")], "types")
    paged, pages = cluster.pages("get_application_type_info_list", max_results=1)
    expect_equal([(each.name, each.version) for each in paged], together, "types in pages")
    expect_equal(pages, 3, "pages")
    named = cluster.get_application_type_info_list_by_name("ShopType").items
    expect_equal([each.version for each in named], ["1.0.0", "2.0.0"], "versions of ShopType")
    one = cluster.get_application_type_info_list_by_name("ShopType", application_type_version="2.0.0").items
    expect_equal([each.version for each in one], ["2.0.0"], "one version of ShopType")
    expect_equal(cluster.get_application_type_info_list_by_name("NoType").items, [], "an unknown type")


@checks("application types: default parameters, unless they are excluded")
def default_parameters(cluster):
    shop = cluster.get_application_type_info_list_by_name("ShopType", application_type_version="1.0.0").items[0]
    expect_fields(
        shop, {"status": "Available", "application_type_definition_kind": "ServiceFabricApplicationPackage"}, "ShopType"
    )
    parameters = {each.key: each.value for each in shop.default_parameter_list}
    expect_equal(parameters, {"Host": "shop.invalid", "Policy": "RoundRobin"}, "default parameters")
    without = cluster.get_application_type_info_list(exclude_application_parameters=True).items
    for each in without:
        expect(not each.default_parameter_list, f"{each.name} has parameters although they are excluded")


@checks("service types: kinds and extensions")
def service_types(cluster):
    found = {
        each.service_type_description.service_type_name: each
        for each in cluster.get_service_type_info_list("ShopType", "1.0.0")
    }
    expect_equal(sorted(found), ["CartType", "WebType"], "service types")
    web, cart = found["WebType"], found["CartType"]
    expect_equal(web.service_manifest_name, "WebPkg", "manifest of WebType")
    expect(web.service_manifest_version, "WebPkg has no version")
    expect(isinstance(web.service_type_description, models.StatelessServiceTypeDescription), "WebType is not stateless")
    expect_equal(web.service_type_description.is_stateful, False, "WebType is stateful")
    expect(isinstance(cart.service_type_description, models.StatefulServiceTypeDescription), "CartType is not stateful")
    expect_equal(cart.service_type_description.has_persisted_state, True, "CartType keeps its state")
    extension = the_one(
        web.service_type_description.extensions, "YARP-preview", lambda each: each.key == "YARP-preview"
    )
    labels = ElementTree.fromstring(extension.value)
    expect_equal(labels.tag, f"{{{LABELS}}}Labels", "root of the extension")
    texts = {label.get("Key"): label.text for label in labels}
    expect_equal(texts["YARP.Enable"], "true", "label")
    expect_equal(texts["YARP.Routes.r1.Path"], "/{**catch-all}", "label")
    expect_equal(cart.service_type_description.extensions or [], [], "extensions of CartType")


@checks("service type: by name as in the list, nothing for an unknown name, unknown versions are not found")
def service_type(cluster):
    web = cluster.get_service_type_info_by_name("ShopType", "1.0.0", "WebType")
    listed = the_one(
        cluster.get_service_type_info_list("ShopType", "1.0.0"),
        "WebType",
        lambda each: each.service_type_description.service_type_name == "WebType",
    )
    expect_equal(web.serialize(), listed.serialize(), "WebType")
    expect_equal(cluster.get_service_type_info_by_name("ShopType", "1.0.0", "NoType"), None, "an unknown service type")
    code = "FABRIC_E_APPLICATION_TYPE_NOT_FOUND"
    cluster.refused(code, 404, "get_service_type_info_list", "ShopType", "9.9.9")
    cluster.refused(code, 404, "get_service_type_info_list", "NoType", "1.0.0")


@checks("service manifest: XML with the types and extensions that the queries tell of")
def service_manifest(cluster):
    root = ElementTree.fromstring(cluster.get_service_manifest("ShopType", "1.0.0", "WebPkg").manifest)
    expect_equal((local(root), root.get("Name")), ("ServiceManifest", "WebPkg"), "root element")
    types = [each for each in root.iter() if each.get("ServiceTypeName") == "WebType"]
    expect_equal([local(each) for each in types], ["StatelessServiceType"], "elements of WebType")
    labels = [each for each in types[0].iter() if local(each) == "Label"]
    expect("YARP.Enable" in {each.get("Key") for each in labels}, "the labels are missing")
    code = "FABRIC_E_SERVICE_MANIFEST_NOT_FOUND"
    cluster.refused(code, 404, "get_service_manifest", "ShopType", "1.0.0", "NoPkg")


@checks("application manifest: XML with the parameters and packages")
def application_manifest(cluster):
    root = ElementTree.fromstring(cluster.get_application_manifest("ShopType", "1.0.0").manifest)
    expect_equal((local(root), root.get("ApplicationTypeName")), ("ApplicationManifest", "ShopType"), "root element")
    parameters = {each.get("Name"): each.get("DefaultValue") for each in root.iter() if local(each) == "Parameter"}
    expect_equal(parameters.get("Host"), "shop.invalid", "default of Host")
    packages = {each.get("ServiceManifestName") for each in root.iter() if local(each) == "ServiceManifestRef"}
    expect_equal(packages, {"WebPkg", "CartPkg"}, "packages")
    cluster.refused("FABRIC_E_APPLICATION_TYPE_NOT_FOUND", 404, "get_application_manifest", "NoType", "1.0.0")


@checks("applications: all of them, in pages of every size, with names that must be escaped")
def applications(cluster):
    together = [each.name for each in cluster.get_application_info_list().items]
    expect_equal(together, ["fabric:/Big Shop", "fabric:/Meters/North", "fabric:/Shop"], "names")
    for size, count in ((1, 3), (2, 2), (3, 1), (100, 1)):
        paged, pages = cluster.pages("get_application_info_list", max_results=size)
        expect_equal([each.name for each in paged], together, f"names in pages of {size}")
        expect(count <= pages <= count + 1, f"{pages} pages of {size}")
    of_type = cluster.get_application_info_list(application_type_name="MeterType").items
    expect_equal([each.name for each in of_type], ["fabric:/Meters/North"], "applications of MeterType")


@checks("application: parameters that were given, ids with tildes, nothing for an unknown id")
def application(cluster):
    shop = cluster.get_application_info("Shop")
    expect_fields(
        shop,
        {
            "id": "Shop",
            "name": "fabric:/Shop",
            "type_name": "ShopType",
            "type_version": "1.0.0",
            "status": "Ready",
            "health_state": "Ok",
            "application_definition_kind": "ServiceFabricApplicationDescription",
        },
        "fabric:/Shop",
    )
    expect_equal({each.key: each.value for each in shop.parameters}, {"Host": "shop.example"}, "parameters")
    without = cluster.get_application_info("Shop", exclude_application_parameters=True)
    expect(not without.parameters, "parameters although they are excluded")
    north = cluster.get_application_info("Meters~North")
    expect_fields(north, {"id": "Meters~North", "name": "fabric:/Meters/North"}, "an application of two segments")
    listed = the_one(cluster.get_application_info_list().items, "big", lambda each: each.name == "fabric:/Big Shop")
    expect_equal(cluster.get_application_info("Big%20Shop").serialize(), listed.serialize(), "fabric:/Big Shop")
    expect_equal(cluster.get_application_info(listed.id).name, listed.name, "by the id that the list says")
    expect_equal(cluster.get_application_info("Nowhere"), None, "an application that is not there")
    cluster.refused("FABRIC_E_HEALTH_ENTITY_NOT_FOUND", 404, "get_application_health", "Nowhere")


@checks("services: by application and by type, in pages")
def services(cluster):
    items = cluster.get_service_info_list("Shop").items
    names = [each.name for each in items]
    expect_equal(
        names, ["fabric:/Shop/Admin/Web", "fabric:/Shop/Cart", "fabric:/Shop/Regions", "fabric:/Shop/Web"], "names"
    )
    expect_equal([each.id for each in items], ["Shop~Admin~Web", "Shop~Cart", "Shop~Regions", "Shop~Web"], "ids")
    web = cluster.get_service_info_list("Shop", service_type_name="WebType").items
    expect_equal([each.name for each in web], ["fabric:/Shop/Admin/Web", "fabric:/Shop/Web"], "services of WebType")
    paged, token, pages = [], None, 0
    while pages < 10:
        more = {"ContinuationToken": token} if token else {}
        query = {"api-version": "6.4", "MaxResults": 1, **more}
        page = cluster.ask("/Applications/Shop/$/GetServices", "PagedServiceInfoList", query)
        expect(len(page.items) <= 1, f"{len(page.items)} on a page of 1")
        paged += [each.name for each in page.items]
        pages, token = pages + 1, page.continuation_token
        if not token:
            break
    expect_equal(paged, names, "names in pages")
    cluster.refused("FABRIC_E_APPLICATION_NOT_FOUND", 404, "get_service_info_list", "Nowhere")


@checks("service: kinds, by id as in the list, nothing for an unknown id")
def service(cluster):
    for listed in cluster.get_service_info_list("Shop").items:
        found = cluster.get_service_info("Shop", listed.id)
        expect_equal(found.serialize(), listed.serialize(), listed.name)
        expect_fields(found, {"service_status": "Active", "health_state": "Ok", "is_service_group": False}, listed.name)
    web = cluster.get_service_info("Shop", "Shop~Web")
    expect(isinstance(web, models.StatelessServiceInfo), f"{type(web).__name__} for a stateless service")
    expect_fields(web, {"type_name": "WebType", "manifest_version": "1.0.0"}, "fabric:/Shop/Web")
    cart = cluster.get_service_info("Shop", "Shop~Cart")
    expect(isinstance(cart, models.StatefulServiceInfo), f"{type(cart).__name__} for a stateful service")
    expect_equal(cart.has_persisted_state, True, "persisted state")
    expect_equal(cluster.get_service_info("Shop", "Shop~Nothing"), None, "a service that is not there")
    name = cluster.get_application_name_info("Shop~Admin~Web")
    expect_fields(name, {"id": "Shop", "name": "fabric:/Shop"}, "application of a service")
    cluster.refused("FABRIC_E_SERVICE_DOES_NOT_EXIST", 404, "get_application_name_info", "Shop~Nothing")


@checks("service description: both kinds and all three ways of partitioning")
def description(cluster):
    web = cluster.get_service_description("Shop~Web")
    expect(isinstance(web, models.StatelessServiceDescription), f"{type(web).__name__} for a stateless service")
    expect_fields(
        web,
        {
            "application_name": "fabric:/Shop",
            "service_name": "fabric:/Shop/Web",
            "service_type_name": "WebType",
            "instance_count": 3,
        },
        "fabric:/Shop/Web",
    )
    expect(isinstance(web.partition_description, models.SingletonPartitionSchemeDescription), "Web is partitioned")
    cart = cluster.get_service_description("Shop~Cart")
    expect(isinstance(cart, models.StatefulServiceDescription), f"{type(cart).__name__} for a stateful service")
    expect_fields(cart, {"target_replica_set_size": 3, "min_replica_set_size": 2, "has_persisted_state": True}, "Cart")
    scheme = cart.partition_description
    expect(isinstance(scheme, models.UniformInt64RangePartitionSchemeDescription), "Cart has no ranges")
    expect_fields(scheme, {"count": 4, "low_key": "-9223372036854775808", "high_key": "9223372036854775807"}, "ranges")
    regions = cluster.get_service_description("Shop~Regions").partition_description
    expect(isinstance(regions, models.NamedPartitionSchemeDescription), "Regions has no names")
    expect_fields(regions, {"count": 2, "names": ["eu", "us"]}, "names")
    cluster.refused("FABRIC_E_SERVICE_DOES_NOT_EXIST", 404, "get_service_description", "Shop~Nothing")
