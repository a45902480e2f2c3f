// Names of the HTTP API's types for the page's JSDoc: `Api<'Video'>` is the schema `Video` of the OpenAPI file.

import type { components } from 'reprise-api';

declare global {
  type Api<Name extends keyof components['schemas']> = components['schemas'][Name];
}
