// Opens the admin page of a gateway with 500 routes in Chromium, and checks what a person would see, and the rules of axe-core.
//
// Environment: ADMIN (URL), CHROMIUM (path), SCREENSHOTS (folder). Exits with 1 and the reason when something is not as
// it should be.

import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

const { ADMIN, CHROMIUM, SCREENSHOTS } = process.env;
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const TABS = ['overview', 'clusters', 'routes', 'requests', 'explain', 'listeners', 'sources', 'problems', 'changes'];
const DOWN = 'shop%2Fservice-007', PART = 'shop%2Fservice-013';

const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu'] });
try {
  await used();
  await accessible('light', 1440, TABS);
  await accessible('dark', 390, TABS);
  // Colours and widths do not depend on each other: one list stands for the tabs.
  await accessible('dark', 1440, ['clusters']);
  await accessible('light', 390, ['clusters']);
} finally {
  await browser.close();
}
console.log('the admin page is as it should be');

async function open(options) {
  // Rules are put into the page, which its policy would forbid to anybody else.
  const context = await browser.newContext({ ...options, bypassCSP: options.bypassCSP ?? false });
  const page = await context.newPage();
  const failures = [];
  let bytes = 0;
  page.on('pageerror', (error) => failures.push(`script error: ${error}`));
  page.on('console', (message) => { if (message.type() === 'error') failures.push(`console: ${message.text()}`); });
  page.on('response', async (response) => {
    if (!new URL(response.url()).pathname.startsWith('/api/')) bytes += Number(response.headers()['content-length']);
  });
  page.setDefaultTimeout(60_000);
  await page.goto(ADMIN);
  await page.waitForSelector('body[data-generation]');
  return { page, bytes: () => bytes, close: async () => { assert.deepEqual(failures, []); await context.close(); } };
}

async function used() {
  const { page, bytes, close } = await open({ viewport: { width: 1440, height: 900 } });
  assert.ok(bytes() > 10_000 && bytes() <= 100_000, `${bytes()} bytes`);

  // The clusters that fail are drawn with the routes that lead there.
  await page.waitForFunction(() => document.querySelector('#verdict').dataset.state === 'down');
  await page.waitForSelector('#flow-picture g.node[data-state="down"]');
  const names = await page.locator('#flow-picture g.node > text:first-of-type').allTextContents();
  for (const name of ['service-007', 'service-013']) {
    assert.equal(names.filter((one) => one.endsWith(name)).length, 2, `${name} as route and cluster among ${names}`);
  }
  await page.waitForFunction(() => /[1-9]/.test(document.querySelector('#overview-charts figcaption .all')?.textContent ?? ''));

  // What needs attention leads to its row, which is open.
  const concern = page.locator('#concerns li', { hasText: 'service-007' });
  assert.match(await concern.textContent(), /connection refused/);
  await concern.locator('a').click();
  await page.locator(`#clusters details.row[open][data-id="${DOWN}"] tbody tr`).nth(1).waitFor();
  // The table has the names of the log and the metrics.
  const causes = page.locator(`#clusters details.row[open][data-id="${DOWN}"] td[data-label="Failures"]`);
  assert.match(await causes.first().textContent(), /connection refused × [1-9]/);
  await page.goto(`${ADMIN}#/overview`);

  // The sentence leads to the clusters, of which the failing one comes first.
  await page.locator('#sentence a').click();
  const rows = page.locator('#clusters details.row');
  await rows.nth(49).waitFor();
  assert.equal(await rows.count(), 50);
  assert.equal(await rows.nth(0).getAttribute('data-id'), DOWN);
  assert.equal(await rows.nth(1).getAttribute('data-id'), PART);
  assert.match(await page.textContent('#cluster-more'), /1 to 50 of 500/);

  // Pages, filters, orders and open rows are in the address.
  await page.locator('#cluster-more button', { hasText: 'Next' }).click();
  await page.waitForFunction(() => /51 to 100/.test(document.querySelector('#cluster-more').textContent));
  assert.match(page.url(), /page=2/);
  await page.fill('#cluster-filter', 'service-007');
  await page.waitForFunction(() => document.querySelectorAll('#clusters details.row').length === 1);
  assert.match(page.url(), /filter=service-007/);
  assert.doesNotMatch(page.url(), /page=/);
  await rows.nth(0).locator('summary').first().click();
  await rows.nth(0).locator('tbody tr').nth(1).waitFor();
  await rows.nth(0).locator('.charts .line.all').waitFor();
  const failing = await rows.nth(0).locator('.value').nth(1).textContent();
  assert.equal(failing, '100 %');
  // A long id is shown as the address; the id is a tooltip.
  const first = rows.nth(0).locator('tbody tr strong').first();
  assert.match(await first.textContent(), /^127\.0\.0\.1:\d+$/);
  assert.equal(await first.getAttribute('title'), '054917582-8169-a558-000000136557788');
  const address = page.url();
  await page.goto('about:blank');
  await page.goto(address);
  await rows.nth(0).locator('tbody tr').nth(1).waitFor();
  assert.equal(await page.inputValue('#cluster-filter'), 'service-007');

  // Its route is a link away, with transforms and policies, and without secrets.
  await rows.nth(0).locator('.hint a').click();
  const route = page.locator(`#routes details.row[data-id="${DOWN}"]`);
  await route.locator('.detail dd', { hasText: 'PathRemovePrefix: /svc007' }).waitFor();
  assert.doesNotMatch(await page.content(), /s3cr3t/);
  await page.goBack();
  await rows.nth(0).waitFor();

  // An explanation has limits and retries, several headers and the client; near misses say what was wanted.
  const explain = async (url) => {
    await page.goto(`${ADMIN}#/explain`);
    await page.fill('#explain-form [name=url]', url);
    await page.fill('#explain-form [name=header]', 'X-One: 1\nX-Two: 2');
    await page.fill('#explain-form [name=remote]', '192.0.2.7');
    await page.locator('#explain-form button').click();
  };
  await explain('http://shop.example/svc020/x');
  await page.locator('#explain-answer dd', { hasText: 'X-Two: 2' }).waitFor();
  const answer = await page.textContent('#explain-answer');
  for (const part of ['Limits and retries', 'X-One: 1', 'X-Forwarded-For: 192.0.2.7']) assert.match(answer, new RegExp(part));
  await explain('http://other.example/svc020/x');
  await page.locator('#explain-answer dd', { hasText: 'service-020: host is other.example' }).waitFor();
  assert.match(await page.textContent('#explain-answer'), /service-020: host is other\.example, wanted shop\.example/);
  await explain('http://shop.example/away/x?y=1');
  await page.locator('#explain-answer dd', { hasText: 'http://new.example/away/x?y=1' }).waitFor();
  const redirected = await page.textContent('#explain-answer');
  for (const part of ['Route away answers it: 307.', 'Redirects to']) assert.match(redirected, new RegExp(part));
  const line = JSON.stringify({ method: 'PUT', scheme: 'http', host: 'shop.example', path: '/svc021/y', remote: '192.0.2.9:1', status: 200 });
  await explain(line);
  await page.locator('#explain-answer dd', { hasText: 'X-Forwarded-For: 192.0.2.9' }).waitFor();

  // The latest requests lead to their explanation, which has an address of its own.
  await page.goto(`${ADMIN}#/requests`);
  await page.waitForSelector('#request-list details.row');
  assert.match(await page.textContent('#request-note'), /At most 10 requests of a second/);
  const latest = await page.locator('#request-list details.row').first().getAttribute('data-id');
  const request = page.locator(`#request-list details.row[data-id="${latest}"]`);
  await request.locator('summary').click();
  await request.locator('.detail a').click();
  await page.locator('#explain-answer .outcome', { hasText: 'service-' }).waitFor();
  assert.match(new URL(page.url()).hash, /^#\/explain\?.*url=http/);
  assert.equal(await page.locator('#routes [name=sort] option').count(), 6);

  // Orders.
  await page.goto(`${ADMIN}#/routes?sort=rate`);
  await page.waitForFunction(() => /service-(007|013|02[0-2]|499)/.test(document.querySelector('#routes details.row')?.dataset.id ?? ''));
  await page.goto(`${ADMIN}#/routes?sort=name&page=11`);
  await page.locator('#routes details.row[data-id="shop%2Fservice-499"]').waitFor();

  // A selection survives, although the figures of the row change.
  await page.goto(`${ADMIN}#/routes?filter=service-007`);
  await page.waitForFunction(() => [...document.querySelectorAll('#routes details.row')].map((row) => row.dataset.id).join() === 'shop%2Fservice-007');
  const selected = await page.evaluate(async () => {
    const place = document.querySelector('#routes .takes');
    getSelection().selectAllChildren(place);
    await new Promise((done) => { setTimeout(done, 2500); });
    return String(getSelection());
  });
  assert.match(selected, /svc/);

  await page.goto(`${ADMIN}#/listeners`);
  await page.locator('#listener-cards .card', { hasText: 'expires in' }).waitFor();
  assert.match(await page.textContent('#listener-cards'), /www\.shop\.example/);
  await close();
}

async function accessible(colorScheme, width, tabs) {
  const { page, close } = await open({ colorScheme, viewport: { width, height: 900 }, bypassCSP: true });
  await page.evaluate(AXE);
  for (const name of tabs) {
    const query = { clusters: `?open=${encodeURIComponent(DOWN)}`, routes: `?open=${encodeURIComponent(DOWN)}` }[name] ?? '';
    await page.goto(`${ADMIN}#/${name}${query}`);
    await page.waitForSelector(`#tabs a[href="#/${name}"][aria-current]`);
    if (query) await page.waitForSelector(`#${name} details.row[open] .chart`);
    else await page.waitForTimeout(1200);
    if (name === 'explain') {
      await page.fill('#explain-form [name=url]', 'http://other.example/svc020/x');
      await page.locator('#explain-form button').click();
      await page.locator('#explain-answer dd', { hasText: 'wanted' }).waitFor();
    }
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    assert.ok(overflow <= 0, `${name} is ${overflow} px wider than ${width}`);
    const { violations } = await page.evaluate(() => axe.run());
    const found = violations.map((one) => `${one.id}: ${one.help}: ${one.nodes.map((node) => node.html).join(' | ')}`);
    assert.deepEqual(found, [], `${name}, ${colorScheme}, ${width} px`);
    await page.screenshot({ path: join(SCREENSHOTS, `many-${name}-${colorScheme}-${width}.png`) });
  }
  await close();
}
