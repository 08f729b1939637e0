// The list of clusters. Filtering and paging happen in the proxy, so that 5,000 clusters are no burden here.

import { age, ask, count, element, milliseconds, rate, readable, show, sparkline, state } from './dom.js';

const PAGE = 50;
const HEALTH = { Healthy: 'healthy', Unhealthy: 'down', Unknown: 'unknown' };

function averaged(perSecond) {
  const late = perSecond.slice(-5);
  return late.reduce((sum, value) => sum + value, 0) / Math.max(1, late.length);
}

function cell(label, value) {
  return element('span', { class: 'cell' }, element('span', { class: 'label' }, label), value);
}

function failures({ failures, requests }) {
  return `${count(failures)} of ${count(requests)} failed`;
}

function ailment(cluster) {
  if (cluster.failing) return failures(cluster.failing);
  return cluster.state === 'degraded' ? `${cluster.available} of ${cluster.destinations} up` : undefined;
}

function summary(cluster) {
  return [
    element('span', { class: 'id' }, cluster.id),
    state(cluster.state, ailment(cluster)),
    sparkline(cluster.per_second, `requests per second of ${cluster.id} over the last minute`),
    element('span', { class: 'cells' },
      cell('req/s', rate(cluster.requests_per_second)),
      cell('in flight', count(cluster.in_flight)),
      cell('p50', milliseconds(cluster.p50_ms)),
      cell('p99', milliseconds(cluster.p99_ms))),
  ];
}

function errorsOf(destination) {
  const kinds = Object.entries(destination.errors);
  if (!kinds.length) return element('span', { class: 'quiet' }, 'none');
  return kinds.map(([kind, times]) => element('div', {}, `${kind} × ${count(times)}`));
}

function destinationRow(destination) {
  const values = {
    Destination: [element('strong', {}, destination.id), element('div', { class: 'mono quiet' }, destination.address), tags(destination)],
    State: [state(HEALTH[destination.health], HEALTH[destination.health] === 'unknown' ? 'not checked' : destination.health.toLowerCase()),
      element('div', { class: 'reason' }, destination.since !== null ? `for ${age(destination.since).replace(' ago', '').replace('just now', 'a moment')}` : '', destination.reason ? `: ${destination.reason}` : ''),
      destination.failing ? element('div', { class: 'reason' }, `${failures(destination.failing)} in the last 30 s: ${destination.failing.detail}`) : null,
      destination.eligible ? null : element('div', { class: 'reason' }, `not used: ${destination.why ?? 'unavailable'}`)],
    'In flight': count(destination.in_flight),
    'req/s': [rate(averaged(destination.per_second)), sparkline(destination.per_second, `requests per second of ${destination.id}`)],
    'p50 / p99': `${milliseconds(destination.latency?.p50_ms)} / ${milliseconds(destination.latency?.p99_ms)}`,
    Requests: count(destination.requests),
    Errors: errorsOf(destination),
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

function detail(cluster) {
  const heads = ['Destination', 'State', 'In flight', 'req/s', 'p50 / p99', 'Requests', 'Errors'];
  const about = `${cluster.policy}, ${cluster.availability}; from ${cluster.provider ?? 'the program'}; ` +
    (cluster.routes.length ? `routes ${cluster.routes.map(readable).join(', ')}` : 'no route leads here');
  return [
    element('p', { class: 'hint' }, about),
    element('div', { class: 'table-frame' }, element('table', { class: 'stack' },
      element('thead', {}, element('tr', {}, heads.map((head) => element('th', {}, head)))),
      element('tbody', {}, cluster.destinations.map((destination) => destinationRow(destination))))),
  ];
}

export function followClusters(list, more, filter, wanted) {
  let limit = PAGE;
  const rows = new Map();

  async function refreshDetail(row) {
    try {
      const cluster = await ask(`/api/v1/clusters/${encodeURIComponent(row.dataset.id)}`);
      row.querySelector('.destinations').replaceChildren(...detail(cluster));
    } catch (error) {
      row.querySelector('.destinations').textContent = `cannot be shown: ${error.message}`;
    }
  }

  function rowOf(cluster) {
    let row = rows.get(cluster.id);
    if (!row) {
      row = element('details', { class: 'cluster', 'data-id': cluster.id },
        element('summary'), element('div', { class: 'destinations' }));
      row.addEventListener('toggle', () => { if (row.open) refreshDetail(row); });
      rows.set(cluster.id, row);
    }
    row.dataset.state = cluster.state;
    show(row.firstElementChild, cluster, summary(cluster));
    return row;
  }

  return async function refresh(overview) {
    const query = new URLSearchParams({ filter: filter.value, state: wanted.value, limit });
    const { clusters, matching } = await ask(`/api/v1/clusters?${query}`);
    const shown = clusters.map((cluster) => rowOf(cluster));
    const ids = new Set(clusters.map((cluster) => cluster.id));
    for (const [id, row] of rows) if (!ids.has(id)) { row.remove(); rows.delete(id); }
    shown.forEach((row, i) => { if (list.children[i] !== row) list.insertBefore(row, list.children[i] ?? null); });
    list.querySelectorAll('.quiet').forEach((note) => note.remove());
    if (!shown.length) list.append(element('p', { class: 'quiet' }, overview.counts.clusters ? 'No cluster matches the filter.' : 'There is no cluster yet.'));
    await Promise.all(shown.filter((row) => row.open).map((row) => refreshDetail(row)));
    show(more, [shown.length, matching], matching > shown.length
      ? [`${count(shown.length)} of ${count(matching)} shown. `, element('button', { class: 'plain', type: 'button', onclick: () => { limit += 4 * PAGE; refresh(overview); } }, 'Show more')]
      : []);
  };
}
