// The query that an address carries: what is asked, where to look, and the same query for other addresses.

/** The parameters of an address that make its query; all others are settings of a view. */
const NAMES = ['q', 'clip', 'start', 'end', 'mod', 'upload', 'name', 'sources'];
const SOURCES = ['visual', 'spoken'];

/** Query files live in this tab only; the address holds their number. */
export class QueryFiles {
  constructor() {
    this.files = [];
  }

  /** Keeps a file and returns the address that searches with it. */
  pathFor(file) {
    this.files.push(file);
    return `/?${new URLSearchParams({ upload: String(this.files.length), name: file.name })}`;
  }

  get(number) {
    return this.files[Number(number) - 1] ?? null;
  }
}

/** Whether an address asks for anything. */
export function isSearch(parameters) {
  return ['q', 'clip', 'upload'].some((name) => (parameters.get(name) ?? '').trim() !== '');
}

/** Whether it asks by words alone. */
export function isText(parameters) {
  return isSearch(parameters) && !parameters.get('clip') && !parameters.get('upload');
}

/** The query alone, for an address of another view. */
export function queryParameters(parameters) {
  const query = new URLSearchParams();
  if (!isSearch(parameters)) return query;
  for (const name of NAMES) if (parameters.get(name)) query.set(name, parameters.get(name));
  return query;
}

/** The query of an address in the API's words; null if its file is not in this tab. */
export function queryOf(parameters, files) {
  const modification = (parameters.get('mod') ?? '').trim();
  const change = modification ? { modification } : {};
  if (parameters.get('clip')) {
    const start = Number.parseFloat(parameters.get('start'));
    const end = Number.parseFloat(parameters.get('end'));
    return { query: { clip: { video_id: parameters.get('clip'), start, end }, ...change }, file: null };
  }
  if (parameters.get('upload')) {
    const file = files.get(parameters.get('upload'));
    return file && { query: { upload: true, ...change }, file };
  }
  return { query: { text: parameters.get('q').trim() }, file: null };
}

/** Where to look, as part of a search's body; nothing where the address leaves it to the server. */
export function sourcesOf(parameters) {
  const named = (parameters.get('sources') ?? '').split(',').filter((source) => SOURCES.includes(source));
  const hasWords = isText(parameters) || Boolean((parameters.get('mod') ?? '').trim());
  return named.length > 0 && hasWords ? { sources: named } : {};
}

/** The query in the words of a timeline's address; null for one that a timeline can't take. */
export function timelineQuery({ text, clip, modification }) {
  if (text) return { text };
  if (!clip) return null;
  const { video_id: clipVideo, start, end } = clip;
  return { clip_video_id: clipVideo, start, end, ...(modification ? { modification } : {}) };
}
