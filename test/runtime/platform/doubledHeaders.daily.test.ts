// A request with two keys or two hosts, sent over a bare socket to a whole facilitator: neither of the two counts.
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { connect } from "node:net"
import { startFacilitator } from "../../support/facilitator.ts"

const key = "shop-secret-0123456789"

/** The status of the answer to a request with these headers. */
const statusOf = (url: string, headers: ReadonlyArray<string>): Effect.Effect<number> =>
  Effect.promise(
    () =>
      new Promise((resolve, reject) => {
        const socket = connect(Number(new URL(url).port), "127.0.0.1")
        let text = ""
        socket.on("error", reject)
        socket.on("data", (chunk) => (text += String(chunk)))
        socket.on("close", () => resolve(Number(/^HTTP\/1.1 (\d+)/.exec(text)?.[1])))
        const path = `/settlements?hash=${"a".repeat(64)}`
        socket.write([`GET ${path} HTTP/1.1`, ...headers, "Connection: close", "", ""].join("\r\n"))
      })
  )

it.live(
  "a key or a host that is named twice is none",
  () =>
    Effect.gen(function* () {
      const { url } = yield* startFacilitator({
        set: ["plugins=[ledger-local,x402-exact]"],
        environment: { FACILITATOR_API_KEYS: `shop:${key}` }
      })
      const host = `Host: ${new URL(url).host}`
      const [right, wrong] = [`Authorization: Bearer ${key}`, "Authorization: Bearer another-secret-0123"]
      expect(yield* statusOf(url, [host, right])).toBe(404)
      for (const doubled of [
        [right, right],
        [right, wrong],
        [wrong, right]
      ])
        expect(yield* statusOf(url, [host, ...doubled]), doubled.join(" ")).toBe(401)
      // Without keys it listens on loopback, so it checks the host.
      const keyless = (yield* startFacilitator({ set: ["plugins=[ledger-local,x402-exact]"] })).url
      const own = `Host: ${new URL(keyless).host}`
      expect(yield* statusOf(keyless, [own])).toBe(404)
      expect(yield* statusOf(keyless, [own, "Host: evil.example"])).toBe(403)
      expect(yield* statusOf(keyless, ["Host: evil.example", own])).toBe(403)
    }).pipe(Effect.scoped),
  60_000
)
