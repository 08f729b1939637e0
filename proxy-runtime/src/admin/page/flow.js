// The drawing: sources → routes → clusters → destinations. Lines are as wide as their traffic.

import { link } from './address.js';
import { drawn, rate, readable, show, STATES } from './dom.js';

const COLUMNS = [
  { key: 'providers', title: 'Sources', x: 8, width: 150 },
  { key: 'routes', title: 'Routes', x: 206, width: 200 },
  { key: 'clusters', title: 'Clusters', x: 474, width: 190 },
  { key: 'destinations', title: 'Destinations', x: 732, width: 220 },
];
const ROW = 40, TOP = 30, BOX = 32, WIDTH = 960;

function shape(state, x, y) {
  if (state === 'degraded') return drawn('path', { class: 'shape', d: `M${x} ${y - 5}l5.5 10h-11z` });
  if (state === 'down' || state === 'failing') return drawn('rect', { class: 'shape', x: x - 4.5, y: y - 4.5, width: 9, height: 9 });
  return drawn('circle', { class: 'shape', cx: x, cy: y, r: 4.5 });
}

// Ids of one source often begin alike, so the end says more than the beginning: the last whole segments of a path, or the
// name in front of a last segment that is too long, such as `Orders/…5fdc35de`.
function clipped(text, width) {
  const room = Math.floor(width / 8.3);
  if (text.length <= room) return text;
  const segments = text.split('/');
  for (let from = 1; from < segments.length; from += 1) {
    const rest = segments.slice(from).join('/');
    if (rest && rest.length <= room) return rest;
  }
  const name = segments.at(-2) ?? '';
  if (name && name.length + 6 <= room) return `${name}/…${text.slice(text.length - (room - name.length - 2))}`;
  const head = Math.floor((room - 1) * 0.2);
  return `${text.slice(0, head)}…${text.slice(text.length - (room - 1 - head))}`;
}

function node(column, item, y) {
  const { x, width } = column;
  const detail = item.requests_per_second ? `${rate(item.requests_per_second)}/s` : '';
  const box = drawn('g', { class: 'node', 'data-state': item.state ?? '' },
    drawn('title', {}, [item.title ?? item.label, item.state ? STATES[item.state] ?? item.state : '', detail].filter(Boolean).join(' · ')),
    drawn('rect', { class: 'box', x, y: y - BOX / 2, width, height: BOX, rx: 7 }));
  const left = item.state ? x + 22 : x + 10;
  if (item.state) box.append(shape(item.state, x + 12, y));
  const room = width - (left - x) - 8 - (detail ? detail.length * 6.4 + 6 : 0);
  box.append(drawn('text', { x: left, y: y + 4.5 }, clipped(readable(item.label), room)));
  if (detail) box.append(drawn('text', { class: 'sub', x: x + width - 8, y: y + 4.5, 'text-anchor': 'end' }, detail));
  const tab = { routes: 'routes', clusters: 'clusters', destinations: 'clusters', providers: 'sources' }[column.key];
  const id = item.cluster ?? item.id;
  const target = item.more || tab === 'sources' ? link(tab) : link(tab, { filter: readable(id), open: id });
  // The lists have the same links for the keyboard.
  return drawn('a', { href: target, tabindex: -1 }, box);
}

function edge(from, to, perSecond, bad) {
  const middle = (from.x + to.x) / 2;
  const d = `M${from.x} ${from.y}C${middle} ${from.y} ${middle} ${to.y} ${to.x} ${to.y}`;
  const width = perSecond ? Math.min(7, 1.4 + Math.log10(1 + perSecond) * 1.7) : 1.2;
  const parts = [drawn('path', { class: `edge${perSecond ? ' live' : ''}${bad ? ' bad' : ''}`, d, 'stroke-width': width.toFixed(1) })];
  if (perSecond) parts.push(drawn('path', { class: 'pulse', d, 'stroke-width': Math.max(2, width - 1).toFixed(1) }));
  return parts;
}

export function drawFlow(place, flow) {
  const columns = COLUMNS.map((column) => {
    const items = flow[column.key].map((item) => ({ ...item, label: item.label ?? item.id }));
    const hidden = flow.hidden?.[column.key] ?? 0;
    return hidden ? { ...column, items: [...items, { label: `and ${hidden.toLocaleString('en')} more`, more: true }] } : { ...column, items };
  });
  const rows = Math.max(1, ...columns.map((column) => column.items.length));
  const height = TOP + rows * ROW + 6;
  const places = {};
  const edges = [], nodes = [];
  for (const column of columns) {
    const gap = (height - TOP) / Math.max(1, column.items.length);
    nodes.push(drawn('text', { class: 'head', x: column.x, y: 16 }, column.title));
    column.items.forEach((item, i) => {
      const y = TOP + gap * (i + 0.5);
      places[`${column.key} ${item.cluster ?? ''} ${item.id}`] = { left: { x: column.x, y }, right: { x: column.x + column.width, y } };
      nodes.push(node(column, item, y));
    });
  }
  const at = (key, id, cluster = '') => places[`${key} ${cluster} ${id}`];
  const connect = (from, to, perSecond, bad) => { if (from && to) edges.push(...edge(from.right, to.left, perSecond, bad)); };
  for (const route of flow.routes) {
    connect(at('providers', route.provider), at('routes', route.id), route.requests_per_second);
    for (const target of route.clusters) connect(at('routes', route.id), at('clusters', target.id), target.requests_per_second);
  }
  for (const destination of flow.destinations) {
    connect(at('clusters', destination.cluster), at('destinations', destination.id, destination.cluster), destination.requests_per_second, destination.state === 'down');
  }
  show(place, flow, drawn('svg', { viewBox: `0 0 ${WIDTH} ${height}`, 'aria-hidden': 'true' }, edges, nodes));
  place.setAttribute('aria-label', `${flow.providers.length} sources, ${flow.routes.length} routes, ${flow.clusters.length} clusters and ${flow.destinations.length} destinations are drawn; the tabs Clusters and Routes say the same.`);
}
