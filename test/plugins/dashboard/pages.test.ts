// The pages over HTTP, from a whole facilitator: which files are served, under which policy, and of what size. Their
// behavior in a browser is `npm run browser`.
import { NodeServices } from "@effect/platform-node"
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { Ajv2020 } from "ajv/dist/2020.js"
import { createHash } from "node:crypto"
import { gunzipSync } from "node:zlib"
import { parseSync } from "vite"
import { type Facilitator, startFacilitator } from "../../support/facilitator.ts"

const scope = Scope.makeUnsafe()
let facilitator: Facilitator
beforeAll(async () => {
  facilitator = await Effect.runPromise(
    startFacilitator({ channels: 1 }).pipe(Scope.provide(scope), Effect.provide(NodeServices.layer))
  )
}, 240_000)
afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

const pages = ["/", "/dashboard", "/seller", "/receipts", "/resource", "/payee"]

/** Every file that a page names, and what those modules import. */
const filesOf = async (page: string): Promise<ReadonlyMap<string, Response>> => {
  const html = await (await fetch(facilitator.url + page)).text()
  const map = JSON.parse(/<script type="importmap">(.*)<\/script>/.exec(html)![1]!) as {
    readonly imports: Readonly<Record<string, string>>
  }
  const found = new Map<string, Response>()
  const pending = [...html.matchAll(/(?:href|src)="(\/dashboard\/[^"]+)"/g)].map(([, path]) => path!)
  for (const path of pending) {
    if (found.has(path)) continue
    const response = await fetch(facilitator.url + path)
    found.set(path, response)
    if (!/\.(ts|m?js)$/.test(path)) continue
    const { staticImports } = parseSync("module.js", await response.clone().text()).module
    for (const { moduleRequest } of staticImports)
      pending.push(map.imports[moduleRequest.value] ?? new URL(moduleRequest.value, facilitator.url + path).pathname)
  }
  return found
}

describe("a page", () => {
  it.each(pages)("the page at %s is HTML under a strict policy", async (page) => {
    const response = await fetch(facilitator.url + page)
    const html = await response.text()
    expect(response.status).toBe(200)
    expect(response.headers.get("content-type")).toBe("text/html; charset=utf-8")
    const policy = response.headers.get("content-security-policy") ?? ""
    expect(policy).toContain("default-src 'none'")
    expect(policy).toContain("frame-ancestors 'none'")
    expect(policy).not.toMatch(/unsafe|\*|https?:/)
    const inline = [...html.matchAll(/<script(?![^>]*src=)[^>]*>([^]*?)<\/script>/g)].map(([, text]) => text!)
    expect(inline).toHaveLength(1)
    const hash = createHash("sha256").update(inline[0]!).digest("base64")
    expect(policy).toContain(`script-src 'self' 'sha256-${hash}';`)
    expect(html).not.toMatch(/\sstyle=|\son[a-z]+=|<style|https?:\/\//)
  })

  it.each(pages)("the page at %s names only existing files, 150 KB in all", async (page) => {
    const files = await filesOf(page)
    expect(files.size).toBeGreaterThan(6)
    let bytes = 0
    for (const [path, response] of files) {
      expect([path, response.status]).toEqual([path, 200])
      expect(response.headers.get("x-content-type-options")).toBe("nosniff")
      if (/\.(ts|m?js)$/.test(path)) {
        expect(response.headers.get("content-type")).toBe("text/javascript; charset=utf-8")
        expect(parseSync("module.js", await response.text()).errors).toEqual([])
      }
      const { compressed } = await raw(path)
      bytes += compressed.length
    }
    expect(bytes).toBeLessThan(150_000)
  })

  it.each([...pages, "/docs"])("the page at %s opens by cross-site link, but scripts get 403", async (page) => {
    const from = { "sec-fetch-site": "cross-site" }
    expect((await fetch(facilitator.url + page, { headers: from })).status).toBe(200)
    for (const path of ["/dashboard/v1/standing", "/dashboard/session", "/analytics/v1/overview"])
      expect([path, (await fetch(facilitator.url + path, { headers: from })).status]).toEqual([path, 403])
  })

  it("a browser's cached page is not sent again", async () => {
    const first = await fetch(`${facilitator.url}/dashboard/web/style.css`)
    const etag = first.headers.get("etag")!
    await first.text()
    const second = await fetch(`${facilitator.url}/dashboard/web/style.css`, { headers: { "if-none-match": etag } })
    expect([second.status, await second.text()]).toEqual([304, ""])
  })

  it.each([
    "/dashboard/web/../plugin.ts",
    "/dashboard/web/%2e%2e%2fplugin.ts",
    "/dashboard/web/nothing.ts",
    "/dashboard/web/toString",
    "/dashboard/library/__proto__",
    "/dashboard/library/react.js",
    "/examples/receipts/witness.mjs",
    "/examples/receipts/..%2fpay.ts"
  ])("the dashboard serves no file at %s", async (path) => {
    expect((await fetch(facilitator.url + path)).status).toBe(404)
  })
})

/** A file as sent to a browser that accepts gzip; decompressed, it is what every other client gets. */
const raw = async (path: string) => {
  const { get } = await import("node:http")
  const compressed = await new Promise<Buffer>((resolve, reject) => {
    get(facilitator.url + path, { headers: { "accept-encoding": "gzip, br" } }, (response) => {
      const chunks: Array<Buffer> = []
      response.on("data", (chunk: Buffer) => chunks.push(chunk)).on("end", () => resolve(Buffer.concat(chunks)))
      expect(response.headers["content-encoding"]).toBe("gzip")
      expect(response.headers.vary).toBe("accept-encoding")
    }).on("error", reject)
  })
  const plain = await fetch(facilitator.url + path, { headers: { "accept-encoding": "identity" } })
  expect(plain.headers.get("content-encoding")).toBeNull()
  expect(gunzipSync(compressed).equals(Buffer.from(await plain.arrayBuffer()))).toBe(true)
  return { compressed }
}

describe("the OpenAPI page", () => {
  it("the OpenAPI viewer is served locally under its own strict policy", async () => {
    const response = await fetch(`${facilitator.url}/docs`)
    const html = await response.text()
    const policy = response.headers.get("content-security-policy") ?? ""
    expect(policy).toContain("script-src 'self'; style-src 'self';")
    expect(policy).not.toMatch(/unsafe|\*|https?:/)
    expect(html).not.toMatch(/\sstyle=|\son[a-z]+=|<style|https?:\/\/|<script(?![^>]*src=)/)
    const files = [...html.matchAll(/(?:href|src)="(\/dashboard\/[^"]+)"/g)].map(([, path]) => path!)
    expect(files.length).toBeGreaterThan(4)
    let bytes = 0
    for (const file of files) bytes += (await raw(file)).compressed.length
    expect(bytes).toBeLessThan(600_000)
  })
})

describe("public facilitator information", () => {
  it("public information needs no key, matches its schema and names no account", async () => {
    const { json, status, text } = await Effect.runPromise(facilitator.ask("/dashboard/v1/about"))
    expect(status).toBe(200)
    const document = (await Effect.runPromise(facilitator.ask("/openapi.json"))).json
    const ajv = new Ajv2020({ strict: false, allErrors: true })
    ajv.addSchema({ ...document, $id: "http://interface/" })
    const validate = ajv.compile({ $ref: "http://interface/#/components/schemas/About" })
    expect([validate(json), validate.errors]).toEqual([true, null])
    expect(json.schemes).toEqual(expect.arrayContaining(["exact"]))
    expect(json.keys_required).toBe(false)
    expect(text).not.toMatch(/\bG[A-Z2-7]{55}\b/)
  })
})
