// Routes, sources, problems and changes.

import { age, ask, count, element, rate, readable, show, state } from './dom.js';

// How many clusters of one route are shown.
const TARGETS = 12;

function targetsOf(route) {
  const line = (target) => {
    if (target.keys !== null) return `${target.keys} → ${target.cluster}`;
    return route.clusters.length > 1 ? `${target.cluster} (${Math.round(target.share * 100)} %)` : target.cluster;
  };
  const more = route.clusters.length - TARGETS;
  return [
    route.partition_key ? element('div', { class: 'quiet' }, `by ${route.partition_key}`) : null,
    route.clusters.slice(0, TARGETS).map((target) => element('div', {}, line(target))),
    more > 0 ? element('div', { class: 'quiet' }, `and ${count(more)} more`) : null,
  ].flat();
}

export function followRoutes(rows, more, filter) {
  return async function refresh() {
    const query = new URLSearchParams({ filter: filter.value, limit: 100 });
    const { routes, matching } = await ask(`/api/v1/routes?${query}`);
    show(rows, routes, routes.map((route) => element('tr', {},
      element('td', {}, element('strong', { title: route.id }, readable(route.id))),
      element('td', { class: 'mono' }, route.takes),
      element('td', {}, route.clusters.length
        ? targetsOf(route)
        : state('down', 'no cluster: 503')),
      element('td', { class: 'number' }, rate(route.requests_per_second)),
      element('td', { class: 'number' }, count(route.requests)))));
    show(more, [routes.length, matching], matching > routes.length ? [`${count(routes.length)} of ${count(matching)} shown; filter to see others.`] : []);
  };
}

export function showProviders(place, providers) {
  show(place, providers, providers.length ? providers.map((provider) => element('div', { class: 'card', 'data-state': provider.state },
    element('h3', {}, provider.name, state(provider.state)),
    element('p', { class: 'quiet' }, `${count(provider.routes)} routes, ${count(provider.clusters)} clusters; last good answer ${age(provider.age)}${provider.required ? '; required for readiness' : ''}`),
    provider.last_error ? element('p', {}, element('strong', {}, 'Last error: '), provider.last_error) : null,
    provider.quarantined.map((service) => element('p', {}, element('strong', {}, `${service.service} is quarantined (${service.serves}): `), service.reason)),
  )) : [element('p', { class: 'quiet' }, 'The configuration was handed over by the program.')]);
}

export function showProblems(place, problems) {
  show(place, problems, problems.length ? problems.map((problem) => element('div', { class: 'problem', 'data-state': problem.severity },
    element('strong', {}, `${problem.severity}: `), problem.message,
    problem.suggestion ? element('span', { class: 'fix' }, `→ ${problem.suggestion}`) : null,
    element('code', { class: 'where' }, [problem.provider, problem.pointer, problem.origin, problem.code].filter(Boolean).join('  '))))
    : [element('p', { class: 'quiet' }, 'None.')]);
}

function kindOf(line) {
  if (/\badded\b/.test(line)) return 'added';
  return /\bremoved\b/.test(line) ? 'removed' : 'changed';
}

export function showChanges(place, changes) {
  show(place, changes, changes.map((change) => element('li', {},
    element('span', { class: 'quiet' }, `${new Date(Date.now() - change.at * 1000).toLocaleTimeString()} · no. ${change.generation}`, change.outcome === 'refused' ? element('div', {}, state('down', 'refused')) : null),
    element('ul', {}, change.lines.map((line) => element('li', { class: kindOf(line) }, line)),
      change.omitted ? element('li', { class: 'quiet' }, `and ${count(change.omitted)} more`) : null))));
}
