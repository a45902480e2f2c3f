// Times: how they are written, and how the API's clock maps to a media element's clock.

/**
 * Writes seconds as 4:05, 1:04:05 or, with `fraction`, 4:05.25. Rounded to the millisecond, trailing zeros dropped.
 * @param {number|null|undefined} seconds
 */
export function formatTime(seconds, { fraction = false } = {}) {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return '–';
  const milliseconds = Math.max(0, Math.round(seconds * 1000));
  const whole = Math.floor(milliseconds / 1000);
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor(whole / 60) % 60;
  const pad = (/** @type {number} */ number) => String(number).padStart(2, '0');
  const clock = hours > 0 ? `${hours}:${pad(minutes)}:${pad(whole % 60)}` : `${minutes}:${pad(whole % 60)}`;
  const rest = milliseconds % 1000;
  if (!fraction || rest === 0) return clock;
  return `${clock}.${String(rest).padStart(3, '0').replace(/0+$/, '')}`;
}

/**
 * Reads 754, 754.2, 754s, 12m34s, 1h2m3s, 12:34 and 1:02:03.5 as seconds; null for anything else.
 * @param {string} text
 */
export function parseTime(text) {
  const clock = /^(?:(\d+):)?(\d+):(\d{1,2}(?:\.\d+)?)$/.exec(text.trim());
  if (clock) return Number(clock[1] ?? 0) * 3600 + Number(clock[2]) * 60 + Number(clock[3]);
  const parts = /^(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s?)?$/i.exec(text.trim());
  if (!parts || parts[0] === '') return null;
  const [hours, minutes, seconds] = parts.slice(1).map((part) => Number(part ?? 0));
  return hours * 3600 + minutes * 60 + seconds;
}

/**
 * A range such as 12:34.2–12:41.
 * @param {number} start seconds
 * @param {number} end seconds
 */
export function formatRange(start, end) {
  return `${formatTime(start, { fraction: true })}–${formatTime(end, { fraction: true })}`;
}

/**
 * Seconds rounded to the API's millisecond.
 * @param {number} seconds
 */
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

  /**
   * Where to seek the element to show the frame that is on screen at `seconds`.
   * @param {number} seconds
   */
  toElement(seconds) {
    return Math.max(0, seconds) + this.offset + FLOOR_SLACK;
  }

  /**
   * What the API calls the element's current time.
   * @param {number} elementSeconds
   */
  fromElement(elementSeconds) {
    return Math.max(0, elementSeconds - this.offset - (elementSeconds > this.offset ? FLOOR_SLACK : 0));
  }
}
