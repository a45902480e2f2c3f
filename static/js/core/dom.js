// Builds elements. The only way by which this page makes DOM: data goes in as text nodes and attributes,
// never as markup, so a file name can't become a script.

/** @typedef {Node|string|number|null|undefined|false} Child */
/** @typedef {Child|Child[]|(Child|Child[])[]} Children */

/**
 * Makes an element.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Record<string, any>} [props] attributes; `class`, `on: {event: handler}`, `data: {key: value}` and
 *   `vars: {'--name': value}` are special; `null`, `undefined` and `false` leave the attribute out, `true` sets it empty
 * @param {...Children} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function el(tag, props = {}, ...children) {
  return /** @type {HTMLElementTagNameMap[T]} */ (build(document.createElement(tag), props, children));
}

/**
 * Makes an element of a drawing: as `el`, with SVG's names.
 * @param {string} tag
 * @param {Record<string, any>} [props]
 * @param {...Children} children
 * @returns {SVGElement}
 */
export function svg(tag, props = {}, ...children) {
  return /** @type {SVGElement} */ (build(document.createElementNS('http://www.w3.org/2000/svg', tag), props, children));
}

/**
 * @param {HTMLElement|SVGElement} node
 * @param {Record<string, any>} props
 * @param {Children[]} children
 */
function build(node, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (name === 'on') {
      for (const [event, handler] of Object.entries(value)) node.addEventListener(event, handler);
    } else if (name === 'data') {
      Object.assign(node.dataset, value);
    } else if (name === 'vars') {
      for (const [property, content] of Object.entries(value)) node.style.setProperty(property, String(content));
    } else if (value !== null && value !== undefined && value !== false) {
      node.setAttribute(name, value === true ? '' : String(value));
    }
  }
  append(node, children);
  return node;
}

/**
 * Replaces all children.
 * @template {Element} N
 * @param {N} node
 * @param {...Children} children
 */
export function fill(node, ...children) {
  node.replaceChildren();
  append(node, children);
  return node;
}

/**
 * @param {Element} node
 * @param {Children[]} children
 */
function append(node, children) {
  for (const child of children.flat(3)) {
    if (child !== null && child !== undefined && child !== false && child !== '') node.append(/** @type {any} */ (child));
  }
}

/** @type {Map<string, SVGElement>} an icon each, to copy */
const drawings = new Map();

/**
 * Reads the sprite; before that, icons are empty. They are copied out of it: a `use` that refers into another file costs
 * a list of cards half its time.
 */
export async function readIcons() {
  const answer = await fetch('/static/vendor/lucide.svg');
  const sprite = new DOMParser().parseFromString(await answer.text(), 'image/svg+xml');
  for (const symbol of sprite.querySelectorAll('symbol')) {
    drawings.set(symbol.id, svg('svg', { viewBox: symbol.getAttribute('viewBox'), 'aria-hidden': 'true' }, ...symbol.children));
  }
}

/**
 * An icon of the sprite: a name of `vendor/lucide.svg`. It is decoration; the control beside or around it has the name.
 * @param {string} name
 * @param {string} [size] `s` or `l`
 */
export function icon(name, size = '') {
  const drawn = /** @type {SVGElement} */ (drawings.get(name)?.cloneNode(true) ?? svg('svg', { 'aria-hidden': 'true' }));
  drawn.setAttribute('class', `i ${size}`.trim());
  return drawn;
}

/**
 * A button. Without text among its children it needs `aria-label`.
 * @param {Children} children
 * @param {((event: MouseEvent) => void)|null} onClick null: a listener further out acts for it
 * @param {Record<string, any>} [props]
 */
export function button(children, onClick, props = {}) {
  return el('button', { type: 'button', class: 'btn', ...props, ...(onClick && { on: { click: onClick } }) }, children);
}

/**
 * A square button with an icon alone. Its tooltip is its name, then its key.
 * @param {string} name of the icon
 * @param {string} label
 * @param {(event: MouseEvent) => void} onClick
 * @param {{key?: string, class?: string} & Record<string, any>} [props]
 */
export function iconButton(name, label, onClick, { key, class: classes = 'btn ghost sq', ...props } = {}) {
  return button(icon(name), onClick, {
    class: classes, 'aria-label': label, title: key ? `${label}  ${key}` : label, ...props,
  });
}

/** A key, printed beside the action that it starts. Hidden from touch screens by the style sheet. */
export function keyCap(/** @type {string} */ name) {
  return el('kbd', { 'aria-hidden': 'true' }, name);
}
