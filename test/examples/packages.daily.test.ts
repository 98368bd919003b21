// The packages in `examples/`, as `npm pack` makes them, in an empty project: their modules, types and sizes, and the
// programs of their READMEs against a real facilitator.
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFile, spawn, spawnSync } from "node:child_process"
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { isBuiltin } from "node:module"
import { tmpdir } from "node:os"
import { join, resolve, sep } from "node:path"
import process from "node:process"
import { promisify } from "node:util"
import axios from "axios"
import { afterAll, beforeAll } from "vitest"
import { root } from "../../runtime/bootstrap.mjs"
import { eventually } from "../support/eventually.ts"
import { startFacilitator } from "../support/facilitator.ts"
import { environment, installPackages, packageFolder, packageNames } from "../support/packages.ts"

const names = packageNames
const project = mkdtempSync(join(tmpdir(), "tollkeeper-packages-"))
const folderOf = (name: string) => packageFolder(project, name)
let packed: Readonly<Record<string, number>> = {}

const run = (program: string, args: ReadonlyArray<string>, env: Record<string, string> = {}, cwd = project) =>
  promisify(execFile)(program, args, { cwd, env: { ...environment, ...env } }).then(
    ({ stdout }) => stdout.trim(),
    ({ stderr, stdout }) => Promise.reject(new Error(`${program} ${args.join(" ")}: ${stdout}${stderr}`))
  )
const node = (file: string, ...args: ReadonlyArray<string>) => run(process.execPath, [file, ...args])
const manifestOf = (name: string) => JSON.parse(readFileSync(join(folderOf(name), "package.json"), "utf8"))
const readmeOf = (name: string) => readFileSync(join(folderOf(name), "README.md"), "utf8")

/** Every specifier that a package exports. */
const specifiersOf = (name: string): ReadonlyArray<string> =>
  Object.keys(manifestOf(name).exports).map((path) => path.replace(/^\./, `@tollkeeper/${name}`))

/** Writes a README's program into the project. */
const extract = (name: string, file: string) => {
  const code = new RegExp(`\`\`\`js\\n// ${file}\\n(.+?)\`\`\``, "s").exec(readmeOf(name))?.[1] ?? ""
  writeFileSync(join(project, file), code)
  return code.trim().split("\n").length
}

beforeAll(async () => {
  packed = await installPackages(project)
}, 300_000)
afterAll(() => rmSync(project, { recursive: true, force: true }))

it("have the project's version and license, no dependency, and the stated size", () => {
  const { license, version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))
  for (const name of names) {
    const manifest = manifestOf(name)
    expect(manifest).toMatchObject({ name: `@tollkeeper/${name}`, version, license, type: "module" })
    expect(manifest).not.toHaveProperty("private")
    expect(manifest).not.toHaveProperty("dependencies")
    const stated = Number(/(\d+) kB packed/.exec(readmeOf(name))?.[1]) * 1_000
    expect(packed[name]! / stated, `${name}: ${packed[name]} bytes`).toBeGreaterThan(0.85)
    expect(packed[name]! / stated, `${name}: ${packed[name]} bytes`).toBeLessThan(1.05)
  }
})

it("import nothing outside themselves", () => {
  for (const name of names) {
    const folder = folderOf(name)
    const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) =>
      /\.(mjs|ts|mts)$/.test(file)
    )
    expect(files.length).toBeGreaterThan(10)
    for (const file of files) {
      const text = readFileSync(join(folder, file), "utf8")
      for (const [, specifier = ""] of text.matchAll(/(?:^import |\bfrom |\bimport\()"([^"\n]+)"/gm)) {
        // A type in a comment, which its declaration has.
        if (isBuiltin(specifier) || (!file.startsWith("dist") && specifier.endsWith(".ts"))) continue
        expect(specifier, file).toMatch(/^\.\//)
        const target = resolve(folder, file, "..", specifier)
        expect(target.startsWith(folder + sep), `${file}: ${specifier}`).toBe(true)
        // A declaration names the source that it declares.
        const declared = file.startsWith("dist") ? target.replace(/\.(m?)(js|ts)$/, ".d.$1ts") : target
        expect(statSync(declared).isFile(), `${file}: ${specifier}`).toBe(true)
      }
    }
  }
})

it("load each export in plain Node", async () => {
  const specifiers = names.flatMap(specifiersOf)
  const lines = specifiers.map((one) => `if (Object.keys(await import("${one}")).length === 0) throw "${one}"`)
  writeFileSync(join(project, "load.mjs"), lines.join("\n"))
  expect(await node("load.mjs")).toBe("")
  // Nothing else of a package is public.
  await expect(node("--input-type=module", "-e", 'import "@tollkeeper/seller/signedCall"')).rejects.toThrow(
    "not defined"
  )
})

/** The compiler's complaints about a program in the project. */
const complaints = (text: string) => {
  writeFileSync(join(project, "consumer.ts"), text)
  const types = ["--types", "node", "--typeRoots", join(root, "node_modules", "@types")]
  const options = ["--noEmit", "--strict", "--module", "nodenext", "--target", "es2024", ...types]
  return node(join(root, "node_modules", "typescript", "bin", "tsc"), ...options, "consumer.ts").then(
    () => "",
    (error) => error.message as string
  )
}

it("are typed for a consumer", async () => {
  const imports = names.flatMap(specifiersOf).map((one, at) => `import * as module${at} from "${one}"`)
  const used = imports.map((_, at) => `export const keys${at}: object = module${at}`)
  const consumer = `import { makeSell, toNode } from "@tollkeeper/seller"
import { pay } from "@tollkeeper/client"
import { makeClient } from "@tollkeeper/client/api"
import { openCheckpoint } from "@tollkeeper/receipts"
const terms = { payTo: "G", asset: "C", amount: "1", facilitator: "http://127.0.0.1:4022" }
export const handler = toNode((request) => makeSell(terms)(request, () => ({ celsius: 17 })))
const options = { secret: "S", maxAmount: 1n }
export const status: Promise<number> = pay("http://x", options).then(({ response }) => response.status)
export const kinds: Promise<number> = makeClient({ url: "http://x" }).supported().then(({ kinds }) => kinds.length)
export const size: Promise<number> = openCheckpoint("", {}).then(({ size }) => size)
`
  expect(await complaints([...imports, ...used, consumer].join("\n"))).toBe("")
  expect(await complaints('import { makeSell } from "@tollkeeper/seller"\nmakeSell({ payTo: 5 })\n')).toContain("TS2")
}, 120_000)

const python = ["/usr/bin/python3", "python3"].find((one) => spawnSync(one, ["-c", "import pip, wheel"]).status === 0)
if (python === undefined) console.log("left out: there is no python3 with pip and wheel here")

it.runIf(python !== undefined)(
  "install in Python too, with types",
  async () => {
    // The build writes into the folder of its sources.
    cpSync(join(root, "examples", "python"), join(project, "python"), { recursive: true })
    const offline = ["--no-index", "--no-build-isolation", "--no-deps", "--quiet", "--target", "site"]
    await run(python!, ["-m", "pip", "install", ...offline, "./python"])
    expect(readdirSync(join(project, "site", "tollkeeper_x402"))).toContain("py.typed")
  },
  120_000
)

/** A README's seller; ends with the Scope. */
const sell = (env: Record<string, string>) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const child = spawn(process.execPath, ["sell.mjs"], {
        cwd: project,
        env: { ...environment, PORT: "0", ...env },
        stdio: ["ignore", "pipe", "inherit"]
      })
      const line: string = await new Promise((given, failed) => {
        child.stdout.once("data", (data) => given(String(data)))
        child.once("exit", (code) => failed(new Error(`the seller ended with ${code}`)))
      })
      return { child, url: line.trim() }
    }),
    ({ child }) => Effect.sync(() => child.kill())
  )

it.live(
  "sell a page, buy it, and verify its receipt",
  () =>
    Effect.gen(function* () {
      expect(extract("seller", "sell.mjs")).toBeLessThanOrEqual(50)
      expect(extract("client", "buy.mjs")).toBeLessThanOrEqual(20)
      extract("receipts", "check.mjs")
      const facilitator = yield* startFacilitator({ closeMillis: 1_500 })
      const buyer = yield* facilitator.account()
      const payTo = (yield* facilitator.account(0n)).publicKey()
      const env = { PAY_TO: payTo, FACILITATOR_URL: facilitator.url, BUYER_SECRET: buyer.secret() }
      const { url } = yield* sell(env)
      const bought = yield* Effect.promise(() => run(process.execPath, ["buy.mjs", url], env))
      expect(bought).toMatch(/^200 \{"city":"Riga","celsius":17\}\n[0-9a-f]{64}$/)
      expect(yield* facilitator.balance(payTo)).toBe(10_000n)

      const path = `/receipts/${bought.slice(-64)}?proof=1`
      const { text } = yield* eventually(
        facilitator.ask(path),
        ({ json }) => json?.outcomes?.[0]?.proof?.size !== undefined
      )
      writeFileSync(join(project, "answer.json"), text)
      writeFileSync(join(project, "did.json"), (yield* facilitator.ask("/.well-known/did.json")).text)
      const claims = yield* Effect.promise(() => node("check.mjs", "answer.json", "did.json"))
      expect(claims).toContain(bought.slice(-64))

      // One library that takes a fetch function.
      const { makeFetch } = yield* Effect.promise(() => import("../../examples/client/paidFetch.mjs"))
      const paid = makeFetch({ secret: buyer.secret(), facilitator: facilitator.url, maxAmount: 10_000n })
      const asking = axios.create({ adapter: "fetch", env: { fetch: paid } })
      const answer = yield* Effect.promise(() => asking.get(url.replace("Riga", "Oslo")))
      expect([answer.status, answer.data.city]).toEqual([200, "Oslo"])
      expect(yield* facilitator.balance(payTo)).toBe(20_000n)
    }).pipe(Effect.scoped),
  300_000
)
