// The paywall's own route to `/prepare`, and the headers of its page.
import { createServer } from "node:http"
import { afterAll, beforeAll, expect, it } from "vitest"
import { paywall, prepareProxy } from "../../examples/seller/paywall.mjs"
import { makeSell } from "../../examples/seller/sellRequest.mjs"

let asked = 0
const facilitator = createServer((request, response) => {
  asked += 1
  request.resume().on("end", () => response.end("{}"))
})
let url = ""

beforeAll(async () => {
  await new Promise<void>((resolve) => facilitator.listen(0, "127.0.0.1", resolve))
  url = `http://127.0.0.1:${(facilitator.address() as { readonly port: number }).port}`
})
afterAll(() => void facilitator.close())

const request = (body: BodyInit) =>
  new Request("http://shop.example/x402/prepare", { method: "POST", body, duplex: "half" } as RequestInit)

it("a body without an end is cut off at its limit", async () => {
  let sent = 0
  const endless = new ReadableStream({
    pull: (controller) => {
      sent += 16_384
      controller.enqueue(new Uint8Array(16_384))
    }
  })
  const before = asked
  expect((await prepareProxy({ facilitator: url })(request(endless), "a")).status).toBe(413)
  expect(sent).toBeLessThan(200_000)
  expect(asked).toBe(before)
})

it("one visitor uses up the own share alone", async () => {
  const prepare = prepareProxy({ facilitator: url, perMinute: 2, perMinuteInAll: 5 })
  const statuses: Array<number> = []
  for (const visitor of ["a", "a", "a", "b", "b", "c", "d"])
    statuses.push((await prepare(request("{}"), visitor)).status)
  expect(statuses).toEqual([200, 200, 429, 200, 200, 200, 429])
})

it("no other site may show the page in a frame", async () => {
  const sell = await makeSell({
    network: "stellar:testnet",
    payTo: "GBSXG7SWWPT7DVDRU6ACXVLMBIQFB6ALR7JDUQLNJVHM77J4N6ZRNLZL",
    asset: "CBIELTK6YBZJU5UP2WWQEUCYKLPU6AUNZ2BQ4WWFEIE3USCIHMXQDAMA",
    amount: "1",
    facilitator: url,
    maxTimeoutSeconds: 60,
    paywall: paywall({ prepareUrl: "/x402/prepare" })
  })
  const page = await sell(new Request("http://shop.example/", { headers: { accept: "text/html" } }), () => ({}))
  expect(page.status).toBe(402)
  expect(page.headers.get("content-security-policy")).toBe("frame-ancestors 'none'")
  expect(page.headers.get("x-frame-options")).toBe("DENY")
})
