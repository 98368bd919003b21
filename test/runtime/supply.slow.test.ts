// The supply chain: the bill of materials names every package of an installation, the built program is the same in two
// builds, and the program runs from an installation in which no script of a dependency ran.
import { expect, it } from "vitest"
import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, relative } from "node:path"
import { root } from "../../runtime/bootstrap.mjs"

const run = (command: string, args: ReadonlyArray<string>, cwd = root): string =>
  execFileSync(command, [...args], { cwd, encoding: "utf8", maxBuffer: 1 << 26, stdio: ["ignore", "pipe", "pipe"] })

interface Locked {
  readonly dev?: boolean
  readonly version?: string
}

const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as {
  readonly packages: Readonly<Record<string, Locked>>
}

it("names every package of an installation, with its hash, in the bill of materials", () => {
  // Without packages of development, npm also leaves out those that both need.
  const bill = JSON.parse(run("npm", ["run", "--silent", "sbom"]))
  expect(bill.bomFormat).toBe("CycloneDX")
  const named = new Map<string, any>(bill.components.map((one: any) => [`${one.name}@${one.version}`, one]))
  const installed = Object.entries(lock.packages).filter(([path, { dev }]) => path !== "" && dev !== true)
  expect(installed.length).toBeGreaterThan(100)
  for (const [path, { version }] of installed) {
    const name = path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length)
    const component = named.get(`${name}@${version}`)
    expect(component?.purl, `${path} ${version}`).toMatch(/^pkg:npm\//)
    expect(component.hashes?.[0]?.alg, path).toBe("SHA-512")
  }
})

const digestsIn = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .map((file) => `${relative(folder, file)} ${createHash("sha256").update(readFileSync(file)).digest("hex")}`)
    .toSorted()

/** A copy of the committed tree, which builds beside other tests. */
const withCopy = (use: (folder: string) => void): void => {
  const folder = mkdtempSync(join(tmpdir(), "tollkeeper-supply-"))
  try {
    for (const file of run("git", ["ls-files", "-z"]).split("\0")) {
      if (file !== "" && !file.startsWith("test/")) cpSync(join(root, file), join(folder, file))
    }
    use(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

it("builds the same files twice, and runs them without scripts of dependencies", () => {
  withCopy((folder) => {
    const install = ["ci", "--ignore-scripts", "--prefer-offline", "--loglevel=error"]
    run("npm", install, folder)
    const build = () => {
      run(process.execPath, ["runtime/pack/build.mjs"], folder)
      return digestsIn(join(folder, "runtime", "dist"))
    }
    const first = build()
    expect(first.length).toBeGreaterThan(500)
    expect(build()).toEqual(first)
    run("npm", [...install, "--omit=dev"], folder)
    expect(run(process.execPath, ["runtime/tollkeeper.mjs", "--version"], folder)).toMatch(/\d+\.\d+\.\d+/)
    const checked = run(process.execPath, ["runtime/tollkeeper.mjs", "config", "check"], folder)
    expect(checked).not.toMatch(/Cannot find/)
  })
}, 900_000)
