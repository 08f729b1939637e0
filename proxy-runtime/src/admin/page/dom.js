// Elements and numbers. Text from the network only ever becomes text nodes, so nothing in it can become markup.

export const STATES = { healthy: 'healthy', unknown: 'not checked', degraded: 'partly down', down: 'down', empty: 'empty', unhealthy: 'down', live: 'in step', partial: 'in part', starting: 'starting', restored: 'from disk', failing: 'failing', stopped: 'stopped' };

export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === 'class') made.className = value;
    else if (name.startsWith('on')) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? '' : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

export function drawn(tag, attributes = {}, ...children) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

// An id with its escapes decoded. The id itself belongs in a title: it is what filters and files have.
export function readable(id) {
  try { return decodeURIComponent(id); } catch { return id; }
}

export function state(name, text) {
  return element('span', { class: 'state', 'data-state': name }, element('i', { class: 'mark', 'aria-hidden': 'true' }), text ?? STATES[name] ?? name);
}

export function rate(perSecond) {
  if (!perSecond) return '0';
  if (perSecond < 10) return perSecond.toFixed(1);
  return Math.round(perSecond).toLocaleString('en');
}

export function count(number) {
  if (number < 100_000) return number.toLocaleString('en');
  return new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 }).format(number);
}

export function milliseconds(value) {
  if (value === null || value === undefined) return '–';
  if (value < 1) return `${Math.round(value * 1000)} µs`;
  if (value < 10) return `${value.toFixed(1)} ms`;
  if (value < 10_000) return `${Math.round(value)} ms`;
  return `${(value / 1000).toFixed(1)} s`;
}

export function age(seconds) {
  if (seconds === null || seconds === undefined) return 'never';
  if (seconds < 1.5) return 'just now';
  if (seconds < 90) return `${Math.round(seconds)} s ago`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 129_600) return `${Math.round(seconds / 3600)} h ago`;
  return `${Math.round(seconds / 86_400)} d ago`;
}

export function sparkline(values, label) {
  const width = 112, height = 26;
  const most = Math.max(...values, 0.001);
  const step = values.length > 1 ? width / (values.length - 1) : width;
  const points = values.map((value, i) => `${(i * step).toFixed(1)} ${(height - 2 - (value / most) * (height - 5)).toFixed(1)}`);
  const picture = drawn('svg', { class: 'spark', viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': label });
  if (points.length > 1) {
    picture.append(
      drawn('path', { class: 'area', d: `M0 ${height}L${points.join('L')}L${width} ${height}Z` }),
      drawn('path', { d: `M${points.join('L')}` }),
    );
  }
  return picture;
}

// Replaces what `parent` shows, unless nothing changed: a selection or a focus survives.
export function show(parent, key, ...children) {
  const fingerprint = JSON.stringify(key);
  if (parent.dataset.shown === fingerprint) return;
  parent.dataset.shown = fingerprint;
  parent.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined));
}

export async function ask(path) {
  const answer = await fetch(path, { headers: { accept: 'application/json' }, cache: 'no-store' });
  const body = await answer.json();
  if (!answer.ok) throw new Error(body.error ?? `${answer.status}`);
  return body;
}
