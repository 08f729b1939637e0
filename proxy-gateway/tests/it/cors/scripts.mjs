// Scripts of several origins in Chromium, which request a gateway with CORS policies.
//
// Environment: CHROMIUM (path), PORT (of the server with the pages), GATEWAYS (URLs, separated by spaces), and ADMIN, the
// URL of the gateway's metrics. Exits with 1 and the reason when something is not as it should be.

import assert from 'node:assert/strict';
import { chromium } from 'playwright-core';

const { ADMIN, CHROMIUM, GATEWAYS, PORT } = process.env;
// The certificate is made for this test.
const args = ['--no-sandbox', '--disable-gpu', '--ignore-certificate-errors'];
const browser = await chromium.launch({ executablePath: CHROMIUM, args });

/** The sum of a metric over the series with a label. */
async function sum(name, label) {
  const metrics = await (await fetch(`${ADMIN}metrics`)).text();
  const lines = metrics.split('\n').filter((line) => line.startsWith(name) && line.includes(label));
  return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}

const streams = () => sum('http_server_request_duration_seconds_count{', 'network_protocol_version="2"');
const preflights = () => sum('proxy_policy_decisions_total{', 'outcome="preflight"');

/** A page of an origin. `send` requests a URL from its script, and returns what the script sees. */
async function page(host) {
  const context = await browser.newContext({ ignoreHTTPSErrors: true });
  const tab = await context.newPage();
  await tab.goto(`http://${host}:${PORT}/`);
  const send = (url, options = {}) =>
    tab.evaluate(
      async ([url, options]) => {
        try {
          const response = await fetch(url, options);
          const headers = Object.fromEntries(response.headers);
          return { status: response.status, text: await response.text(), headers };
        } catch (error) {
          return { failed: error.name };
        }
      },
      [url, options],
    );
  return { context, send };
}

const failed = { failed: 'TypeError' };

try {
  for (const gateway of GATEWAYS.split(' ')) {
    const api = `${gateway}/api/orders`;
    const allowed = await page('localhost');
    const seen = await allowed.send(api);
    assert.equal(seen.status, 200, JSON.stringify(seen));
    assert.equal(seen.text, 'api');
    assert.equal(seen.headers['x-total'], '7', 'the policy exposes this header');
    assert.equal(seen.headers['x-other'], undefined, 'and not this one');

    // The preflight is answered without the destination, and remembered.
    const before = await preflights();
    const put = { method: 'PUT', headers: { 'X-Wanted': '1' }, body: 'x' };
    for (let i = 0; i < 3; i += 1) assert.equal((await allowed.send(api, put)).status, 200);
    assert.equal((await preflights()) - before, 1, 'the browser keeps the answer for PreflightMaxAge');
    assert.deepEqual(await allowed.send(api, { method: 'DELETE' }), failed, 'a method that is not allowed');
    assert.deepEqual(await allowed.send(api, { headers: { 'X-Unwanted': '1' } }), failed, 'a header that is not allowed');

    // With cookies, in both directions. A page over http and a server over https are different sites, whose cookies
    // browsers do not keep.
    if (gateway.startsWith('http:')) {
      const login = await allowed.send(`${gateway}/api/login`, { credentials: 'include' });
      assert.equal(login.status, 200, JSON.stringify(login));
      const known = await allowed.send(`${gateway}/api/cookie`, { credentials: 'include' });
      assert.equal(known.text, 'session=1');
      assert.equal((await allowed.send(`${gateway}/api/cookie`)).text, '', 'without them where the script wants none');
    }

    // What the gateway rejects, the script may read, so that it can tell its user why.
    for (const [path, status] of [['/closed', 401], ['/limited', 429]]) {
      let answer = await allowed.send(`${gateway}${path}`);
      if (status === 429) answer = await allowed.send(`${gateway}${path}`);
      assert.equal(answer.status, status, JSON.stringify(answer));
    }

    const below = await page('shop.localhost');
    assert.equal((await below.send(api)).status, 200, 'a name below an allowed one');
    const strange = await page('127.0.0.1');
    assert.deepEqual(await strange.send(api), failed, 'another origin');
    assert.deepEqual(await strange.send(api, put), failed);
    assert.deepEqual(await strange.send(`${gateway}/open`), failed, 'a route without a policy');
    assert.equal((await strange.send(`${gateway}/any`)).status, 200, 'a route for all origins');
    if (gateway.startsWith('https')) {
      assert.ok((await streams()) > 0, 'over HTTP/2');
    }
    for (const { context } of [allowed, below, strange]) await context.close();
  }
} finally {
  await browser.close();
}
console.log('scripts read what they may');
