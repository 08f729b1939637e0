// The list of routes.

import { count, element, milliseconds, rate, readable, show, state } from './dom.js';
import { link } from './address.js';
import { drawCharts } from './chart.js';
import { cell, failedCell, followList, settings, wholeConfig } from './list.js';

// How many clusters of one route are shown.
const TARGETS = 12;
const SETTINGS = ['Transforms', 'AuthorizationPolicy', 'CorsPolicy', 'RateLimiterPolicy', 'TimeoutPolicy', 'OutputCachePolicy', 'Timeout', 'MaxRequestBodySize', 'Filters', 'Layers', 'Metadata'];

function summary(route) {
  const minute = route.last_minute;
  return [
    element('span', { class: 'id' }, element('span', { title: route.id }, readable(route.id)), element('span', { class: 'takes mono' }, route.takes)),
    state(route.state, route.refused ? 'rejects all' : route.answers ?? (route.clusters.length ? undefined : 'no cluster: 503')),
    element('span', { class: 'cells' },
      cell('req/s', rate(route.requests_per_second)), failedCell(minute),
      cell('p50', milliseconds(minute?.requests ? minute.p50_ms : null)), cell('p99', milliseconds(minute?.requests ? minute.p99_ms : null)),
      cell('requests', count(route.requests))),
  ];
}

function targets(route) {
  const name = (target) => (target.exists ? element('a', { href: link('clusters', { filter: readable(target.cluster), open: target.cluster }) }, readable(target.cluster)) : state('down', `${readable(target.cluster)} does not exist`));
  const line = (target) => {
    if (target.keys !== null) return [`${target.keys} → `, name(target)];
    return route.clusters.length > 1 && target.share !== null ? [name(target), ` (${Math.round(target.share * 100)} %)`] : [name(target)];
  };
  const more = route.clusters.length - TARGETS;
  return [
    route.partition_key ? element('div', { class: 'quiet' }, `by ${route.partition_key}`) : null,
    ...route.clusters.slice(0, TARGETS).map((target) => element('div', {}, line(target))),
    more > 0 ? element('div', { class: 'quiet' }, `and ${count(more)} more`) : null,
  ];
}

async function detail(place, route) {
  const chart = place.querySelector('.chart-place') ?? element('div', { class: 'chart-place' });
  const config = wholeConfig(place, route.config);
  show(place, route,
    element('dl', { class: 'steps' },
      element('dt', {}, 'Takes'), element('dd', { class: 'mono' }, route.takes),
      element('dt', {}, 'Goes to'), element('dd', {}, route.answers ? `${route.answers}, by the proxy itself` : route.clusters.length ? targets(route) : state('down', 'no cluster: 503')),
      route.refused ? [element('dt', {}, 'Rejects'), element('dd', {}, route.refused)] : [],
      element('dt', {}, 'From'), element('dd', {}, `${route.provider ?? 'the program'}, order ${route.order}`)),
    settings(route.config, SETTINGS), chart, config);
  await drawCharts(chart, `?${new URLSearchParams({ route: route.id })}`, 'requests');
}

export function followRoutes() {
  return followList({ tab: 'routes', path: '/api/v1/routes', key: 'routes', summary, detail, none: 'There is no route yet.' });
}
