// The size of a page on the wire and its time to first paint: measured by Chromium itself, each visit with an empty
// cache. The interface's page has a separate size limit, because of the viewer in it.
import { NodeServices } from "@effect/platform-node"
import { Effect, Exit, Scope } from "effect"
import type { Browser } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Facilitator, startFacilitator } from "../support/facilitator.ts"
import { chromiumPath, howToGetOne } from "./chromium.ts"
import { isTimed, report } from "./timed.ts"
import { launch, Visit } from "./Visit.ts"

const scope = Scope.makeUnsafe()
let browser: Browser
let facilitator: Facilitator

const visits = 5
const paintMaxMillis = 500
const kilobyte = 1_024

/** One visit: bytes over the wire, head and body, and the time of the first paint. */
const weigh = async (path: string) => {
  const visit = await Visit.open(browser, facilitator.url)
  const session = await visit.context.newCDPSession(visit.page)
  await session.send("Network.enable")
  let bytes = 0
  session.on("Network.loadingFinished", ({ encodedDataLength }) => (bytes += encodedDataLength))
  await visit.go(path)
  await visit.page.locator("main h1, #api .info").first().waitFor()
  await visit.page.waitForFunction(() => performance.getEntriesByName("first-contentful-paint").length > 0)
  const paint = await visit.page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]!.startTime)
  expect(visit.issues).toEqual([])
  await visit.close()
  return { bytes, paint }
}

describe.skipIf(chromiumPath() === undefined)(
  `the weight of a page${chromiumPath() === undefined ? ` (${howToGetOne})` : ""}`,
  () => {
    beforeAll(async () => {
      browser = await launch()
      facilitator = await Effect.runPromise(
        startFacilitator({ channels: 2 }).pipe(Scope.provide(scope), Effect.provide(NodeServices.layer))
      )
    }, 240_000)
    afterAll(async () => {
      await browser.close()
      await Effect.runPromise(Scope.close(scope, Exit.void))
    }, 240_000)

    it.each([
      ["/", 150],
      ["/dashboard", 150],
      ["/seller", 150],
      ["/resource?url=https://shop.example.com/&type=http", 150],
      // The viewer is 490 KB of it, the description of the interface most of the rest.
      ["/docs", 800]
    ])(
      "of %s is at most %i KB compressed, and it is painted soon",
      async (path, kilobytesMax) => {
        const seen = []
        for (let visit = 0; visit < visits; visit++) seen.push(await weigh(path))
        const bytes = Math.max(...seen.map((one) => one.bytes))
        const paint = seen.map((one) => one.paint).sort((a, b) => a - b)[visits >> 1]!
        report(`${path}: ${(bytes / kilobyte).toFixed(0)} KB over the wire, first paint after ${paint.toFixed(0)} ms`)
        expect(bytes).toBeGreaterThan(10 * kilobyte)
        expect(bytes).toBeLessThanOrEqual(kilobytesMax * kilobyte)
        if (isTimed) expect(paint).toBeLessThan(paintMaxMillis)
      },
      240_000
    )
  }
)
