// `npm run observability`: writes the dashboard, the alert rules and their test cases. A test compares the files with
// their source.
import { writeFileSync } from "node:fs"
import { stringify } from "yaml"
import { casesFile, rulesFile } from "./alertFiles.ts"
import { dashboard } from "./dashboard.ts"

const made = "# Made by `npm run observability` from alerts.ts; change it there.\n"
const yaml = (value: unknown) => made + stringify(value, { lineWidth: 0, aliasDuplicateObjects: false })

/** File contents by name. */
export const files: Readonly<Record<string, string>> = {
  "dashboard.json": `${JSON.stringify(dashboard, null, 2)}\n`,
  "alerts.yml": yaml(rulesFile),
  "alerts.test.yml": yaml(casesFile)
}

if (import.meta.main)
  for (const [name, text] of Object.entries(files)) writeFileSync(new URL(name, import.meta.url), text)
