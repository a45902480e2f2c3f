#!/usr/bin/env bash
# Checks the page's scripts: their types against the OpenAPI file (TypeScript), and their style (Biome).
# `scripts/check-page.sh --write` lets Biome mend what it can.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
installed=$(scripts/contract.sh)
modules=$installed/node/node_modules
types=$installed/page
mkdir -p "$types"
"$modules/.bin/openapi-typescript" tests/it/openapi.json --output "$types/api.d.ts" >/dev/null
cat > "$types/tsconfig.json" <<JSON
{
  "compilerOptions": {
    "allowJs": true, "checkJs": true, "noEmit": true, "strict": true, "target": "es2024", "module": "esnext",
    "moduleResolution": "bundler", "lib": ["es2024", "dom", "dom.iterable", "dom.asynciterable"], "types": [],
    "noUnusedLocals": true, "noImplicitOverride": true, "skipLibCheck": true,
    "paths": {"reprise-api": ["$types/api.d.ts"]}
  },
  "include": ["$root/static/js/**/*.js", "$root/tests/web/page.d.ts"]
}
JSON
"$modules/.bin/tsc" --project "$types/tsconfig.json"
"$modules/.bin/biome" check --config-path=tests/web "$@" static/js
