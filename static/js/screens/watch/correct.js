// Corrects a line of the transcript where it stands: Enter stores it, Escape leaves it as it was.

import { patch } from '../../core/api.js';
import { el } from '../../core/dom.js';
import { formatTime } from '../../core/time.js';
import { toasts } from '../../core/toast.js';

/** @typedef {import('./transcript.js').Transcript} Transcript */
/** @typedef {Api<'TranscriptLine'>} Line */

/** Turns a row into a field. @param {Transcript} transcript @param {number} place */
export function correctLine(transcript, place) {
  const line = transcript.lines[place];
  const row = transcript.rows[place];
  if (!line || !row?.isConnected) return;
  const box = el('textarea', { 'aria-label': `The line at ${formatTime(line.start)}`, rows: Math.max(2, line.text.split('\n').length), maxlength: 20_000 });
  box.value = line.text;
  const form = el('form', { class: 'cue correcting' }, el('span', { class: 'num' }, formatTime(line.start)), el('label', { class: 'field' }, box));
  let isOpen = true;
  const close = (/** @type {boolean} */ stores) => {
    if (!isOpen) return;
    isOpen = false;
    const text = box.value.trim();
    form.replaceWith(row);
    row.focus({ preventScroll: true });
    if (stores && text && text !== line.text) store(transcript, line, text);
  };
  box.addEventListener('keydown', (event) => {
    // Neither the player nor the list takes these keys.
    event.stopPropagation();
    if (event.isComposing || (event.key !== 'Escape' && (event.key !== 'Enter' || event.shiftKey))) return;
    event.preventDefault();
    close(event.key === 'Enter');
  });
  box.addEventListener('blur', () => close(true));
  row.replaceWith(form);
  box.focus();
}

/** @param {Transcript} transcript @param {Line} line @param {string} text @param {boolean} [isUndo] */
async function store(transcript, line, text, isUndo = false) {
  const before = line.text;
  try {
    /** @type {Line} */
    const stored = await patch(`/v1/videos/${transcript.video.id}/transcript/${line.id}`, { json: { text }, headers: { 'If-Match': line.etag ?? '*' } });
    if (!isUndo) toasts.show('Corrected the line.', { undo: () => store(transcript, line, before, true) });
    show(transcript, line, stored);
  } catch (error) {
    toasts.problem(error);
  }
}

/** Shows a stored line; its track is a person's now. @param {Transcript} transcript @param {Line} line @param {Line} stored */
function show(transcript, line, stored) {
  Object.assign(line, stored);
  const track = transcript.tracks.find(({ kind, language }) => kind === line.kind && language === line.language);
  if (track) Object.assign(track, { machine: stored.machine, provenance: stored.provenance });
  const place = transcript.lines.indexOf(line);
  const [old, row] = [transcript.rows[place], transcript.row(line, place)];
  if (old) {
    const isFocused = old === document.activeElement;
    row.className = old.className;
    old.replaceWith(row);
    transcript.rows[place] = row;
    if (isFocused) row.focus({ preventScroll: true });
  }
  transcript.scribe?.draw();
  transcript.onTracks();
}
