// Asks the admin API once a second while the page is seen, and shows what it says.

import { age, ask, count, element, milliseconds, rate, readable, show, state } from './dom.js';
import * as address from './address.js';
import { drawCharts } from './chart.js';
import { drawFlow } from './flow.js';
import { followClusters } from './clusters.js';
import { followRoutes } from './routes.js';
import { showChanges, showListeners, showProblems, showProviders } from './lists.js';
import { showRequests } from './requests.js';
import { explainAddress, offerListeners, startExplain } from './explain.js';

const byId = (id) => document.getElementById(id);
startExplain(byId('explain-form'), byId('explain-answer'));

// What each tab asks for. Only the one that is seen is kept up to date.
const CONTENT = {
  overview: async (overview) => {
    drawFlow(byId('flow-picture'), overview.flow);
    await drawCharts(byId('overview-charts'), '', 'requests');
  },
  clusters: followClusters(),
  routes: followRoutes(),
  requests: () => showRequests(byId('request-list'), byId('request-note')),
  explain: async () => explainAddress(byId('explain-form')),
  listeners: async () => showListeners(byId('listener-cards'), (await ask('/api/v1/listeners')).listeners),
  sources: async () => showProviders(byId('provider-cards'), (await ask('/api/v1/providers')).providers),
  problems: async () => showProblems(byId('problem-list'), (await ask('/api/v1/problems')).problems),
  changes: async () => showChanges(byId('change-list'), (await ask('/api/v1/changes')).changes),
};

function showTab() {
  const current = address.tab();
  for (const name of address.TABS) byId(name).hidden = name !== current;
  for (const link of byId('tabs').children) {
    if (link.hash === `#/${current}`) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
}

// The words of the sentence that name clusters lead to them.
function showSentence(overview) {
  const attention = overview.counts.clusters_down + overview.counts.clusters_degraded;
  const target = overview.state === 'ok' || overview.state === 'starting' ? null : attention ? address.link('clusters') : address.link(TABS[overview.concerns[0]?.kind] ?? 'problems');
  show(byId('sentence'), [overview.sentence, target], target ? element('a', { href: target }, overview.sentence) : overview.sentence);
}

// Where each part that needs attention is shown.
const PLACES = { cluster: 'clusters', route: 'routes' };
const TABS = { policy: 'problems', source: 'sources', service: 'sources' };

function showConcerns(concerns) {
  const place = byId('concerns');
  place.hidden = !concerns.length;
  show(place, concerns, concerns.slice(0, 8).map(({ kind, id, state: name, cause, detail }) => {
    const to = PLACES[kind] ? address.link(PLACES[kind], { filter: readable(id), open: id }) : address.link(TABS[kind] ?? 'problems');
    return element('li', {}, state(name), ' ', element('a', { href: to, title: id }, `${kind} ${readable(id)}`), cause ? ` ${cause.replaceAll('_', ' ')}` : '', detail ? element('div', { class: 'quiet' }, detail) : null);
  }), concerns.length > 8 ? element('li', { class: 'quiet' }, `and ${concerns.length - 8} more`) : null);
}

function showOverview(overview) {
  document.body.dataset.generation = overview.generation;
  document.title = `${overview.state === 'ok' ? '' : '⚠ '}proxy: ${overview.sentence}`;
  byId('verdict').dataset.state = overview.state;
  showSentence(overview);
  showConcerns(overview.concerns);
  const { traffic, counts } = overview;
  const figures = [
    ['requests/s', rate(traffic.requests_per_second)],
    ['in flight', count(traffic.active_requests)],
    ['p50', milliseconds(traffic.p50_ms)],
    ['p99', milliseconds(traffic.p99_ms)],
    ['failed, last minute', failed(traffic.last_minute)],
    ['routes', count(counts.routes)],
    ['clusters', count(counts.clusters)],
    ['destinations', count(counts.destinations)],
  ];
  show(byId('figures'), [traffic, counts], figures.map(([name, value]) => element('div', {}, element('dt', {}, name), element('dd', {}, value))));
  showBadge('problem-count', counts.errors, counts.warnings);
  showBadge('cluster-count', counts.clusters_down, counts.clusters_degraded);
  byId('footer').textContent = `version ${overview.version} · up ${age(overview.uptime).replace(' ago', '')} · configuration ${overview.generation}, revision ${overview.revision.slice(0, 12)}`;
  offerListeners(byId('explain-form'), overview.listeners);
}

function failed(minute) {
  if (!minute?.requests) return '–';
  const part = (minute.failures / minute.requests) * 100;
  return element('span', part ? { class: 'bad' } : {}, `${part && part < 1 ? part.toFixed(2) : part.toFixed(part ? 1 : 0)} %`);
}

function showBadge(id, bad, worrying) {
  const badge = byId(id);
  badge.hidden = bad + worrying === 0;
  badge.dataset.state = bad ? 'error' : 'warning';
  badge.textContent = bad + worrying;
}

function showLost(error) {
  byId('verdict').dataset.state = 'down';
  delete byId('sentence').dataset.shown;
  byId('sentence').textContent = `The proxy does not answer: ${error.message}. Figures below are old.`;
}

let busy = false;

async function refresh() {
  if (busy || document.hidden) return;
  busy = true;
  try {
    const overview = await ask('/api/v1/overview');
    showOverview(overview);
    await CONTENT[address.tab()](overview);
  } catch (error) {
    showLost(error);
  } finally {
    busy = false;
  }
}

function turn() {
  showTab();
  refresh();
}

window.addEventListener('hashchange', () => { turn(); window.scrollTo(0, 0); });
document.addEventListener('visibilitychange', refresh);
setInterval(refresh, 1000);
turn();
