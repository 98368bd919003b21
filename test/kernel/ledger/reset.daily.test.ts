// The network under a running facilitator: it is reset, so that its ledgers begin again at a low number, and an
// endpoint reports a ledger a million ahead. Neither needs a restart. Over HTTP, with nothing replaced.
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { startFacilitator, type Facilitator } from "../../support/facilitator.ts"
import { eventually } from "../../support/eventually.ts"

const price = 10_000n

/** One address in front of a ledger that can be exchanged for another. */
const startFront = (first: string) =>
  Effect.gen(function* () {
    const front = { target: first, url: "" }
    const server = createServer((request, response) => {
      const chunks: Array<Buffer> = []
      request.on("data", (chunk: Buffer) => chunks.push(chunk))
      request.on("end", () => {
        const body = request.method === "POST" ? { body: Buffer.concat(chunks) } : {}
        const headers = { "content-type": "application/json" }
        fetch(`${front.target}${request.url}`, { method: request.method!, headers, ...body })
          .then(async (answer) => response.writeHead(answer.status, headers).end(await answer.text()))
          .catch(() => response.destroy())
      })
    })
    yield* Effect.acquireRelease(
      Effect.promise(() => new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))),
      () => Effect.sync(() => void server.close().closeAllConnections())
    )
    front.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    return front
  })

const pay = Effect.fnUntraced(function* (facilitator: Facilitator) {
  const payer = yield* facilitator.account()
  const payTo = (yield* facilitator.account(0n)).publicKey()
  const { body } = yield* facilitator.payment({ payer, payTo, amount: price, maxTimeoutSeconds: 300 })
  return yield* facilitator.settle(body)
})

const ledgerOf = (facilitator: Facilitator) => Effect.map(facilitator.ask("/health/ready"), ({ json }) => json.ledger)

it.live(
  "follows a reset network, recreates channels, and settles payments again",
  () =>
    Effect.gen(function* () {
      const old = yield* startFacilitator({ channels: 1, closeMillis: 100 })
      const front = yield* startFront(old.ledgerUrl)
      const facilitator = yield* startFacilitator({ ledgerUrl: front.url, channels: 2 })
      yield* eventually(ledgerOf(facilitator), ({ sequence }) => sequence > 1_100)
      expect((yield* pay(facilitator)).json).toMatchObject({ success: true })
      const young = yield* startFacilitator({ channels: 1, closeMillis: 500 })
      front.target = young.ledgerUrl
      const after = yield* eventually(ledgerOf(facilitator), ({ sequence }) => sequence < 1_100)
      expect(after.sequence).toBeLessThan(1_100)
      yield* eventually(ledgerOf(facilitator), ({ channelsUsable, state }) => channelsUsable === 2 && state === "ready")
      const paid = yield* pay(facilitator)
      expect(paid.json, paid.text).toMatchObject({ success: true })
    }).pipe(Effect.scoped),
  240_000
)

it.live(
  "notices a reset network that has no settlement above its ledgers",
  () =>
    Effect.gen(function* () {
      const old = yield* startFacilitator({ channels: 1, closeMillis: 100 })
      const front = yield* startFront(old.ledgerUrl)
      const facilitator = yield* startFacilitator({ ledgerUrl: front.url, channels: 2 })
      const known = facilitator.sql<{ hash: string }>`select hash from kernel_known_ledgers`
      const [before] = yield* eventually(known, (rows) => rows.length === 1)
      const young = yield* startFacilitator({ channels: 1, closeMillis: 500 })
      front.target = young.ledgerUrl
      const [after] = yield* eventually(known, ([row]) => row?.hash !== before!.hash)
      expect(after!.hash).not.toBe(before!.hash)
      yield* eventually(ledgerOf(facilitator), ({ channelsUsable, state }) => channelsUsable === 2 && state === "ready")
      const paid = yield* pay(facilitator)
      expect(paid.json, paid.text).toMatchObject({ success: true })
    }).pipe(Effect.scoped),
  240_000
)

it.live(
  "heads a million ledgers ahead stop no payment",
  () =>
    Effect.gen(function* () {
      const facilitator = yield* startFacilitator({ channels: 2 })
      let calls = 0
      const lying = (when: () => boolean) => ({
        onRpc: (method: string) =>
          method === "getLatestLedger" && when()
            ? {
                kind: "wrong" as const,
                change: (result: any) => ({ ...result, sequence: result.sequence + 1_000_000 })
              }
            : undefined
      })
      yield* facilitator.ledger.setFaults([lying(() => ++calls % 5 === 0)])
      yield* eventually(
        Effect.sync(() => calls),
        (count) => count > 20
      )
      yield* facilitator.ledger.setFaults([])
      expect((yield* pay(facilitator)).json).toMatchObject({ success: true })
      yield* facilitator.ledger.setFaults([lying(() => true)])
      yield* eventually(ledgerOf(facilitator), ({ sequence }) => sequence > 1_000_000)
      yield* facilitator.ledger.setFaults([])
      yield* eventually(ledgerOf(facilitator), ({ sequence }) => sequence < 1_000_000)
      const paid = yield* pay(facilitator)
      expect(paid.json, paid.text).toMatchObject({ success: true })
    }).pipe(Effect.scoped),
  240_000
)
