// What @azure/arm-network can do with the emulator, and what it finds after the reconciler has written. ENDPOINT says where that
// is, EXPECTED what the reconciler has told, as JSON.

import assert from "node:assert/strict";

import { NetworkManagementClient } from "@azure/arm-network";

const EXPECTED = JSON.parse(process.env.EXPECTED);
const GROUP = "rg";

const credential = { getToken: async () => ({ token: "none", expiresOnTimestamp: Date.now() + 3_600_000 }) };
const client = new NetworkManagementClient(credential, "s", {
  endpoint: process.env.ENDPOINT,
  allowInsecureConnection: true,
  retryOptions: { maxRetries: 0 },
});
// It refuses to send tokens over plain HTTP, even to this machine.
client.pipeline.removePolicy({ name: "bearerTokenAuthenticationPolicy" });

const now = { updateIntervalInMs: 0 };
// In lower case: the emulator gives ids back in any, as Azure does.
const last = (reference) => reference.id.split("/").at(-1).toLowerCase();

async function collect(pages) {
  const all = [];
  for await (const one of pages) all.push(one);
  return all;
}

async function refused(call, status, code) {
  await assert.rejects(call, (error) => {
    assert.deepEqual([error.statusCode, error.code], [status, code]);
    return true;
  });
}

async function reconciled() {
  const balancers = await collect(client.loadBalancers.list(GROUP));
  assert.deepEqual(balancers.map((one) => one.name).sort(), ["front", "front-internal"]);
  const balancer = await client.loadBalancers.get(GROUP, "front");
  const [frontend] = balancer.frontendIPConfigurations;
  const [rule] = balancer.loadBalancingRules;
  assert.deepEqual([rule.protocol, rule.frontendPort, rule.backendPort], ["Tcp", 80, 80]);
  assert.deepEqual([rule.enableFloatingIP, rule.enableTcpReset, rule.idleTimeoutInMinutes], [true, true, 10]);
  assert.equal(rule.loadDistribution, "SourceIP");
  assert.equal(last(rule.frontendIPConfiguration), frontend.name.toLowerCase());
  const [probe] = balancer.probes;
  assert.deepEqual([last(rule.probe), probe.protocol, probe.port], [probe.name.toLowerCase(), "Tcp", 30080]);
  const [pool] = balancer.backendAddressPools;
  assert.deepEqual(pool.loadBalancerBackendAddresses.map((one) => one.ipAddress), EXPECTED.nodes);
  const address = await client.publicIPAddresses.get(GROUP, last(frontend.publicIPAddress));
  assert.deepEqual([address.ipAddress, address.dnsSettings.domainNameLabel], [EXPECTED.web, "web"]);
  const inside = await client.loadBalancers.get(GROUP, "front-internal");
  assert.equal(inside.frontendIPConfigurations[0].privateIPAddress, EXPECTED.db);
  const group = await client.networkSecurityGroups.get(GROUP, "nsg");
  assert.deepEqual(group.securityRules.map((one) => [one.access, one.priority]), [["Allow", 500]]);
}

async function writes() {
  const body = { location: "westus", sku: { name: "Standard" }, publicIPAllocationMethod: "Static" };
  const address = await client.publicIPAddresses.beginCreateOrUpdateAndWait(GROUP, "own", body, now);
  assert.match(address.ipAddress, /^20\./);
  const frontend = { name: "f", publicIPAddress: { id: address.id } };
  const balancer = { location: "westus", sku: { name: "Standard" }, frontendIPConfigurations: [frontend] };
  const made = await client.loadBalancers.beginCreateOrUpdateAndWait(GROUP, "own", balancer, now);
  assert.equal(made.provisioningState, "Succeeded");
  const stale = { ...now, requestOptions: { customHeaders: { "If-Match": 'W/"stale"' } } };
  await refused(() => client.loadBalancers.beginCreateOrUpdateAndWait(GROUP, "own", balancer, stale), 412, "PreconditionFailed");
  await refused(() => client.publicIPAddresses.beginDeleteAndWait(GROUP, "own", now), 400, "PublicIPAddressCannotBeDeleted");
}

async function deletions() {
  await client.loadBalancers.beginDeleteAndWait(GROUP, "own", now);
  await client.publicIPAddresses.beginDeleteAndWait(GROUP, "own", now);
  await refused(() => client.loadBalancers.get(GROUP, "own"), 404, "ResourceNotFound");
}

for (const check of [reconciled, writes, deletions]) {
  await check();
  console.log(`checked ${check.name}`);
}
