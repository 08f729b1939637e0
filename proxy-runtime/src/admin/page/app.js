// Asks the admin API once a second while the page is seen, and shows what it says.

import { age, ask, count, element, milliseconds, rate, show } from './dom.js';
import { drawFlow } from './flow.js';
import { followClusters } from './clusters.js';
import { followRoutes, showChanges, showProblems, showProviders } from './lists.js';
import { offerListeners, startExplain } from './explain.js';

const byId = (id) => document.getElementById(id);
const clusters = followClusters(byId('cluster-list'), byId('cluster-more'), byId('cluster-filter'), byId('cluster-state'));
const routes = followRoutes(byId('route-rows'), byId('route-more'), byId('route-filter'));
startExplain(byId('explain-form'), byId('explain-answer'));

function showOverview(overview) {
  document.body.dataset.generation = overview.generation;
  document.title = `${overview.state === 'ok' ? '' : '⚠ '}proxy: ${overview.sentence}`;
  byId('verdict').dataset.state = overview.state;
  byId('sentence').textContent = overview.sentence;
  const { traffic, counts } = overview;
  const figures = [
    ['requests/s', rate(traffic.requests_per_second)],
    ['in flight', count(traffic.active_requests)],
    ['p50', milliseconds(traffic.p50_ms)],
    ['p99', milliseconds(traffic.p99_ms)],
    ['failed so far', count(traffic.errors)],
    ['routes', count(counts.routes)],
    ['clusters', count(counts.clusters)],
    ['destinations', count(counts.destinations)],
  ];
  show(byId('figures'), figures, figures.map(([name, value]) => element('div', {}, element('dt', {}, name), element('dd', {}, value))));
  const { errors, warnings } = counts;
  const badge = byId('problem-count');
  badge.hidden = errors + warnings === 0;
  badge.dataset.state = errors ? 'error' : 'warning';
  badge.textContent = errors + warnings;
  byId('footer').textContent = `version ${overview.version} · up ${age(overview.uptime).replace(' ago', '')} · configuration ${overview.generation}, revision ${overview.revision.slice(0, 12)}`;
  offerListeners(byId('explain-form'), overview.listeners);
  drawFlow(byId('flow-picture'), overview.flow);
}

function showLost(error) {
  byId('verdict').dataset.state = 'down';
  byId('sentence').textContent = `The proxy does not answer: ${error.message}. Figures below are old.`;
}

let generation = null;
let busy = false;

async function refresh() {
  if (busy || document.hidden) return;
  busy = true;
  try {
    const overview = await ask('/api/v1/overview');
    showOverview(overview);
    const [providers, problems] = await Promise.all([ask('/api/v1/providers'), ask('/api/v1/problems'), clusters(overview), routes(overview)]);
    showProviders(byId('provider-cards'), providers.providers);
    showProblems(byId('problem-list'), problems.problems);
    if (overview.generation !== generation) {
      const { changes } = await ask('/api/v1/changes');
      generation = overview.generation;
      showChanges(byId('change-list'), changes);
    }
  } catch (error) {
    showLost(error);
  } finally {
    busy = false;
  }
}

for (const control of ['cluster-filter', 'cluster-state', 'route-filter']) {
  byId(control).addEventListener('input', refresh);
}
document.addEventListener('visibilitychange', refresh);
setInterval(refresh, 1000);
refresh();
