// Uploads.

/**
 * @param {import('../main.js').Page} page
 * @param {File[]} files
 */
export function addFiles(page, files) {
  page.toasts.show(`${files.length}`);
}
