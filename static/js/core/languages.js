// Languages of subtitles: their names, and what the name of a file says.

/** The tag of an unknown language. */
export const UNKNOWN = 'und';

/**
 * `German` for `de`, where the browser knows; the tag itself where it doesn't.
 * @param {string} tag
 */
export function languageName(tag) {
  if (tag === UNKNOWN) return 'Subtitles';
  try {
    return new Intl.DisplayNames(undefined, { type: 'language' }).of(tag);
  } catch {
    return tag;
  }
}

/**
 * The language in `lecture.pt-BR.vtt`; `und` without one.
 * @param {string} name
 */
export function languageOfFile(name) {
  return /\.([a-z]{2,3}(?:-[a-z0-9]{2,8})*)\.(?:srt|vtt)$/i.exec(name)?.[1] ?? UNKNOWN;
}

/**
 * Whether a file is one of subtitles.
 * @param {File} file
 */
export function isSubtitleFile(file) {
  return /\.(srt|vtt)$/i.test(file.name);
}
