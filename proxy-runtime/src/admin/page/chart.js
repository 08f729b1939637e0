// Charts of the last hour.

import { ask, drawn, element, milliseconds, rate } from './dom.js';

const WIDTH = 560, HEIGHT = 132, LEFT = 60, RIGHT = 6, TOP = 12, BOTTOM = 20;

function x(i, length) {
  return LEFT + (i / (length - 1)) * (WIDTH - LEFT - RIGHT);
}

// A round number that is not below the largest value.
function ceiling(most) {
  if (!(most > 0)) return 1;
  const unit = 10 ** Math.floor(Math.log10(most));
  return [1, 2, 2.5, 5, 10].map((step) => step * unit).find((bound) => bound >= most * 0.999);
}

// The shortest of these times that has all requests, in steps of ten seconds.
function windowOf(requests) {
  const first = requests.findIndex((number) => number > 0);
  const wanted = first < 0 ? 0 : requests.length - first + 1;
  return [30, 90, 180].find((steps) => steps >= wanted) ?? requests.length;
}

function axes(most, minutes, text) {
  const lines = [];
  for (const part of [0, 0.5, 1]) {
    const y = HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM);
    lines.push(drawn('line', { class: 'grid', x1: LEFT, x2: WIDTH - RIGHT, y1: y, y2: y }),
      drawn('text', { class: 'tick', x: LEFT - 6, y: y + 3.5, 'text-anchor': 'end' }, text(most * part)));
  }
  [[`${minutes} min ago`, 0, 'start'], ['now', 1, 'end']].forEach(([label, part, anchor]) => {
    lines.push(drawn('text', { class: 'tick', x: LEFT + part * (WIDTH - LEFT - RIGHT), y: HEIGHT - 5, 'text-anchor': anchor }, label));
  });
  return lines;
}

// The path of a line, which has gaps where there is no value.
function line(series, most) {
  let path = '', isOpen = false;
  series.forEach((value, i) => {
    if (value === null) { isOpen = false; return; }
    const y = HEIGHT - BOTTOM - (value / most) * (HEIGHT - TOP - BOTTOM);
    // A line of no length is a dot.
    path += `${isOpen ? 'L' : 'M'}${x(i, series.length).toFixed(1)} ${y.toFixed(1)}${isOpen ? '' : 'h0'}`;
    isOpen = true;
  });
  return path;
}

function area(series, most) {
  const floor = HEIGHT - BOTTOM;
  return `${line(series, most)}L${x(series.length - 1, series.length)} ${floor}L${LEFT} ${floor}Z`;
}

function figure(title, keys, label, ...parts) {
  return element('figure', {},
    element('figcaption', {}, title, keys.map(([name, text]) => element('span', { class: `key ${name}` }, text))),
    drawn('svg', { class: 'chart', viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img', 'aria-label': label }, parts.flat()));
}

export function charts(history, unit = 'requests') {
  const { step } = history;
  const steps = windowOf(history.requests);
  const late = (name) => history[name].slice(-steps);
  const [requests, failures] = [late('requests'), late('failures')];
  const minutes = (steps * step) / 60;
  const time = minutes === 60 ? 'last hour' : `last ${minutes} minutes`;
  const perSecond = requests.map((number) => number / step);
  const failed = failures.map((number) => number / step);
  const most = ceiling(Math.max(...perSecond));
  const all = requests.reduce((sum, number) => sum + number, 0);
  const bad = failures.reduce((sum, number) => sum + number, 0);
  const share = all ? `${((bad / all) * 100).toFixed(bad && bad / all < 0.01 ? 2 : 1)} % failed` : 'none';
  // Without a response there is no latency.
  const known = (series) => series.map((value) => value || null);
  const lines = ['p99', 'p90', 'p50'].map((name) => [name, known(late(`${name}_ms`))]);
  const slowest = ceiling(Math.max(...late('p99_ms')));
  return element('div', { class: 'charts' },
    figure(`${unit}/s, ${time}`, [['all', `all ${all.toLocaleString('en')}`], ['failed', share]],
      `${unit} per second over the ${time}: ${all} in all, ${share}, at most ${rate(Math.max(...perSecond))} per second`,
      axes(most, minutes, (value) => (most < 10 ? value.toFixed(1) : String(Math.round(value)))),
      drawn('path', { class: 'area all', d: area(perSecond, most) }), drawn('path', { class: 'line all', d: line(perSecond, most) }),
      bad ? drawn('path', { class: 'area failed', d: area(failed, most) }) : []),
    figure(`latency, ${time}`, [['p50', 'p50'], ['p90', 'p90'], ['p99', 'p99']],
      `latency over the ${time}, at most ${milliseconds(Math.max(...late('p99_ms')))} at the 99th percentile`,
      axes(slowest, minutes, milliseconds),
      lines.map(([name, series]) => drawn('path', { class: `line ${name}`, d: line(series, slowest) }))));
}

// Keeps charts in a place up to date; asks again after each step.
const ASK_EVERY = 5000;
export async function drawCharts(place, query, unit) {
  const now = Date.now();
  if (place.dataset.of === query && now - Number(place.dataset.at) < ASK_EVERY) return;
  Object.assign(place.dataset, { of: query, at: now });
  try {
    place.replaceChildren(charts(await ask(`/api/v1/history${query}`), unit));
  } catch (error) {
    place.textContent = `no chart: ${error.message}`;
  }
}
