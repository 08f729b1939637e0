// A client in Chromium with a sticky cookie, across a scale-in and a scale-out.
//
// Environment: PROXY and CONTROL (URLs), CHROMIUM (path). `CONTROL/gone/NAME` removes a destination, and `CONTROL/all`
// brings all of them back. Exits with 1 and the reason when something is not as it should be.

import assert from 'node:assert/strict';
import { chromium } from 'playwright-core';

const { PROXY, CONTROL, CHROMIUM } = process.env;
const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu'] });

async function client() {
  const context = await browser.newContext();
  const page = await context.newPage();
  const visit = async () => {
    await page.goto(`${PROXY}/cart`);
    return (await page.textContent('body')).trim();
  };
  const cookie = async () => (await context.cookies()).find(({ name }) => name === 'Aff');
  const stays = async (name) => {
    for (let i = 0; i < 6; i += 1) assert.equal(await visit(), name);
  };
  return { context, page, visit, cookie, stays };
}

async function control(path) {
  assert.equal((await fetch(`${CONTROL}${path}`)).status, 200, path);
}

try {
  const { page, visit, cookie, stays } = await client();
  const first = await visit();
  const given = await cookie();
  assert.ok(given, 'the browser has kept the cookie');
  assert.equal(given.httpOnly, true);
  assert.equal(given.sameSite, 'Strict');
  assert.equal(given.path, '/');
  assert.equal(await page.evaluate(() => document.cookie), '', 'scripts do not see it');
  await stays(first);
  assert.deepEqual(await cookie(), given, 'it is given once');

  // Others are spread over all destinations, so it is the cookie that keeps a client.
  const seen = new Set();
  for (let i = 0; i < 3; i += 1) {
    const other = await client();
    seen.add(await other.visit());
    await other.context.close();
  }
  assert.equal(seen.size, 3, [...seen].join());

  await control(`/gone/${first}`);
  const second = await visit();
  assert.notEqual(second, first);
  const renewed = await cookie();
  assert.notEqual(renewed.value, given.value, 'the new destination has a key of its own');
  await stays(second);

  // What comes back does not take its clients back.
  await control('/all');
  await stays(second);
  assert.deepEqual(await cookie(), renewed);
} finally {
  await browser.close();
}
console.log('clients stay where they are');
