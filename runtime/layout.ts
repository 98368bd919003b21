// How this program lies on the disk: as its TypeScript sources, in a checkout, or as the JavaScript made of them, in
// the package that `npm pack` makes (`runtime/pack/`). Both have the same folders at the same distances, so that a file
// is found beside another in either; what differs is the ending of a module, and what a person types to run a command.
import { existsSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

/** Whether this is the package rather than a checkout. */
export const isPackaged = !import.meta.url.endsWith(".ts")

/** The program that npm or a client of tools is to start, and `words` for it. */
export const entry: string = isPackaged
  ? fileURLToPath(new URL("../../tollkeeper.mjs", import.meta.url))
  : fileURLToPath(new URL("cli.mjs", import.meta.url))

/** What a person types for a command of this program. */
export const typed = (command: "pay" | "start"): string =>
  isPackaged ? `npx tollkeeper ${command}` : command === "start" ? "npm start" : `npm run ${command}`

const resolveInstalled = (folder: string, file: string): string | undefined => {
  const place = join(folder, "node_modules", file)
  if (existsSync(place)) return place
  return dirname(folder) === folder ? undefined : resolveInstalled(dirname(folder), file)
}

/**
 * A file of a package that is installed for this program: in its own `node_modules`, or in one further up where npm has
 * put it. Throws where there is none, which is an installation cut short.
 */
export const packageFile = (file: string): string => {
  const found = resolveInstalled(dirname(fileURLToPath(import.meta.url)), file)
  if (found === undefined) throw new Error(`the package file ${file} is not installed; run npm install again`)
  return found
}
