// More payments than channels, over HTTP: one caller's flood is refused immediately, before any request to the ledger,
// with an estimate of when to retry; another caller's few come through in turns.
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { type AddressInfo, connect, createServer } from "node:net"
import { describe } from "vitest"
import { databaseKinds } from "../../../support/databases.ts"
import { type Facilitator, startFacilitator } from "../../../support/facilitator.ts"

/** A proxy between a facilitator and its ledger that forwards everything and counts the simulations. */
const countingProxy = (ledgerUrl: string) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const seen = { simulations: 0 }
      const server = createServer((socket) => {
        const upstream = connect(Number(new URL(ledgerUrl).port), "127.0.0.1")
        socket.on("data", (chunk) => {
          seen.simulations += chunk.toString("latin1").split("simulateTransaction").length - 1
        })
        socket.pipe(upstream).pipe(socket)
        socket.on("error", () => upstream.destroy())
        upstream.on("error", () => socket.destroy())
      })
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()))
      return { seen, server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
    }),
    ({ server }) => Effect.sync(() => server.close())
  )

const payments = (world: Facilitator, count: number) =>
  Effect.gen(function* () {
    const payer = yield* world.account()
    const payTo = (yield* world.account(0n)).publicKey()
    const one = world.payment({ payer, payTo, amount: 10n, maxTimeoutSeconds: 300, secondsPerLedger: 1 })
    return yield* Effect.forEach(Array.from({ length: count }), () => Effect.map(one, ({ body }) => body), {
      concurrency: 4
    })
  })

describe.each(databaseKinds)("more payments than channels, on %s", (database) => {
  it.live(
    "a flood is refused without verification; another caller's five payments settle [S84, S340]",
    () =>
      Effect.gen(function* () {
        const world = yield* startFacilitator({ channels: 1, closeMillis: 250 })
        const proxy = yield* countingProxy(world.ledgerUrl)
        const facilitator = yield* startFacilitator({
          database,
          channels: 2,
          ledgerUrl: proxy.url,
          set: ["limits.channel_wait_ms=20000"],
          environment: { FACILITATOR_API_KEYS: "flood:0123456789abcdef-flood,calm:0123456789abcdef-calm" }
        })
        const settleAs = (name: string) => (body: unknown) =>
          facilitator.settle(body, { authorization: `Bearer 0123456789abcdef-${name}` })
        /** Repeats a recorded payment without an outcome, as sellers do; a refused one is not repeated. */
        const settleCalmly = Effect.fnUntraced(function* (body: unknown) {
          let answer = yield* settleAs("calm")(body)
          for (let times = 0; times < 3 && answer.json.success !== true && answer.json.transaction !== ""; times++)
            answer = yield* settleAs("calm")(body)
          return answer
        })
        const many = yield* payments(world, 300)
        const few = yield* payments(world, 5)
        proxy.seen.simulations = 0
        const [flood, calm] = yield* Effect.all(
          [
            Effect.forEach(many, settleAs("flood"), { concurrency: "unbounded" }),
            Effect.forEach(few, settleCalmly, { concurrency: "unbounded" })
          ],
          { concurrency: 2 }
        )
        expect(calm.map(({ json }) => json.success === true || json)).toEqual([true, true, true, true, true])
        const refused = flood.filter(({ status }) => status === 503)
        // On a busy machine the last ones of the queue are recorded, but have no outcome before their timeout.
        const served = flood.filter(({ json }) => json.success === true || json.transaction !== "")
        expect(served.length + refused.length).toBe(300)
        // How many have a place follows from how fast this machine settles.
        expect(refused.length).toBeGreaterThan(60)
        for (const { headers, json } of refused) {
          expect(headers.get("retry-after")).toBe("1")
          expect(json.errorReason).toBe("settle_ledger_temporarily_unavailable")
          expect(json.retryAfterMs).toBeGreaterThanOrEqual(1_000)
        }
        // A payment is simulated when verified, and again when it aged in the queue; a refused one is not.
        expect(proxy.seen.simulations).toBeLessThanOrEqual(2 * (305 - refused.length))
        expect(proxy.seen.simulations).toBeLessThan(305)
      }).pipe(Effect.scoped),
    240_000
  )
})
