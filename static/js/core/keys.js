// Keyboard: every action has a key, and the list of keys is made from the same table that acts.

const OFF = 'reprise_keys_off';
/** How long after G its second letter is awaited, ms. */
const SECOND_MS = 1500;

/**
 * @typedef {object} Binding
 * @property {string} key as `nameOf` names it: `R`, `Shift+R`, `Ctrl+A`, `ArrowUp`, `Space`, `?`; or `G S`: one after the other
 * @property {string} label what it does, for the list of keys
 * @property {(event: KeyboardEvent) => unknown} act returns false where it does not apply, and the key keeps its usual effect
 * @property {boolean} [inFields] acts while a text field has the focus, too
 */

/** @typedef {{name: string, bindings: Binding[]}} Scope */

/**
 * A key's name. A character that needs Shift is its own name; letters are capitals.
 * @param {KeyboardEvent} event
 */
export function nameOf(event) {
  const { key } = event;
  const letter = key.length === 1 ? key.toUpperCase() : key;
  const base = letter === ' ' ? 'Space' : letter;
  const shifted = event.shiftKey && (key.length > 1 || key.toUpperCase() !== key.toLowerCase());
  return [(event.ctrlKey || event.metaKey) && 'Ctrl', event.altKey && 'Alt', shifted && 'Shift', base].filter(Boolean).join('+');
}

/** @param {EventTarget|null} target */
function isField(target) {
  return target instanceof HTMLElement && (target.isContentEditable || target.matches('textarea, select, input:not([type="checkbox"], [type="radio"], [type="range"])'));
}

class Keys {
  constructor() {
    /** @type {Scope[]} the last one is asked first */
    this.scopes = [];
    this.first = '';
    this.firstAt = 0;
  }

  /** @param {EventTarget} target */
  start(target) {
    target.addEventListener('keydown', (event) => this.pressed(/** @type {KeyboardEvent} */ (event)));
  }

  /**
   * Adds keys. Returns the function that takes them away again.
   * @param {string} name of the group in the list of keys
   * @param {Binding[]} bindings
   */
  add(name, bindings) {
    const scope = { name, bindings };
    this.scopes.push(scope);
    return () => { this.scopes = this.scopes.filter((one) => one !== scope); };
  }

  /** Whether keys without Ctrl or Alt act at all: they can be switched off (WCAG 2.1.4). */
  get lettersAct() {
    return localStorage.getItem(OFF) === null;
  }

  set lettersAct(act) {
    if (act) localStorage.removeItem(OFF);
    else localStorage.setItem(OFF, '1');
  }

  /** @param {KeyboardEvent} event */
  pressed(event) {
    if (event.defaultPrevented || event.isComposing) return;
    const name = nameOf(event);
    const inField = isField(event.target);
    const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey && event.key.length === 1 && event.key !== ' ';
    if (isPlain && (inField || !this.lettersAct)) return;
    const pair = event.timeStamp - this.firstAt < SECOND_MS && !inField ? `${this.first} ${name}` : '';
    this.first = '';
    if (pair && this.act(pair, event, inField)) return;
    if (this.act(name, event, inField)) return;
    if (!inField && this.scopes.some(({ bindings }) => bindings.some(({ key }) => key.startsWith(`${name} `)))) {
      this.first = name;
      this.firstAt = event.timeStamp;
    }
  }

  /**
   * @param {string} name
   * @param {KeyboardEvent} event
   * @param {boolean} inField
   */
  act(name, event, inField) {
    const dialog = document.querySelector('dialog[open]');
    for (const { name: scope, bindings } of [...this.scopes].reverse()) {
      if (dialog && scope !== dialog.id) continue;
      for (const binding of bindings) {
        if (binding.key !== name || (inField && !binding.inFields)) continue;
        if (binding.act(event) === false) continue;
        event.preventDefault();
        return true;
      }
    }
    return false;
  }
}

export const keys = new Keys();
