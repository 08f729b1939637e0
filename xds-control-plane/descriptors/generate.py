"""Writes the descriptors of Envoy's API that this crate carries: `generate.py FILE`.

Needs the packages xds-protos, grpcio and protobuf. `cargo xtask descriptors` runs it with pinned versions of them.

xds-types has the messages without their descriptors, which reflection and JSON need. The services do not import the
types of the resources that they carry inside `Any`, so these are roots as well.
"""

import importlib
import sys

from google.protobuf import descriptor_pb2

ROOTS = """
envoy/service/discovery/v3/ads.proto
envoy/service/cluster/v3/cds.proto
envoy/service/endpoint/v3/eds.proto
envoy/service/listener/v3/lds.proto
envoy/service/route/v3/rds.proto
envoy/service/status/v3/csds.proto
envoy/config/cluster/v3/cluster.proto
envoy/config/endpoint/v3/endpoint.proto
envoy/config/listener/v3/listener.proto
envoy/config/route/v3/route.proto
envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.proto
envoy/extensions/filters/network/tcp_proxy/v3/tcp_proxy.proto
envoy/extensions/filters/http/router/v3/router.proto
envoy/extensions/transport_sockets/tls/v3/tls.proto
envoy/extensions/transport_sockets/raw_buffer/v3/raw_buffer.proto
envoy/extensions/upstreams/http/v3/http_protocol_options.proto
""".split()


def descriptor(path):
    """The descriptor of a file, from the module that was generated of it."""
    module = path.removesuffix(".proto").replace("/", ".") + "_pb2"
    return importlib.import_module(module).DESCRIPTOR


def main(output):
    files = descriptor_pb2.FileDescriptorSet()
    seen = set()

    def add(file):
        # What is imported comes first, as readers of the set expect.
        if file.name in seen:
            return
        seen.add(file.name)
        for dependency in file.dependencies:
            add(dependency)
        file.CopyToProto(files.file.add())

    for root in ROOTS:
        add(descriptor(root))
    with open(output, "wb") as stream:
        stream.write(files.SerializeToString(deterministic=True))
    print(f"{len(files.file)} files")


main(sys.argv[1])
