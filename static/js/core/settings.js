// The menu of settings.

import { keys } from './keys.js';
import { openMenu } from './menu.js';

/** @param {import('./shell.js').Shell} shell @param {HTMLElement} opener */
export function openSettings(shell, opener) {
  if (opener.getAttribute('aria-expanded') === 'true') return;
  const { theme } = shell;
  openMenu(opener, [
    { label: 'As the system', checked: !theme, act: () => shell.chooseTheme(null) },
    { label: 'Light', checked: theme === 'light', act: () => shell.chooseTheme('light') },
    { label: 'Dark', checked: theme === 'dark', act: () => shell.chooseTheme('dark') },
    null,
    { label: keys.lettersAct ? 'Switch letter keys off' : 'Switch letter keys on', act: () => { keys.lettersAct = !keys.lettersAct; } },
    { label: 'Documentation of the API', icon: 'external-link', act: () => location.assign('/docs') },
  ]);
}
