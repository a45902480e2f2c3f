// Files of a drop, those in dropped folders too.

/**
 * @param {DataTransfer} dropped
 * @returns {Promise<File[]>}
 */
export async function filesOf(dropped) {
  return [...dropped.files];
}
