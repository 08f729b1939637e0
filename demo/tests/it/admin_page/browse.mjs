// Opens the admin page of a running demo in Chromium and checks what a person would see.
//
// Environment: ADMIN and PROXY (URLs), CHROMIUM (path), SCREENSHOTS (folder). Exits with 1 and the reason when
// something is not as it should be.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

const { ADMIN, PROXY, CHROMIUM, SCREENSHOTS } = process.env;
// The demo tells its story every 33 seconds at this speed, so whatever was missed comes again within this time.
const GUARD = 100_000;

const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu'] });
try {
  await seenByDay();
  await seenByNight();
  await seenOnAPhone();
} finally {
  await browser.close();
}
console.log('the admin page is as it should be');

async function open(options) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const failures = [];
  page.on('pageerror', (error) => failures.push(`script error: ${error}`));
  page.on('console', (message) => { if (message.type() === 'error') failures.push(`console: ${message.text()}`); });
  page.on('request', (request) => {
    if (!request.url().startsWith(ADMIN)) failures.push(`a resource from elsewhere: ${request.url()}`);
  });
  page.setDefaultTimeout(GUARD);
  await page.goto(ADMIN);
  await page.waitForSelector('body[data-generation]');
  return { page, close: async () => { assert.deepEqual(failures, []); await context.close(); } };
}

async function seenByDay() {
  const { page, close } = await open({ colorScheme: 'light', viewport: { width: 1280, height: 1000 } });

  // All is well, in a sentence, and traffic shows without a reload.
  await page.waitForFunction(() => document.querySelector('#verdict').dataset.state === 'ok');
  const traffic = keepAsking();
  await page.waitForFunction(() => /[1-9]/.test(document.querySelector('#figures dd').textContent));
  await page.waitForSelector('#flow-picture svg .pulse');

  // A row opens by keyboard and shows its destinations, and a reload shows the same.
  await tab(page, 'Clusters');
  const catalog = page.locator('#clusters details.row[data-id="fabric:/Shop/Catalog"]');
  await catalog.locator('summary').first().focus();
  await page.keyboard.press('Enter');
  await catalog.locator('tbody tr').nth(1).waitFor();
  assert.match(page.url(), /#\/clusters\?open=fabric/);
  await page.reload();
  await catalog.locator('tbody tr').nth(1).waitFor();

  // A change of the cluster is followed without a reload: the demo starts a third instance. A slow browser may have missed it.
  await page.waitForFunction(() => document.querySelectorAll('details.row[data-id="fabric:/Shop/Catalog"] tbody tr').length === 2);
  const before = Number(await page.getAttribute('body', 'data-generation'));
  await catalog.locator('tbody tr').nth(2).waitFor();
  assert.ok(Number(await page.getAttribute('body', 'data-generation')) > before, 'the generation goes up');
  await tab(page, 'Changes');
  await page.locator('#change-list', { hasText: 'fabric:/Shop/Catalog' }).waitFor();

  // An instance falls ill: a word, a shape and a colour say so, and the sentence on top as well.
  await tab(page, 'Clusters');
  await page.waitForSelector('details.row[data-id="fabric:/Shop/Catalog"][data-state="degraded"]');
  await page.waitForFunction(() => document.querySelector('#verdict').dataset.state === 'degraded');
  // The drawing has names that people read, not the middle of ids.
  await tab(page, 'Overview');
  await page.waitForSelector('#overview-charts .chart');
  await page.waitForSelector('#flow-picture g.node[data-state="degraded"]');
  const names = await page.locator('#flow-picture g.node > text:first-of-type').allTextContents();
  for (const name of ['Catalog:catalog', 'Shop/Catalog']) assert.ok(names.includes(name), `no ${name} among ${names}`);
  assert.ok(names.some((name) => /^127\.0\.0\.1:\d+$/.test(name)), `no address among ${names}`);
  await page.screenshot({ path: join(SCREENSHOTS, 'admin-light.png'), fullPage: false });

  // Routes have the same names, and are found by them.
  await tab(page, 'Routes');
  await page.locator('#routes .id > span:first-child', { hasText: /^fabric:\/Shop\/Catalog:catalog$/ }).waitFor();
  await page.fill('#route-filter', 'shop/catalog');
  await page.waitForFunction(() => document.querySelectorAll('#routes details.row').length === 1);

  // The box explains a decision.
  await tab(page, 'Explain');
  await page.fill('#explain-form input[name=url]', 'localhost/catalog/shoes?size=42');
  await page.click('#explain-form button');
  await page.locator('#explain-answer', { hasText: 'Catalog:catalog' }).waitFor();
  assert.match(await page.textContent('#explain-answer'), /X-Forwarded-For|Host/i);
  await page.locator('#explain').screenshot({ path: join(SCREENSHOTS, 'admin-explain.png') });

  // A bad label is a problem with a name, while the service goes on.
  await tab(page, 'Problems');
  await page.locator('#problem-list .problem', { hasText: 'YARP.Routes.payments.Path' }).first().waitFor();
  await tab(page, 'Sources');
  await page.locator('#provider-cards', { hasText: 'fabric:/Shop/Payments is quarantined' }).waitFor();

  // The filter filters.
  await tab(page, 'Clusters');
  await page.fill('#cluster-filter', 'catal');
  await page.waitForFunction(() => document.querySelectorAll('#clusters details.row').length === 1);
  await page.fill('#cluster-filter', 'no such cluster');
  await page.locator('#cluster-list', { hasText: 'Nothing matches' }).waitFor();

  traffic.stop();
  await close();
}

async function seenByNight() {
  const { page, close } = await open({ colorScheme: 'dark', viewport: { width: 1280, height: 1000 } });
  const traffic = keepAsking();
  await page.waitForSelector('#flow-picture svg .pulse');
  assert.ok(await brightness(page) < 60, 'the ground is dark');
  await page.screenshot({ path: join(SCREENSHOTS, 'admin-dark.png') });
  traffic.stop();
  await close();
}

async function seenOnAPhone() {
  const { page, close } = await open({ colorScheme: 'light', viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true, deviceScaleFactor: 2 });
  assert.ok(await brightness(page) > 200, 'the ground is light');
  await page.goto(`${ADMIN}#/clusters`);
  const catalog = page.locator('#clusters details.row[data-id="fabric:/Shop/Catalog"]');
  await catalog.locator('summary').first().tap();
  await catalog.locator('tbody tr').first().waitFor();
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  assert.ok(overflow <= 0, `the page is ${overflow} px wider than the phone`);
  // The longest sentence, with a name that has no place to break, fits.
  const longest = await page.evaluate(() => {
    document.querySelector('#sentence').textContent = `Down: ${'fabric:/Shop/Catalog'.repeat(8)} (the connection cannot be opened).`;
    return document.documentElement.scrollWidth - window.innerWidth;
  });
  assert.ok(longest <= 0, `a long sentence makes the page ${longest} px wider than the phone`);
  await page.locator('#clusters').scrollIntoViewIfNeeded();
  await page.screenshot({ path: join(SCREENSHOTS, 'admin-phone.png') });
  await close();
}

async function tab(page, name) {
  await page.locator('#tabs a', { hasText: name }).click();
  await page.waitForFunction((hash) => !document.querySelector(hash.replace('/', '')).hidden, `#/${name.toLowerCase()}`);
}

async function brightness(page) {
  return page.evaluate(() => {
    const [r, g, b] = getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number);
    return (r + g + b) / 3;
  });
}

// A visitor who asks the proxy for this and that, ten times a second, until told to stop.
function keepAsking() {
  const paths = ['/catalog/shoes', '/catalog/hats', '/orders/eu/17', '/orders/us/4', '/payments/9', '/', '/about'];
  let asked = 0;
  const timer = setInterval(() => { fetch(PROXY + paths[asked++ % paths.length]).then((answer) => answer.text(), () => {}); }, 100);
  return { stop: () => clearInterval(timer) };
}
