// The box that explains where a request would go.

import { ask, element } from './dom.js';

const OUTCOMES = {
  matched: 'healthy', not_found: 'down', method_not_allowed: 'down', no_cluster: 'down', no_partition: 'down',
  no_destination: 'down', loop_detected: 'down', rejected: 'down',
};

function steps(answer) {
  const rows = [];
  const row = (name, ...value) => rows.push(element('dt', {}, name), element('dd', {}, ...value.flat()));
  if (answer.route) row('Route', element('strong', {}, answer.route));
  const values = Object.entries(answer.route_values ?? {});
  if (values.length) row('Path values', element('code', {}, values.map(([name, value]) => `${name} = ${value}`).join(', ')));
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
    row('Other routes', answer.considered.slice(0, 30).map((other) => element('div', {}, `${other.route}: ${other.rejected}`)),
      answer.considered.length > 30 ? element('div', { class: 'quiet' }, `and ${answer.considered.length - 30} more`) : null);
  }
  return element('dl', { class: 'steps' }, rows);
}

function sentence(answer) {
  if (answer.outcome === 'matched') return `Route ${answer.route} takes it.`;
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

export function startExplain(form, place) {
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const asked = new FormData(form);
    let url = asked.get('url').trim();
    if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(url)) url = `http://${url.startsWith('/') ? 'localhost' : ''}${url}`;
    const query = new URLSearchParams({ method: asked.get('method').trim() || 'GET', url });
    if (asked.get('header').trim()) query.append('header', asked.get('header').trim());
    if (asked.get('listener')) query.append('listener', asked.get('listener'));
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
