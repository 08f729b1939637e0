// The box that explains where a request would go.

import { ask, element, readable } from './dom.js';
import * as address from './address.js';

const OUTCOMES = {
  matched: 'healthy', not_found: 'down', method_not_allowed: 'down', no_cluster: 'down', no_partition: 'down',
  no_destination: 'down', answered: 'healthy', answered_by_policy: 'degraded', refused: 'down', loop_detected: 'down', rejected: 'down',
};

// How far a request is from a route: each condition that fails, with what was wanted and what came.
function miss({ route, rejected, misses }) {
  if (!misses.length) return element('div', { title: route }, `${readable(route)}: ${rejected === 'precedence' ? 'takes it too, but comes later' : rejected}`);
  return element('div', { title: route }, `${readable(route)}: `, misses.map(({ criterion, wanted, came }, i) => [i ? '; ' : '', `${criterion} is `, came === null ? 'missing' : element('code', {}, came), ', wanted ', element('code', {}, wanted)]).flat());
}

function steps(answer) {
  const rows = [];
  const row = (name, ...value) => rows.push(element('dt', {}, name), element('dd', {}, ...value.flat()));
  if (answer.route) row('Route', element('strong', {}, answer.route));
  const values = Object.entries(answer.route_values ?? {});
  if (values.length) row('Path values', element('code', {}, values.map(([name, value]) => `${name} = ${value}`).join(', ')));
  if (answer.location) row('Redirects to', element('code', {}, answer.location));
  if (answer.error_page) row('Error page', element('code', {}, answer.error_page));
  if (answer.policies?.length) row('Policies', answer.policies.map((policy) => element('div', {}, policy, answer.undecided_policies.includes(policy) ? element('span', { class: 'quiet' }, ' is not asked here: a service, a password or a count decides') : null)));
  if (answer.filters?.length) row('Filters', answer.filters.join(', '), element('span', { class: 'quiet' }, ' are not called here'));
  if (answer.rules?.length) row('Limits and retries', answer.rules.map((rule) => element('div', {}, rule)));
  if (answer.allow?.length) row('Allowed methods', answer.allow.join(', '));
  if (answer.partition) {
    const { source, key, number, keys } = answer.partition;
    row('Partition key', `${source}`, key === null ? '' : element('code', {}, ` = ${key}`), number !== null && number !== key ? `, as a number ${number}` : '');
    if (keys !== null) row('Partition', element('code', {}, keys));
  }
  if (answer.affinity) {
    const { policy, key_name, key, destination } = answer.affinity;
    row('Session affinity', `${policy} in `, element('code', {}, key_name), `, key: ${key.replace('_', ' ')}`, destination === null ? '' : ` (${destination})`);
  }
  if (answer.cluster) row('Cluster', element('strong', {}, answer.cluster), answer.policy ? ` picks by ${answer.policy}` : '');
  if (answer.destinations?.length) {
    row('Destinations', answer.destinations.map((destination) => element('div', {},
      `${destination.eligible ? '✓' : '✗'} ${destination.id} `, element('code', {}, destination.address), destination.why ? ` — ${destination.why}` : '')));
  }
  if (answer.forwarded) {
    row('Would be sent', element('code', {}, `${answer.forwarded.method} ${answer.forwarded.uri}`),
      answer.forwarded.headers.map(([name, value]) => element('div', {}, element('code', {}, `${name}: ${value}`))));
  }
  if (answer.considered?.length) {
    const more = Math.max(0, answer.considered.length - 30) + answer.considered_omitted;
    row('Other routes, nearest first', answer.considered.slice(0, 30).map(miss), more ? element('div', { class: 'quiet' }, `and ${more} more`) : null);
  }
  return element('dl', { class: 'steps' }, rows);
}

function sentence(answer) {
  if (answer.outcome === 'matched') return `Route ${answer.route} takes it.`;
  if (answer.outcome === 'answered') return `Route ${answer.route} answers it: ${answer.status}.`;
  if (answer.outcome === 'answered_by_policy') return `Route ${answer.route} takes it, and its ${answer.rejected}: ${answer.status}.`;
  if (answer.outcome === 'not_found') return 'No route takes it: 404.';
  if (answer.outcome === 'method_not_allowed') return 'Routes take the path, but not with this method: 405.';
  if (answer.outcome === 'no_cluster') return `Route ${answer.route} takes it, but leads to no cluster: 503.`;
  if (answer.outcome === 'loop_detected') return `Route ${answer.route} takes it, but this proxy has forwarded it before: 508.`;
  if (answer.outcome === 'no_partition') return `Route ${answer.route} takes it, but ${answer.partition.why}: 400.`;
  if (answer.outcome === 'refused') return `Route ${answer.route} takes it, and refuses it: ${answer.status}, ${answer.refused}.`;
  if (answer.outcome === 'rejected') return `${answer.route ? `Route ${answer.route} takes it, but it is rejected` : 'The server rejects it before any route is asked'}: ${answer.status}, ${answer.rejected}.`;
  return `Route ${answer.route} takes it, but ${answer.rejected ?? 'no destination is available'}: ${answer.status}.`;
}

// Offers the listeners of which one has to be named.
export function offerListeners(form, names) {
  const field = form.querySelector('.listener');
  const select = field.querySelector('select');
  const offered = [...select.options].map((option) => option.value);
  if (offered.join('\n') === names.join('\n')) return;
  field.hidden = names.length === 0;
  select.replaceChildren(...names.map((name) => element('option', { value: name }, name)));
}

// The request of a line of the access log.
function pasted(text) {
  const { method, scheme, host, path, remote } = JSON.parse(text);
  if (!method || !host) throw new Error('the line has no request that could be read');
  return { method, url: `${scheme}://${host}${path}`, remote: remote ?? '' };
}

function fill(form, { method, url, remote, header = '' }) {
  form.elements.method.value = method || 'GET';
  form.elements.url.value = url;
  form.elements.remote.value = remote;
  form.elements.header.value = header;
}

let explained = '';

// Explains the request in the address of the page, once.
export function explainAddress(form) {
  if (explained === location.hash || !address.value('url')) return;
  explained = location.hash;
  fill(form, { method: address.value('method'), url: address.value('url'), remote: address.value('remote'), header: address.values('header').join('\n') });
  form.requestSubmit();
}

export function startExplain(form, place) {
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    try {
      if (form.elements.url.value.trim().startsWith('{')) fill(form, pasted(form.elements.url.value));
    } catch (error) {
      place.replaceChildren(element('p', { class: 'outcome', 'data-state': 'down' }, element('i', { class: 'mark', 'aria-hidden': 'true' }), `This is no line of the access log: ${error.message}`));
      return;
    }
    const asked = new FormData(form);
    let url = asked.get('url').trim();
    if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(url)) url = `http://${url.startsWith('/') ? 'localhost' : ''}${url}`;
    const query = new URLSearchParams({ method: asked.get('method').trim() || 'GET', url });
    for (const line of asked.get('header').split('\n')) if (line.trim()) query.append('header', line.trim());
    if (asked.get('remote').trim()) query.append('remote', asked.get('remote').trim());
    if (asked.get('listener')) query.append('listener', asked.get('listener'));
    address.set({ method: query.get('method'), url, header: query.getAll('header'), remote: query.get('remote') ?? '' });
    explained = location.hash;
    try {
      const answer = await ask(`/api/v1/explain?${query}`);
      place.replaceChildren(
        element('p', { class: 'outcome', 'data-state': OUTCOMES[answer.outcome] }, element('i', { class: 'mark', 'aria-hidden': 'true' }), sentence(answer)),
        steps(answer));
    } catch (error) {
      place.replaceChildren(element('p', { class: 'outcome', 'data-state': 'down' }, element('i', { class: 'mark', 'aria-hidden': 'true' }), error.message));
    }
  });
}
