// Uploads a file with tus-js-client, which goes on by itself after a cut connection.

import { readFileSync } from 'node:fs'
import * as tus from 'tus-js-client'

const [base, path] = process.argv.slice(2)
let answer
const upload = new tus.Upload(readFileSync(path), {
  endpoint: `${base}/v1/uploads`,
  retryDelays: Array(2000).fill(0),
  metadata: { filename: 'film.mp4', filetype: 'video/mp4', title: 'By tus-js-client' },
  onAfterResponse: (_, response) => { answer = response },
  onError: (error) => { console.error(String(error)); process.exit(1) },
  onSuccess: () => console.log('sent', answer.getHeader('reprise-video-id'), upload.url),
})
upload.start()
