"""`sfctl application upload` and `sfctl store`: a package from its files to its services."""

import os
import tempfile

from conformance.checks import expect, expect_equal, the_one
from . import checks, items, partition_of, replicas_of

APPLICATION = """<?xml version="1.0" encoding="utf-8"?>
<ApplicationManifest ApplicationTypeName="PackedType" ApplicationTypeVersion="1.0" xmlns="http://schemas.microsoft.com/2011/01/fabric">
  <Parameters><Parameter Name="Count" DefaultValue="1" /></Parameters>
  <ServiceManifestImport>
    <ServiceManifestRef ServiceManifestName="FrontPkg" ServiceManifestVersion="1.0" />
  </ServiceManifestImport>
  <DefaultServices>
    <Service Name="Front">
      <StatelessService ServiceTypeName="FrontType" InstanceCount="[Count]"><SingletonPartition /></StatelessService>
    </Service>
  </DefaultServices>
</ApplicationManifest>
"""

SERVICE = """<?xml version="1.0" encoding="utf-8"?>
<ServiceManifest Name="FrontPkg" Version="1.0" xmlns="http://schemas.microsoft.com/2011/01/fabric">
  <ServiceTypes>
    <StatelessServiceType ServiceTypeName="FrontType">
      <Extensions>
        <Extension Name="YARP-preview">
          <Labels xmlns="http://schemas.microsoft.com/2015/03/fabact-no-schema">
            <Label Key="YARP.Enable">true</Label>
          </Labels>
        </Extension>
      </Extensions>
    </StatelessServiceType>
  </ServiceTypes>
  <CodePackage Name="Code" Version="1.0">
    <EntryPoint><ExeHost><Program>front</Program></ExeHost></EntryPoint>
  </CodePackage>
  <Resources><Endpoints><Endpoint Name="http" Protocol="http" /></Endpoints></Resources>
</ServiceManifest>
"""


def write(path, content):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)


@checks("application upload, application provision, application create, store root-info, store stat, store delete")
def package(sfctl):
    with tempfile.TemporaryDirectory() as place:
        root = os.path.join(place, "Packed")
        write(os.path.join(root, "ApplicationManifest.xml"), APPLICATION.encode())
        write(os.path.join(root, "FrontPkg", "ServiceManifest.xml"), SERVICE.encode())
        write(os.path.join(root, "FrontPkg", "Code", "front"), b"\0" * (5 << 20))
        sfctl.alone("cluster", "select", "--endpoint", sfctl.endpoint)
        code, output, errors = sfctl.alone("application", "upload", "--path", root)
        expect_equal(code, 0, f"exit code, with {output!r} and {errors!r}")
    folders = {each["storeRelativePath"]: each["fileCount"] for each in sfctl("store root-info")["storeFolders"]}
    expect("Packed" in folders, f"there are {folders}")
    file = the_one(sfctl("store stat", content_path="Packed/FrontPkg/Code/front")["storeFiles"], "file", lambda each: True)
    expect_equal(file["fileSize"], str(5 << 20), "size")

    sfctl("application provision", application_type_build_path="Packed")
    of_type = {"app_type": "PackedType", "app_version": "1.0"}
    sfctl("application create", app_name="fabric:/Packed", parameters={"Count": "2"}, **of_type)
    sfctl.settle()
    services = [each["name"] for each in items(sfctl("service list", application_id="Packed"))]
    expect_equal(services, ["fabric:/Packed/Front"], "default services")
    expect_equal(len(replicas_of(sfctl, partition_of(sfctl, "Packed~Front"))), 2, "instances")
    types = sfctl("service type-list", application_type_name="PackedType", application_type_version="1.0")
    extension = the_one(types[0]["serviceTypeDescription"]["extensions"], "extension", lambda each: True)
    expect('<Label Key="YARP.Enable">true</Label>' in extension["value"], extension["value"])
    manifest = sfctl("application manifest", application_type_name="PackedType", application_type_version="1.0")
    expect_equal(manifest["manifest"].strip(), APPLICATION.strip(), "manifest")

    sfctl("application delete", application_id="Packed")
    sfctl("application unprovision", application_type_name="PackedType", application_type_version="1.0")
    sfctl("store delete", content_path="Packed")
    sfctl.refused("FABRIC_E_FILE_NOT_FOUND", "store stat", content_path="Packed")
