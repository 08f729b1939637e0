// The latest requests of a sample, the newest first. A row does not change once it is there.

import { ask, count, element, milliseconds, state } from './dom.js';
import { link } from './address.js';
import { cell } from './list.js';

const MOST = 200;
const NAMES = ['time', 'remote', 'scheme', 'method', 'host', 'path', 'protocol', 'status', 'bytes_received', 'bytes_sent', 'duration_ms', 'added_ms', 'first_byte_ms', 'upstream_ms', 'outcome', 'route', 'cluster', 'destination', 'error', 'cause', 'refusal', 'user_agent'];
let last = 0;

function mood(request) {
  if (request.status >= 500 || request.outcome === 'failed') return 'down';
  return request.cause || request.status >= 400 ? 'degraded' : 'healthy';
}

function row(request) {
  const { id, method, host, path, status, cause } = request;
  const explain = method && host ? element('p', {}, element('a', { href: link('explain', { method, url: `${request.scheme}://${host}${path}`, remote: request.remote ?? '' }) }, 'Explain this request')) : null;
  const facts = NAMES.filter((name) => request[name] !== undefined).map((name) => [element('dt', {}, name), element('dd', { class: 'mono' }, String(request[name]))]);
  return element('details', { class: 'row', 'data-id': id, 'data-state': mood(request) },
    element('summary', {},
      element('span', { class: 'id' }, element('span', { class: 'mono' }, method ? `${method} ${host ?? ''}${path ?? ''}` : 'not a request'), element('span', { class: 'takes mono' }, `${request.time.slice(11, 23)} ${request.remote ?? ''}`)),
      state(mood(request), cause?.replaceAll('_', ' ') ?? String(status ?? 'no status')),
      element('span', { class: 'cells' },
        cell('status', String(status ?? '–')), cell('time', milliseconds(request.duration_ms)), cell('added', milliseconds(request.added_ms)),
        cell('route', request.route ?? '–'), cell('to', request.destination ?? '–'))),
    element('div', { class: 'detail' }, element('dl', { class: 'steps' }, facts.flat()), explain));
}

export async function showRequests(place, note) {
  const { enabled, per_second: most, latest, left_out: omitted, requests } = await ask(`/api/v1/requests?after=${last}`);
  // A program that has started again counts from 1.
  if (latest < last) {
    last = 0;
    place.replaceChildren();
    return;
  }
  note.textContent = enabled
    ? `At most ${most} requests of a second, and ${most} failed ones beside them; ${count(omitted)} were left out since the start.`
    : 'Off. Telemetry.LiveRequests switches it on.';
  for (const request of requests) {
    place.prepend(row(request));
    last = request.id;
  }
  while (place.children.length > MOST) place.lastElementChild.remove();
}
