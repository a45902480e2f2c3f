// Times: how they are written, and how the API's clock maps to a media element's clock.

/**
 * Writes seconds as 4:05, 1:04:05 or, with `fraction`, 4:05.25. Rounded to the millisecond, trailing zeros dropped.
 * @param {number|null|undefined} seconds
 */
export function formatTime(seconds, { fraction = false } = {}) {
  if (!Number.isFinite(seconds)) return '–';
  const milliseconds = Math.max(0, Math.round(seconds * 1000));
  const whole = Math.floor(milliseconds / 1000);
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor(whole / 60) % 60;
  const pad = (number) => String(number).padStart(2, '0');
  const clock = hours > 0 ? `${hours}:${pad(minutes)}:${pad(whole % 60)}` : `${minutes}:${pad(whole % 60)}`;
  const rest = milliseconds % 1000;
  if (!fraction || rest === 0) return clock;
  return `${clock}.${String(rest).padStart(3, '0').replace(/0+$/, '')}`;
}

/** Reads 754, 754.2, 754s, 12m34s and 1h2m3s as seconds; null for anything else. */
export function parseTime(text) {
  const parts = /^(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s?)?$/i.exec(text.trim());
  if (!parts || parts[0] === '') return null;
  const [hours, minutes, seconds] = parts.slice(1).map((part) => Number(part ?? 0));
  return hours * 3600 + minutes * 60 + seconds;
}

/** A range such as 12:34.2–12:41. */
export function formatRange(start, end) {
  return `${formatTime(start, { fraction: true })}–${formatTime(end, { fraction: true })}`;
}

/** A remaining time in words: "12 s", "3 min", "2 h". */
export function formatRemaining(seconds) {
  if (!Number.isFinite(seconds)) return '';
  if (seconds < 90) return `${Math.max(1, Math.round(seconds))} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${Math.round(seconds / 3600)} h`;
}

/** The time of day of an instant such as 2026-11-22T14:05:10.000Z, as people here write it. */
export function formatClock(instant) {
  return new Date(instant).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', second: '2-digit' });
}

/** Seconds rounded to the API's millisecond. */
export function toMilliseconds(seconds) {
  return Math.round(seconds * 1000) / 1000;
}

// The API floors frame times and the offset to the millisecond, so the frame that a time names may lie up
// to 2 ms later. Without this a seek to the first frame of a clip shows the last frame of the one before.
const FLOOR_SLACK = 0.002;

/**
 * The two clocks of one source. The API counts from the first presented frame; a media element that plays
 * the original counts on the container's clock, one that plays the rendition from the first frame.
 */
export class MediaClock {
  /** @param {number} offset the first frame's time on the element's clock, seconds */
  constructor(offset) {
    this.offset = offset;
  }

  /** Where to seek the element to show the frame that is on screen at `seconds`. */
  toElement(seconds) {
    return Math.max(0, seconds) + this.offset + FLOOR_SLACK;
  }

  /** What the API calls the element's current time. */
  fromElement(elementSeconds) {
    return Math.max(0, elementSeconds - this.offset - (elementSeconds > this.offset ? FLOOR_SLACK : 0));
  }
}
