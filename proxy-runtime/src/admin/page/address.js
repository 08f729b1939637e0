// What the page shows is in its address: the tab, and the filter, order, page and open rows of its list.

export const TABS = ['overview', 'clusters', 'routes', 'requests', 'explain', 'listeners', 'sources', 'problems', 'changes'];

function read() {
  const [path, query = ''] = location.hash.replace(/^#\/?/, '').split('?');
  const tab = TABS.includes(path) ? path : TABS[0];
  return { tab, values: new URLSearchParams(query) };
}

export function tab() {
  return read().tab;
}

export function value(name) {
  return read().values.get(name) ?? '';
}

export function values(name) {
  return read().values.getAll(name);
}

export function link(target, changes = {}) {
  const query = new URLSearchParams(Object.entries(changes).flatMap(([name, one]) => [one].flat().filter(Boolean).map((text) => [name, text])));
  return `#/${target}${query.size ? `?${query}` : ''}`;
}

// Changes values of the tab. Typing replaces the address, so that going back leaves the list at once.
export function set(changes) {
  const { tab: current, values: kept } = read();
  for (const [name, one] of Object.entries(changes)) {
    kept.delete(name);
    for (const text of [one].flat()) if (text !== '') kept.append(name, text);
  }
  history.replaceState(null, '', `#/${current}${kept.size ? `?${kept}` : ''}`);
}
