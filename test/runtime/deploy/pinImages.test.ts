// Pinning base images: against a test registry, on copies of the shipped files, and without a network.
import { execFile } from "node:child_process"
import { once } from "node:events"
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import process from "node:process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { parse } from "yaml"

const deploy = fileURLToPath(new URL("../../../runtime/deploy/", import.meta.url))
const names = ["Dockerfile", "compose.yaml"]
const nowhere = "http://127.0.0.1:1"

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tollkeeper-images-"))
  for (const name of names) copyFileSync(join(deploy, name), join(folder, name))
})
afterEach(() => rmSync(folder, { recursive: true }))

const read = (name: string) => readFileSync(join(folder, name), "utf8")
const texts = () => names.map(read)

const pin = (url: string, ...flags: ReadonlyArray<string>) =>
  promisify(execFile)(process.execPath, [join(deploy, "pinImages.mjs"), "--folder", folder, ...flags], {
    env: { ...process.env, REGISTRY_URL: url, REGISTRY_AUTH_URL: url }
  }).then(
    ({ stdout }) => ({ status: 0, text: stdout }),
    ({ code, stderr, stdout }) => ({ status: code as number, text: `${stdout}${stderr}` })
  )

/** A registry with digests that repeat one character; it has every image except those in `unknown`. */
const startRegistry = async (character: string, unknown = /^$/) => {
  const asked: Array<string> = []
  const server = createServer((request, response) => {
    const url = request.url ?? ""
    if (url.startsWith("/token?")) return response.end(JSON.stringify({ token: "t" }))
    asked.push(`${request.method} ${url} ${request.headers.authorization}`)
    if (unknown.test(url)) return response.writeHead(404).end()
    return response.writeHead(200, { "docker-content-digest": `sha256:${character.repeat(64)}` }).end()
  })
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, asked, [Symbol.dispose]: () => void server.close() }
}

describe("pinning base images", () => {
  it("writes digests that both files still parse with, and renews them", async () => {
    const before = texts()
    using first = await startRegistry("a")
    expect((await pin(first.url)).text.match(/not pinned/g)).toHaveLength(3)
    expect(texts()).toEqual(before)
    expect((await pin(first.url, "--write")).status).toBe(0)
    expect(first.asked).toContain("HEAD /v2/library/node/manifests/24-bookworm-slim Bearer t")
    expect(read("Dockerfile")).toMatch(/^ARG NODE_IMAGE=node:24-bookworm-slim@sha256:a{64}$/m)
    expect(parse(read("compose.yaml")).services.database.image).toMatch(/^pgvector\/pgvector:pg17@sha256:a{64}$/)
    expect((await pin(nowhere, "--list")).status).toBe(0)
    using second = await startRegistry("b")
    expect((await pin(second.url, "--write")).text.match(/outdated/g)).toHaveLength(3)
    expect(texts().join("")).not.toContain("sha256:a")
    expect((await pin(second.url)).text.match(/current/g)).toHaveLength(3)
    expect(texts().map((text) => text.replaceAll(/@sha256:b{64}/g, ""))).toEqual(before)
  })

  it("changes nothing when one image is unknown or the registry does not answer, and says so in a sentence", async () => {
    const before = texts()
    using registry = await startRegistry("a", /pgvector/)
    const unknown = await pin(registry.url, "--write")
    expect(unknown.status).toBe(1)
    expect(unknown.text).toMatch(
      /^pinImages: pgvector\/pgvector:pg17: 127\.0\.0\.1:\d+ answers 404; nothing was changed$/m
    )
    const away = await pin(nowhere, "--write")
    expect(away.status).toBe(1)
    expect(away.text).toMatch(
      /^pinImages: node:24-bookworm-slim: 127\.0\.0\.1:1 does not answer \(\w+\); nothing was changed$/m
    )
    expect(texts()).toEqual(before)
  })

  it("lists what the files name without a network: exact tags, none of them `latest`", async () => {
    const { text } = await pin(nowhere, "--list")
    const images = text.trim().split("\n")
    expect(images).toHaveLength(3)
    for (const image of images)
      expect(image).toMatch(/^[a-z/]+:(?!latest)[\w.-]*\d[\w.-]* {2}(not pinned|sha256:[0-9a-f]{64})$/)
  })
})
