// Files of a drop or of a file picker, those in folders too, with the folder in which each lay.

/** @type {WeakMap<File, string>} */
const folders = new WeakMap();

/**
 * The folder that a file came with, such as `lectures/week 6`; '' for a file that was chosen by itself.
 * @param {File} file
 */
export function folderOf(file) {
  return folders.get(file) ?? file.webkitRelativePath.split('/').slice(0, -1).join('/');
}

/**
 * Must be called while the drop is handled: the browser empties the transfer afterwards.
 * @param {DataTransfer} dropped
 * @returns {Promise<File[]>}
 */
export async function filesOf(dropped) {
  const entries = [...dropped.items].map((item) => item.webkitGetAsEntry?.()).filter((entry) => entry !== null && entry !== undefined);
  if (entries.length === 0) return [...dropped.files];
  return (await Promise.all(entries.map(walk))).flat();
}

/**
 * @param {FileSystemEntry} entry
 * @returns {Promise<File[]>}
 */
async function walk(entry) {
  if (entry.isFile) {
    const file = await new Promise((resolve, reject) => /** @type {FileSystemFileEntry} */ (entry).file(resolve, reject));
    folders.set(file, entry.fullPath.split('/').slice(1, -1).join('/'));
    return [file];
  }
  const reader = /** @type {FileSystemDirectoryEntry} */ (entry).createReader();
  /** @type {File[]} */
  const files = [];
  // The reader answers in portions; an empty one is the end.
  for (;;) {
    /** @type {FileSystemEntry[]} */
    const portion = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (portion.length === 0) return files;
    files.push(...(await Promise.all(portion.map(walk))).flat());
  }
}
