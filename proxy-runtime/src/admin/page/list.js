// A list of rows that open. Filtering, sorting and paging happen in the proxy, so that 5,000 rows are no burden here.

import { STATES, ask, count, element, show } from './dom.js';
import * as address from './address.js';

const PAGE = 50;

const MENUS = {
  state: [['', 'any state'], ...['healthy', 'unknown', 'degraded', 'down', 'empty'].map((name) => [name, STATES[name]])],
  sort: [['', 'worst first'], ['name', 'by name'], ['rate', 'busiest first'], ['failed', 'most failed first'], ['p99', 'slowest first'], ['requests', 'most requests first']],
};

export function followList({ tab, path, key, summary, detail, none }) {
  const section = document.getElementById(tab);
  const list = section.querySelector('.list');
  const more = section.querySelector('.more');
  const controls = [...section.querySelectorAll('[name]')];
  const rows = new Map();
  let asked = '';

  for (const control of controls) {
    control.append(...(MENUS[control.name] ?? []).map(([value, text]) => element('option', { value }, text)));
    control.addEventListener('input', () => { address.set({ [control.name]: control.value, page: '' }); refresh(); });
  }

  function page() { return Math.max(1, Math.round(Number(address.value('page')) || 1)); }

  function turn(to) {
    address.set({ page: to > 1 ? String(to) : '' });
    refresh().then(() => section.scrollIntoView({ block: 'start' }));
  }

  function rowOf(item) {
    let row = rows.get(item.id);
    if (!row) {
      row = element('details', { class: 'row', 'data-id': item.id }, element('summary'), element('div', { class: 'detail' }));
      row.addEventListener('toggle', () => {
        const others = address.values('open').filter((id) => id !== item.id);
        if (address.tab() === tab) address.set({ open: row.open ? [...others, item.id] : others });
        if (row.open) fill(row);
      });
      rows.set(item.id, row);
    }
    // A link of the page may open a row that was shown before.
    if (address.values('open').includes(item.id)) row.open = true;
    row.dataset.state = item.state;
    update(row.firstElementChild, summary(item));
    return row;
  }

  async function fill(row) {
    const place = row.querySelector('.detail');
    try {
      await detail(place, await ask(`${path}/${encodeURIComponent(row.dataset.id)}`));
    } catch (error) {
      place.textContent = `cannot be shown: ${error.message}`;
    }
  }

  function showPages(matching) {
    const last = Math.max(1, Math.ceil(matching / PAGE));
    const current = Math.min(page(), last);
    if (last === 1) { show(more, [matching], `${count(matching)} shown.`); return; }
    const button = (text, to) => element('button', { type: 'button', disabled: to < 1 || to > last, onclick: () => turn(to) }, text);
    show(more, [current, matching],
      button('Previous', current - 1), ` ${count((current - 1) * PAGE + 1)} to ${count(Math.min(matching, current * PAGE))} of ${count(matching)} `, button('Next', current + 1));
  }

  async function refresh() {
    for (const control of controls) {
      const wanted = address.value(control.name);
      if (document.activeElement !== control && control.value !== wanted) control.value = wanted;
    }
    const query = new URLSearchParams({ limit: PAGE, offset: (page() - 1) * PAGE });
    for (const control of controls) query.set(control.name, address.value(control.name));
    asked = String(query);
    const { [key]: items, matching } = await ask(`${path}?${query}`);
    // Another one has been asked for.
    if (asked !== String(query)) return;
    const shown = items.map(rowOf);
    const ids = new Set(items.map((item) => item.id));
    for (const [id, row] of rows) if (!ids.has(id)) { row.remove(); rows.delete(id); }
    shown.forEach((row, i) => { if (list.children[i] !== row) list.insertBefore(row, list.children[i] ?? null); });
    list.querySelectorAll(':scope > p').forEach((note) => note.remove());
    if (!shown.length) list.append(element('p', { class: 'quiet' }, controls.some((control) => control.name !== 'sort' && control.value) ? 'Nothing matches the filter.' : none));
    showPages(matching);
    await Promise.all(shown.filter((row) => row.open).map(fill));
  }
  return refresh;
}

// Replaces the parts that have changed, so that a selection in the others survives.
function update(parent, parts) {
  parts.forEach((part, i) => {
    const old = parent.children[i];
    if (!old) parent.append(part);
    else if (!old.isEqualNode(part)) old.replaceWith(part);
  });
}

export function cell(label, value, state) {
  return element('span', { class: 'cell', 'data-state': state }, element('span', { class: 'label' }, label), element('span', { class: 'value' }, value));
}

// The part of requests that failed in the last minute.
export function failedCell(minute) {
  if (!minute || !minute.requests) return cell('failed', '–');
  const part = minute.failures / minute.requests;
  const text = part === 0 ? '0 %' : part < 0.001 ? '<0.1 %' : `${(part * 100).toFixed(part < 0.1 ? 1 : 0)} %`;
  return cell('failed', text, part >= 0.5 ? 'down' : part > 0 ? 'degraded' : undefined);
}

// Settings of the configuration, as lines; `names` come first and alone.
export function settings(config, names) {
  const text = (value) => (typeof value === 'object' ? Object.entries(value).map(([name, one]) => `${name}: ${typeof one === 'object' ? JSON.stringify(one) : one}`).join(', ') : String(value));
  const lines = names.filter((name) => config?.[name] !== undefined && config[name] !== null).map((name) => {
    const all = Array.isArray(config[name]) ? config[name] : [config[name]];
    return [element('dt', {}, name), element('dd', {}, all.map((one) => element('div', {}, element('code', {}, text(one)))))];
  });
  return lines.length ? element('dl', { class: 'steps' }, lines.flat()) : null;
}

// The whole configuration of a row, closed until it is wanted.
export function wholeConfig(place, config) {
  let box = place.querySelector('details.config');
  if (!box) box = element('details', { class: 'config' }, element('summary', {}, 'Configuration'), element('pre', { tabindex: 0 }));
  show(box.lastElementChild, config, JSON.stringify(config, null, 2));
  return box;
}
