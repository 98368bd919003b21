// Our packages as `npm pack` makes them, in the `node_modules` of an empty project.
import { execFile } from "node:child_process"
import { mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import process from "node:process"
import { promisify } from "node:util"
import { root } from "../../runtime/bootstrap.mjs"

export const packageNames = ["client", "receipts", "seller"]

/** Variables of an npm that runs this test would change the npm that it runs. */
export const environment = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("npm_")))

export const packageFolder = (project: string, name: string) => join(project, "node_modules", "@tollkeeper", name)

/** The size of each package, bytes. */
export const installPackages = async (project: string): Promise<Readonly<Record<string, number>>> => {
  const run = (program: string, args: ReadonlyArray<string>, cwd: string) =>
    promisify(execFile)(program, [...args], { cwd, env: environment })
  const sizes: Record<string, number> = {}
  writeFileSync(join(project, "package.json"), '{ "name": "shop", "type": "module" }')
  for (const name of packageNames) {
    await run("npm", ["pack", "--silent", "--pack-destination", project], join(root, "examples", name))
    const file = readdirSync(project).find((one) => one.startsWith(`tollkeeper-${name}-`))!
    sizes[name] = statSync(join(project, file)).size
    const folder = packageFolder(project, name)
    mkdirSync(folder, { recursive: true })
    await run("tar", ["-xzf", join(project, file), "-C", folder, "--strip-components", "1"], project)
  }
  return sizes
}
