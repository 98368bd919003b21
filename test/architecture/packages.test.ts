// Dependencies: exact versions, lockfiles without a registry's address, permissive licenses, and real use of the
// packages that the design names.
import { basename } from "node:path"
import { describe, expect, it } from "vitest"
import { readText, sourcesIn, textFiles } from "./sources.ts"

type Versions = Readonly<Record<string, string>>
interface Locked {
  readonly version?: string
  readonly integrity?: string
  readonly license?: string
  readonly resolved?: string
}

/** Without a dependency, so without a lockfile. */
const isExample = (path: string) => /^examples\/(client|receipts|seller)\/package\.json$/.test(path)
const manifests = textFiles.filter((path) => basename(path) === "package.json" && !isExample(path))
const lockfiles = textFiles.filter((path) => basename(path) === "package-lock.json")
const readLock = (path: string) =>
  Object.entries((JSON.parse(readText(path)) as { packages: Record<string, Locked> }).packages)

const importedBy = (...folders: ReadonlyArray<string>) =>
  new Set(sourcesIn(...folders).flatMap(({ imports }) => imports))

/** Whether a package, or a module of it, is imported. */
const uses = (imported: ReadonlySet<string>, name: string) =>
  [...imported].some((specifier) => specifier === name || specifier.startsWith(`${name}/`))

/** Licenses compatible with distributing the product; an expression passes if all its licenses do. */
const permissive = new Set(
  [
    "0BSD Apache-2.0 BSD-2-Clause BSD-3-Clause BlueOak-1.0.0 CC-BY-4.0 CC0-1.0 ISC MIT MPL-2.0 PostgreSQL",
    "Python-2.0 Unlicense"
  ].flatMap((names) => names.split(" "))
)

const isPermissive = (expression: string) =>
  expression
    .replace(/[()]/g, "")
    .split(/ (?:AND|OR) /)
    .some((name) => permissive.has(name))

describe("packages", () => {
  it("are pinned to one version each", () => {
    for (const path of manifests) {
      const manifest = JSON.parse(readText(path)) as Record<string, Versions | undefined>
      for (const kind of ["dependencies", "devDependencies", "optionalDependencies"]) {
        for (const [name, version] of Object.entries(manifest[kind] ?? {})) {
          expect(version, `${path}: ${name}`).toMatch(/^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$/)
        }
      }
    }
  })

  it("have a lockfile per manifest, with checksums and no address", () => {
    expect(lockfiles).toEqual(manifests.map((path) => path.replace("package.json", "package-lock.json")))
    for (const path of lockfiles) {
      for (const [name, locked] of readLock(path).filter(([name]) => name !== "")) {
        expect(locked.integrity, `${path}: ${name}`).toMatch(/^sha512-/)
        expect(locked.resolved, `${path}: ${name}`).toBeUndefined()
      }
    }
  })

  it("of the product have permissive licences, none of them AGPL", () => {
    const strict = readLock("package-lock.json").filter(
      ([name, { license }]) => name !== "" && !isPermissive(license ?? "")
    )
    expect(strict.map(([name, { license }]) => `${name}: ${license}`)).toEqual([])
    for (const licence of ["AGPL-3.0-only", "GPL-2.0", "", "SSPL-1.0", "AGPL-3.0-or-later AND GPL-3.0-only"])
      expect(isPermissive(licence)).toBe(false)
  })

  it("named by the design are used, Effect's HTTP and schema layers included [S344, S345]", () => {
    const imported = importedBy("kernel", "plugins", "runtime")
    for (const name of ["effect", "effect/http", "@effect/platform-node", "@effect/sql-pg", "@stellar/stellar-sdk"]) {
      expect(uses(imported, name), name).toBe(true)
    }
    expect(
      sourcesIn("kernel", "plugins").some(({ text }) => /import \{[^}]*\bSchema\b[^}]*\} from "effect"/.test(text))
    ).toBe(true)
    expect(uses(importedBy("test"), "vitest")).toBe(true)
    // The tool server uses the official SDK, and on Node traces go through OpenTelemetry's own.
    expect(["sdk", "server"].some((name) => uses(imported, `@modelcontextprotocol/${name}`))).toBe(true)
    expect(readText("runtime/platform/telemetrySent.ts")).toContain('await import("@opentelemetry/sdk-node")')
  })

  it("without an import in the product are served to browsers or planned", () => {
    const { dependencies } = JSON.parse(readText("package.json")) as { dependencies: Versions }
    const imported = importedBy("kernel", "plugins", "runtime")
    const waiting = [
      "@effect/opentelemetry",
      "@modelcontextprotocol/sdk",
      "@opentelemetry/api",
      "@opentelemetry/sdk-node",
      "ajv",
      "swagger-ui-dist"
    ]
    expect(Object.keys(dependencies).filter((name) => !uses(imported, name) && !waiting.includes(name))).toEqual([])
  })
})
