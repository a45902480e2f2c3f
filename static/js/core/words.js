// How the page writes titles, lengths, numbers and sizes.

import { formatTime } from './time.js';

const THIN_SPACE = '\u2009';

/**
 * What a video is called: its title, or its file's name with separators as spaces. A bare number takes its folder's
 * name: "Broadcast 2".
 * @param {{title?: string, file_name?: string, folder?: string|null}} video
 */
export function titleOf({ title, file_name: file = '', folder }) {
  const stem = file.replace(/\.[^.]+$/, '');
  if (title && title !== stem && title !== file) return title;
  const words = stem.replace(/[_\-.]+/g, ' ').trim() || title || 'Untitled';
  if (!/^\d+$/.test(words)) return words[0].toUpperCase() + words.slice(1);
  const parent = folder?.split('/').pop();
  const kind = parent ? parent[0].toUpperCase() + parent.slice(1).replace(/s$/, '') : 'Clip';
  return `${kind} ${Number(words)}`;
}

/**
 * A number with thin spaces between thousands and at most one decimal.
 * @param {number} number
 */
export function formatNumber(number) {
  const [whole, rest] = String(Math.round(number * 10) / 10).split('.');
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, THIN_SPACE);
  return rest ? `${grouped}.${rest}` : grouped;
}

/**
 * "1 moment", "17 moments".
 * @param {number} number
 * @param {string} one
 * @param {string} [many]
 */
export function count(number, one, many = `${one}s`) {
  return `${formatNumber(number)} ${number === 1 ? one : many}`;
}

/**
 * A length: "1.0 s" under a minute, else "3:10".
 * @param {number|null|undefined} seconds
 */
export function formatLength(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return '–';
  return seconds < 60 ? `${seconds.toFixed(1)} s` : formatTime(seconds);
}

/**
 * An estimate, rounded: "12 s", "about 3 min", "about 1 h".
 * @param {number} seconds
 */
export function formatEstimate(seconds) {
  if (seconds < 90) return `${Math.max(1, Math.round(seconds))} s`;
  if (seconds < 5400) return `about ${Math.round(seconds / 60)} min`;
  return `about ${formatNumber(seconds / 3600)} h`;
}

/**
 * A size in steps of 1000: "149 kB", "8.5 MB".
 * @param {number} bytes
 */
export function formatBytes(bytes) {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let size = bytes;
  let unit = 0;
  while (size >= 999.5 && unit < units.length - 1) {
    size /= 1000;
    unit += 1;
  }
  const digits = size < 10 && unit > 1 ? size.toFixed(1) : String(Math.round(size));
  return `${digits} ${units[unit]}`;
}

/**
 * An instant as people write it: the time today, the day before that.
 * @param {string} instant such as 2026-11-22T14:05:10.000Z
 */
export function formatInstant(instant) {
  const date = new Date(instant);
  const sameDay = date.toDateString() === new Date().toDateString();
  return sameDay
    ? date.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' })
    : date.toLocaleDateString([], { day: 'numeric', month: 'short', year: 'numeric' });
}
