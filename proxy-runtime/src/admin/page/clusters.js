// The list of clusters.

import { age, count, element, milliseconds, rate, readable, show, sparkline, state } from './dom.js';
import { link } from './address.js';
import { drawCharts } from './chart.js';
import { cell, failedCell, followList, settings, wholeConfig } from './list.js';

const HEALTH = { Healthy: 'healthy', Unhealthy: 'down', Unknown: 'unknown' };
const SETTINGS = ['SessionAffinity', 'HealthCheck', 'HttpRequest', 'HttpClient', 'Metadata'];
// Ids that are longer are mostly those of partitions and replicas, and the address says more.
const LONG = 24;

function failures({ failures, requests }) {
  return `${count(failures)} of ${count(requests)} failed`;
}

function ailment(cluster) {
  if (cluster.failing) return failures(cluster.failing);
  return cluster.state === 'degraded' ? `${cluster.available} of ${cluster.destinations} up` : undefined;
}

function summary(cluster) {
  return [
    element('span', { class: 'id', title: cluster.id }, readable(cluster.id)),
    state(cluster.state, ailment(cluster)),
    sparkline(cluster.per_second, `requests per second of ${readable(cluster.id)} over the last minute`),
    element('span', { class: 'cells' },
      cell('req/s', rate(cluster.requests_per_second)), failedCell(cluster.last_minute),
      cell('p50', milliseconds(cluster.p50_ms)), cell('p99', milliseconds(cluster.p99_ms)), cell('in flight', count(cluster.in_flight))),
  ];
}

// The names are those of the log, the metrics and the sentence.
function causesOf(destination) {
  const causes = Object.entries(destination.causes);
  if (!causes.length) return element('span', { class: 'quiet' }, 'none');
  return causes.map(([cause, times]) => element('div', {}, `${cause.replaceAll('_', ' ')} × ${count(times)}`));
}

function statuses({ responses }) {
  const seen = Object.entries(responses).filter(([, times]) => times);
  if (!seen.length) return element('span', { class: 'quiet' }, 'none');
  return seen.map(([name, times]) => element('div', { class: name === '5xx' ? 'bad' : null }, `${name} × ${count(times)}`));
}

function nameOf(destination) {
  const label = destination.id.length > LONG ? destination.address.replace(/^[a-z]+:\/\//, '').replace(/\/$/, '') : readable(destination.id);
  return element('strong', { title: destination.id }, label);
}

function destinationRow(destination) {
  const { failing } = destination;
  const health = HEALTH[destination.health];
  const seen = failing && health !== 'down' ? (failing.failures >= failing.requests ? 'down' : 'degraded') : health;
  const word = seen !== health ? 'failing' : health === 'unknown' ? 'not checked' : destination.health.toLowerCase();
  const values = {
    Destination: [nameOf(destination), element('div', { class: 'mono quiet' }, destination.address), tags(destination)],
    State: [state(seen, word),
      element('div', { class: 'reason' }, destination.since !== null ? `for ${age(destination.since).replace(' ago', '').replace('just now', 'a moment')}` : '', destination.reason ? `: ${destination.reason}` : ''),
      destination.failing ? element('div', { class: 'reason bad' }, `${failures(destination.failing)} in the last 30 s: ${destination.failing.detail}`) : null,
      destination.eligible ? null : element('div', { class: 'reason' }, `not used: ${destination.why ?? 'unavailable'}`)],
    'In flight': count(destination.in_flight),
    'p50 / p99': `${milliseconds(destination.latency?.p50_ms)} / ${milliseconds(destination.latency?.p99_ms)}`,
    Requests: [count(destination.requests), sparkline(destination.per_second, `requests per second of ${destination.id}`)],
    Responses: statuses(destination),
    Failures: causesOf(destination),
  };
  return element('tr', {}, Object.entries(values).map(([label, value]) => element('td', { 'data-label': label }, element('div', {}, ...[value].flat()))));
}

function tags(destination) {
  const shown = [];
  if (destination.weight !== 1) shown.push(`weight ${destination.weight}`);
  if (destination.priority) shown.push(`priority ${destination.priority}`);
  if (destination.zone) shown.push(`zone ${destination.zone}`);
  return shown.map((text) => element('span', { class: 'tag' }, text));
}

function about(cluster) {
  const routes = cluster.routes.flatMap((id) => [', ', element('a', { href: link('routes', { filter: readable(id), open: id }) }, readable(id))]).slice(1);
  return element('p', { class: 'hint' }, `${cluster.policy}, ${cluster.availability}; from ${cluster.provider ?? 'the program'}; `,
    routes.length ? ['routes ', ...routes] : 'no route leads here');
}

async function detail(place, cluster) {
  const heads = ['Destination', 'State', 'In flight', 'p50 / p99', 'Requests', 'Responses', 'Failures'];
  const chart = place.querySelector('.chart-place') ?? element('div', { class: 'chart-place' });
  const table = element('div', { class: 'table-frame' }, element('table', { class: 'stack' },
    element('thead', {}, element('tr', {}, heads.map((head) => element('th', {}, head)))),
    element('tbody', {}, cluster.destinations.map(destinationRow))));
  const config = wholeConfig(place, cluster.config);
  show(place, cluster, about(cluster), chart, table, settings(cluster.config, SETTINGS), config);
  await drawCharts(chart, `?${new URLSearchParams({ cluster: cluster.id })}`, 'attempts');
}

export function followClusters() {
  return followList({ tab: 'clusters', path: '/api/v1/clusters', key: 'clusters', summary, detail, none: 'There is no cluster yet.' });
}
