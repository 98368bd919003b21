// The program's layout on disk: TypeScript sources in a checkout, or compiled JavaScript in the package that `npm pack`
// makes (`runtime/pack/`). Both have the same folders at the same distances, so that relative paths hold in either; the
// extension of a module and the command that a user types differ.
import { existsSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

/** Whether this is the package rather than a checkout. */
const isPackaged = !import.meta.url.endsWith(".ts")

/** The entry that npm or a client of tools starts, with `words` as arguments. */
export const entry: string = isPackaged
  ? fileURLToPath(new URL("../../tollkeeper.mjs", import.meta.url))
  : fileURLToPath(new URL("cli.mjs", import.meta.url))

/** The command line that a user types for a command, with these arguments. */
export const typed = (command: "pay" | "start", ...args: ReadonlyArray<string>): string => {
  const words = isPackaged ? `npx tollkeeper ${command}` : command === "start" ? "npm start" : `npm run ${command}`
  if (args.length === 0) return words
  return isPackaged ? `${words} ${args.join(" ")}` : `${words} -- ${args.join(" ")}`
}

const resolveInstalled = (folder: string, file: string): string | undefined => {
  const place = join(folder, "node_modules", file)
  if (existsSync(place)) return place
  return dirname(folder) === folder ? undefined : resolveInstalled(dirname(folder), file)
}

/**
 * Path of a file in an installed package: with the packed program (`runtime/pack/build.mjs`), in the program's own
 * `node_modules`, or further up where npm has put it.
 * Throws when it is missing, after an interrupted installation.
 */
export const packageFile = (file: string): string => {
  const packed = fileURLToPath(new URL(`../packages/${file}`, import.meta.url))
  const found = existsSync(packed) ? packed : resolveInstalled(dirname(fileURLToPath(import.meta.url)), file)
  if (found === undefined) throw new Error(`the package file ${file} is not installed; run npm install again`)
  return found
}
