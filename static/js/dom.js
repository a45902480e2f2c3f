// Builds elements. The only way by which this page makes DOM: data goes in as text nodes and attributes,
// never as markup, so a file name can't become a script.

/**
 * Makes an element.
 * @param {string} tag
 * @param {object} [props] attributes; `class`, `on: {event: handler}` and `data: {key: value}` are special;
 *   `null`, `undefined` and `false` leave the attribute out, `true` sets it empty
 * @param {...(Node|string|null|undefined|false|Array)} children
 */
export function el(tag, props = {}, ...children) {
  return build(document.createElement(tag), props, children);
}

/** Makes an element of a drawing: as `el`, with SVG's names. */
export function svg(tag, props = {}, ...children) {
  return build(document.createElementNS('http://www.w3.org/2000/svg', tag), props, children);
}

function build(node, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (name === 'on') {
      for (const [event, handler] of Object.entries(value)) node.addEventListener(event, handler);
    } else if (name === 'data') {
      Object.assign(node.dataset, value);
    } else if (value !== null && value !== undefined && value !== false) {
      node.setAttribute(name, value === true ? '' : String(value));
    }
  }
  append(node, children);
  return node;
}

/** Replaces all children. */
export function fill(node, ...children) {
  node.replaceChildren();
  append(node, children);
  return node;
}

function append(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false && child !== '') node.append(child);
  }
}

/** A button of the page's one look. */
export function button(label, onClick, props = {}) {
  return el('button', { type: 'button', class: 'button', ...props, on: { click: onClick } }, label);
}

/**
 * A thumbnail that falls back to words where the server has no picture yet.
 * The picture is decoration: the title beside it is the name.
 */
export function picture(url, blank, ...extra) {
  const box = el('div', { class: 'picture' });
  const note = () => el('div', { class: 'blank' }, blank);
  if (url) {
    // `loading` before `src`: a picture without it is fetched at once.
    const image = el('img', { loading: 'lazy', decoding: 'async', alt: '', src: url });
    image.addEventListener('error', () => image.replaceWith(note()));
    box.append(image);
  } else {
    box.append(note());
  }
  append(box, extra);
  return box;
}
