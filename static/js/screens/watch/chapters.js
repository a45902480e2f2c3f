// Titles of slides among the lines that were read in the picture. They divide a transcript into chapters.

/** @typedef {Api<'TranscriptLine'>} Line */

/** The lines of a slide begin within this many seconds. */
const TOGETHER = 1;
/** Fewer lines that begin together are no slide: what is added to one, a score, a caption. */
const LEAST_LINES = 3;
/** A title stands in this part of the picture, from its top. */
const TOP = 0.35;

/** The line of each slide that is its title; a title that stays from slide to slide, once. @param {Line[]} lines in order of start */
export function titlesOf(lines) {
  /** @type {Set<Line>} */
  const titles = new Set();
  /** @type {Line[]} */
  let slide = [];
  let last = '';
  const take = () => {
    const title = slide.length >= LEAST_LINES ? uppermost(slide) : null;
    if (title && topOf(title) < TOP && title.text !== last) {
      titles.add(title);
      last = title.text;
    }
    slide = [];
  };
  for (const line of lines) {
    if (!line.box || line.kind !== 'ocr') continue;
    if (slide.length > 0 && line.start > slide[0].start + TOGETHER) take();
    slide.push(line);
  }
  take();
  return titles;
}

/** @param {Line} line */
const topOf = ({ box }) => box?.top ?? 1;

/** @param {Line[]} lines */
const uppermost = (lines) => lines.reduce((first, line) => (topOf(line) < topOf(first) ? line : first));
