// What the loaded models can do, and a plain word about those that know nothing yet.

import { listSpaces } from './api.js';

/** The kinds of query, and what to call what they ask. */
export const KINDS = [
  { name: 'text', label: 'texts' },
  { name: 'clip', label: 'clips' },
  { name: 'composed', label: 'clips with a change' },
  { name: 'spoken', label: 'what is said' },
];

/** Whether a space can answer queries of a kind. */
export function canAnswer({ can }, kind) {
  if (kind === 'text') return can.text;
  if (kind === 'clip') return can.frames;
  if (kind === 'composed') return can.composed || (can.text && can.frames);
  return can.text && !can.frames;
}

export class Spaces {
  constructor() {
    this.items = [];
  }

  async load() {
    this.items = await listSpaces();
  }

  /** The space that answers queries of a kind: text, clip, composed. */
  activeFor(kind) {
    return this.items.find((space) => (space.active_for || []).includes(kind)) ?? null;
  }

  /** Whether a clip and a modification text can be asked together. */
  canCompose() {
    return this.items.some((space) => (space.active_for || []).length > 0 && space.can && canAnswer(space, 'composed'));
  }

  /** What a person should know before trusting the answers; null if all is well. */
  warning() {
    const text = this.activeFor('text');
    const clip = this.activeFor('clip');
    const load = 'Start the server with --model to use a trained one.';
    const untrained = (space) => space?.trained_on === 'nothing';
    if (untrained(text) && untrained(clip)) {
      return `The model ${text.name} knows nothing yet: it has not been trained. It sees little more than colour and layout, `
        + `and words mean nothing to it, so the order of text results is arbitrary. ${load}`;
    }
    if (untrained(text)) {
      return `The model for text, ${text.name}, knows nothing yet: words mean nothing to it, so the order of text results is arbitrary. ${load}`;
    }
    if (untrained(clip)) {
      return `The model for clips, ${clip.name}, knows nothing yet: it sees little more than colour and layout. ${load}`;
    }
    const drawn = [text, clip].find((space) => space?.trained_on === 'rendered_clips');
    if (drawn) {
      return `The model ${drawn.name} is trained on rendered clips: it knows dives and gymnastics as drawings show them, `
        + 'and its answers about real footage mean little. Start the server with --model to use another one.';
    }
    return null;
  }

  /** One line for the footer. */
  line() {
    const active = this.items.filter((space) => (space.active_for || []).length > 0);
    return active.map((space) => `${space.name}: ${space.active_for.join(', ')}`).join(' · ');
  }
}
