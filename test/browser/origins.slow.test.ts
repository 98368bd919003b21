// A page of another origin in a real browser: it reads the facilitator's answers if `server.allowed_origins` contains
// it, with a preflight and without, and nothing otherwise.
import { NodeServices } from "@effect/platform-node"
import { Effect, Exit, Scope } from "effect"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import type { Browser } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Facilitator, startFacilitator } from "../support/facilitator.ts"
import { chromiumPath, howToGetOne } from "./chromium.ts"
import { launch } from "./Visit.ts"

const scope = Scope.makeUnsafe()
const key = "shop-secret-0123456789"
let browser: Browser
let facilitator: Facilitator
let [named, unnamed]: Array<Server> = []

/** A page that is served at a separate port. */
const startPage = (): Promise<Server> =>
  new Promise((resolve) => {
    const server = createServer((_, response) => {
      response.writeHead(200, { "content-type": "text/html" })
      response.end("<!doctype html><title>Shop</title>")
    }).listen(0, "127.0.0.1", () => resolve(server))
  })

const originOf = (server: Server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`

/** The status that a page of this server reads from each request, or `refused` if its browser refuses. */
const read = async (server: Server, asked: ReadonlyArray<readonly [path: string, init: object]>) => {
  const page = await browser.newPage()
  await page.goto(originOf(server))
  const seen = await page.evaluate(
    ([url, asked]) =>
      Promise.all(
        asked.map(([path, init]) =>
          fetch(url + path, init as RequestInit).then(
            ({ status }) => `${path} ${status}`,
            () => `${path} refused`
          )
        )
      ),
    [facilitator.url, asked] as const
  )
  await page.close()
  return seen
}

const json = { "content-type": "application/json", authorization: `Bearer ${key}` }
const asked = [
  ["/verify", { method: "POST", headers: json, body: "{}" }],
  ["/settle", { method: "POST", headers: { ...json, authorization: "Bearer unlisted-0123456789" }, body: "{}" }],
  ["/supported", { headers: json }],
  ["/settlements?hash=00", { headers: json }],
  ["/analytics/v1/overview", { headers: json }],
  ["/discovery/resources", { headers: json }],
  ["/health/ready", {}],
  ["/unknown", {}],
  ["/dashboard/session", { headers: { "x-tollkeeper-page": "1" } }]
] as const

describe.skipIf(chromiumPath() === undefined)(
  `a page of another origin${chromiumPath() === undefined ? ` (${howToGetOne})` : ""}`,
  () => {
    beforeAll(async () => {
      browser = await launch()
      ;[named, unnamed] = [await startPage(), await startPage()]
      facilitator = await Effect.runPromise(
        startFacilitator({
          channels: 2,
          environment: { FACILITATOR_API_KEYS: `shop:${key}` },
          set: [`server.allowed_origins=["${originOf(named)}"]`, "server.host=127.0.0.1"]
        }).pipe(Scope.provide(scope), Effect.provide(NodeServices.layer))
      )
    }, 240_000)
    afterAll(async () => {
      await browser.close()
      for (const server of [named, unnamed]) server?.close()
      await Effect.runPromise(Scope.close(scope, Exit.void))
    }, 240_000)

    it("reads every route but the dashboard's when it is named", async () => {
      expect(await read(named!, asked)).toEqual([
        "/verify 400",
        "/settle 401",
        "/supported 200",
        "/settlements?hash=00 400",
        "/analytics/v1/overview 200",
        "/discovery/resources 200",
        "/health/ready 200",
        "/unknown 404",
        "/dashboard/session refused"
      ])
    }, 240_000)

    it("reads public routes alone when it is not", async () => {
      const seen = await read(unnamed!, asked)
      expect(seen.filter((line) => !line.endsWith("refused"))).toEqual(["/discovery/resources 200"])
    }, 240_000)
  }
)
