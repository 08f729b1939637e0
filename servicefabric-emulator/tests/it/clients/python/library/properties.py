"""Names and their properties."""

from azure.servicefabric import models

from conformance.checks import expect, expect_equal, expect_fields
from . import checks

NAME = "Shop~Web"

VALUES = {
    "text": (models.StringPropertyValue, "grüße & <more>"),
    "whole": (models.Int64PropertyValue, "9007199254740993"),
    "real": (models.DoublePropertyValue, 0.1),
    "guid": (models.GuidPropertyValue, "8e9f1a52-3c4b-4d5e-9f60-718293a4b5c6"),
    "bytes": (models.BinaryPropertyValue, [0, 127, 128, 255]),
}


def put(cluster, prop, value, **more):
    """Writes one property."""
    cluster.put_property(NAME, models.PropertyDescription(property_name=prop, value=value, **more))


def text(value):
    """A value that is a text."""
    return models.StringPropertyValue(data=value)


@checks("properties: a value of every kind is read as it was written")
def every_kind(cluster):
    for prop, (kind, data) in VALUES.items():
        put(cluster, prop, kind(data=data), custom_type_id=f"type of {prop}")
    for prop, (kind, data) in VALUES.items():
        found = cluster.get_property_info(NAME, prop)
        expect_equal(found.name, prop, "name")
        expect(isinstance(found.value, kind), f"{prop} comes as {type(found.value).__name__}")
        expect_equal(found.value.data, data, prop)
        expect_fields(
            found.metadata,
            {"type_id": found.value.kind, "custom_type_id": f"type of {prop}", "parent": "fabric:/Shop/Web"},
            prop,
        )
        expect(found.metadata.size_in_bytes > 0, f"{prop} has no size")
        expect(found.metadata.last_modified_utc_timestamp is not None, f"{prop} has no time")
    sizes = {prop: cluster.get_property_info(NAME, prop).metadata.size_in_bytes for prop in VALUES}
    expect_equal((sizes["bytes"], sizes["whole"], sizes["real"], sizes["guid"]), (4, 8, 8, 16), "sizes")


@checks("properties: the list, with and without values")
def listed(cluster):
    names, values = set(), {}
    for including in (False, True):
        token = None
        while True:
            page = cluster.get_property_info_list(NAME, include_values=including, continuation_token=token)
            expect(page.is_consistent in (True, False), "the list does not say whether it is consistent")
            for each in page.properties:
                if including:
                    values[each.name] = each.value.data
                else:
                    names.add(each.name)
                    expect_equal(each.value, None, f"value of {each.name} although it was not asked for")
            token = page.continuation_token
            if not token:
                break
    expect(set(VALUES) <= names, f"{set(VALUES) - names} are missing")
    expect_equal({prop: values[prop] for prop in VALUES}, {prop: data for prop, (_, data) in VALUES.items()}, "values")
    expect_equal(set(values), names, "names with values")


@checks("properties: a newer value has a newer sequence number")
def sequence(cluster):
    put(cluster, "counted", text("one"))
    first = int(cluster.get_property_info(NAME, "counted").metadata.sequence_number)
    put(cluster, "counted", text("two"))
    second = cluster.get_property_info(NAME, "counted")
    expect(int(second.metadata.sequence_number) > first, "the sequence number does not grow")
    expect_equal(second.value.data, "two", "value")


@checks("properties: deleted ones and unknown names are not found")
def missing(cluster):
    put(cluster, "brief", text("gone soon"))
    cluster.delete_property(NAME, "brief")
    code = "FABRIC_E_PROPERTY_DOES_NOT_EXIST"
    cluster.refused(code, 404, "get_property_info", NAME, "brief")
    cluster.refused(code, 404, "delete_property", NAME, "brief")
    code = "FABRIC_E_NAME_DOES_NOT_EXIST"
    cluster.refused(code, 404, "get_property_info", "Shop~Nothing", "brief")
    cluster.refused(code, 404, "get_property_info_list", "Shop~Nothing")
    value = models.PropertyDescription(property_name="brief", value=text("lost"))
    cluster.refused(code, 404, "put_property", "Shop~Nothing", value)


@checks("batch: every operation takes effect, reads come by their place")
def batch(cluster):
    put(cluster, "old", text("old"))
    put(cluster, "checked", text("checked"))
    number = cluster.get_property_info(NAME, "checked").metadata.sequence_number
    done = cluster.submit_property_batch(
        NAME,
        operations=[
            models.CheckExistsPropertyBatchOperation(property_name="fresh", exists=False),
            models.CheckExistsPropertyBatchOperation(property_name="old", exists=True),
            models.CheckSequencePropertyBatchOperation(property_name="checked", sequence_number=number),
            models.CheckValuePropertyBatchOperation(property_name="checked", value=text("checked")),
            models.PutPropertyBatchOperation(property_name="fresh", value=text("new"), custom_type_id="batched"),
            models.DeletePropertyBatchOperation(property_name="old"),
            models.GetPropertyBatchOperation(property_name="fresh", include_value=True),
            models.GetPropertyBatchOperation(property_name="checked", include_value=False),
        ],
    )
    expect(isinstance(done, models.SuccessfulPropertyBatchInfo), f"{type(done).__name__}")
    expect_equal(sorted(done.properties), ["6", "7"], "places of the reads")
    expect_fields(done.properties["6"], {"name": "fresh"}, "first read")
    expect_equal(done.properties["6"].value.data, "new", "first read")
    expect_equal(done.properties["7"].value, None, "second read, without its value")
    expect_equal(cluster.get_property_info(NAME, "fresh").metadata.custom_type_id, "batched", "custom type")
    cluster.refused("FABRIC_E_PROPERTY_DOES_NOT_EXIST", 404, "get_property_info", NAME, "old")


@checks("batch: one failing check undoes it, and is named")
def failed_batch(cluster):
    put(cluster, "kept", text("as it was"))
    number = cluster.get_property_info(NAME, "kept").metadata.sequence_number
    wrong = [
        models.CheckExistsPropertyBatchOperation(property_name="kept", exists=False),
        models.CheckExistsPropertyBatchOperation(property_name="never", exists=True),
        models.CheckSequencePropertyBatchOperation(property_name="kept", sequence_number=str(int(number) + 1)),
        models.CheckValuePropertyBatchOperation(property_name="kept", value=text("something else")),
        models.CheckValuePropertyBatchOperation(property_name="kept", value=models.Int64PropertyValue(data="1")),
        models.DeletePropertyBatchOperation(property_name="never"),
        models.GetPropertyBatchOperation(property_name="never", include_value=True),
    ]
    for operation in wrong:
        what = f"{operation.kind} of {operation.property_name}"
        put_first = models.PutPropertyBatchOperation(property_name="kept", value=text("changed"))
        if operation.property_name == "kept":
            put_first = models.PutPropertyBatchOperation(property_name="other", value=text("changed"))
        failed = cluster.submit_property_batch(NAME, operations=[put_first, operation])
        expect(isinstance(failed, models.FailedPropertyBatchInfo), f"{what}: {type(failed).__name__}")
        expect_equal(failed.operation_index, 1, f"{what}: place of the failure")
        expect(failed.error_message, f"{what}: no message")
        expect_equal(cluster.get_property_info(NAME, "kept").value.data, "as it was", what)
        cluster.refused("FABRIC_E_PROPERTY_DOES_NOT_EXIST", 404, "get_property_info", NAME, "other")


@checks("names: made, listed below their parents, removed when nothing is left of them")
def names(cluster):
    cluster.create_name("fabric:/Notes/2026/November")
    cluster.get_name_exists_info("Notes~2026~November")
    cluster.get_name_exists_info("Notes~2026")
    cluster.refused("FABRIC_E_NAME_ALREADY_EXISTS", 409, "create_name", "fabric:/Notes/2026/November")
    below = cluster.get_sub_name_info_list("Notes")
    expect_equal(below.sub_names, ["fabric:/Notes/2026"], "names below Notes")
    deep = cluster.get_sub_name_info_list("Notes", recursive=True)
    expect_equal(sorted(deep.sub_names), ["fabric:/Notes/2026", "fabric:/Notes/2026/November"], "all names below Notes")
    cluster.refused("FABRIC_E_NAME_NOT_EMPTY", 409, "delete_name", "Notes~2026")
    value = models.PropertyDescription(property_name="weather", value=text("rain"))
    cluster.put_property("Notes~2026~November", value)
    cluster.delete_property("Notes~2026~November", "weather")
    for name in ("Notes~2026~November", "Notes~2026", "Notes"):
        cluster.delete_name(name)
    cluster.refused("FABRIC_E_NAME_DOES_NOT_EXIST", 404, "get_sub_name_info_list", "Notes")
    cluster.refused("FABRIC_E_NAME_DOES_NOT_EXIST", 404, "delete_name", "Notes")
