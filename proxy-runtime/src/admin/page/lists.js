// Listeners, sources, problems and changes.

import { age, count, element, show, state } from './dom.js';

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

const DAY = 86_400;

function expiry(seconds) {
  if (seconds === null) return ['unknown', 'expiry unknown'];
  const days = Math.floor(Math.abs(seconds) / DAY);
  const years = Math.floor(days / 365);
  const span = years > 2 ? `${count(years)} years` : days ? `${count(days)} ${days === 1 ? 'day' : 'days'}` : 'less than a day';
  if (seconds < 0) return ['down', `expired ${span} ago`];
  return [seconds < 14 * DAY ? 'degraded' : 'healthy', `expires in ${span}`];
}

export function showListeners(place, listeners) {
  const day = (certificate) => ({ ...certificate, expires_in: Math.floor(certificate.expires_in / DAY) });
  const key = listeners.map((listener) => ({ ...listener, certificates: listener.certificates.map(day) }));
  show(place, key, listeners.length ? listeners.map((listener) => element('div', { class: 'card' },
    element('h3', {}, listener.name, element('span', { class: 'quiet' }, listener.tls ? 'TLS' : 'cleartext')),
    element('p', { class: 'mono' }, listener.address),
    listener.strict_paths ? element('span', { class: 'tag' }, 'strict paths') : null,
    listener.trusts_senders ? element('span', { class: 'tag' }, 'trusts its senders') : null,
    listener.certificates.map((certificate) => element('p', {}, state(...expiry(certificate.expires_in)), element('div', { class: 'names' }, certificate.names.join(', ') || 'no name'))),
  )) : [element('p', { class: 'quiet' }, 'The program has not named its listeners.')]);
}
