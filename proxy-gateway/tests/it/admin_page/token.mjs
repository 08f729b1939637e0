// Opens the admin page with the token as the password that the browser asks for, and without it.

import assert from 'node:assert/strict';
import { chromium } from 'playwright-core';

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ['--no-sandbox'] });
try {
  const stranger = await browser.newContext();
  const closed = await stranger.newPage();
  const answer = await closed.goto(process.env.ADMIN).catch((error) => error);
  assert.ok(answer instanceof Error ? /ERR_INVALID_AUTH_CREDENTIALS/.test(answer.message) : answer.status() === 401, String(answer));

  const operator = await browser.newContext({ httpCredentials: { username: 'operator', password: process.env.TOKEN } });
  const page = await operator.newPage();
  const failed = [];
  page.on('response', (response) => { if (response.status() >= 400 && response.status() !== 401) failed.push(`${response.status()} ${response.url()}`); });
  page.on('pageerror', (error) => failed.push(error.message));
  assert.equal((await page.goto(process.env.ADMIN)).status(), 200);
  // Scripts, styles and what they ask for get the token, too.
  await page.waitForFunction(() => document.querySelector('#figures')?.textContent.includes('routes'));
  assert.match(await page.textContent('#sentence'), /cluster|well|route/i);
  for (const tab of ['clusters', 'listeners', 'sources', 'problems', 'changes']) {
    await page.click(`#tabs a[href="#/${tab}"]`);
    await page.waitForSelector(`#${tab}:not([hidden])`);
  }
  await page.waitForFunction(() => document.querySelector('#change-list')?.textContent.length > 0);
  assert.deepEqual(failed, []);
} finally {
  await browser.close();
}
