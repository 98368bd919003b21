// Two facilitators behind one seller's client, over one ledger: the second settles exactly the payments that were never
// sent to the first. Answers are lost, connections cut and the first one's listener closed, in every order.
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { createServer, type Server } from "node:http"
import { facilitators } from "../../examples/seller/facilitators.mjs"
import { facilitatorAt } from "../../examples/seller/sellRequest.mjs"
import { ledgerProof } from "../../examples/seller/ledgerProof.mjs"
import { memoryStore } from "../../examples/seller/soldOnce.mjs"
import { startFacilitator } from "../support/facilitator.ts"
import { freePort } from "../support/freePort.ts"

type Mode = "pass" | "lose the answer" | "lose the request" | "forget" | "busy" | "down"

/** A connection to a facilitator that fails on demand; counts the payments whose settle arrived. */
const startWay = async (target: string) => {
  const port = await freePort()
  const arrived: Array<string> = []
  let mode: Mode = "pass"
  const server: Server = createServer((request, response) => {
    let text = ""
    request.on("data", (chunk) => (text += chunk))
    request.on("end", async () => {
      if (mode === "lose the request") return void request.socket.destroy()
      if (mode === "forget") {
        const forgotten = { success: false, errorReason: "invalid_exact_stellar_payload_simulation_failed" }
        return void response
          .writeHead(200, { "content-type": "application/json", connection: "close" })
          .end(JSON.stringify({ ...forgotten, transaction: "", network: "ledger:testnet" }))
      }
      const key = request.headers["idempotency-key"]?.toString()
      if (request.url === "/settle") arrived.push(JSON.parse(text).paymentPayload.payload.transaction)
      const given = await fetch(`${target}${request.url}`, {
        method: "POST",
        headers: { "content-type": "application/json", ...(key === undefined ? {} : { "idempotency-key": key }) },
        body: text
      })
      const body = await given.text()
      // As a facilitator answers at its timeout: its record may come later.
      if (mode === "busy" && request.url === "/settle") {
        const busy = { success: false, errorReason: "settle_ledger_temporarily_unavailable" }
        return void response
          .writeHead(503, { "content-type": "application/json", connection: "close" })
          .end(JSON.stringify({ ...busy, transaction: "", network: "ledger:testnet" }))
      }
      if (mode === "lose the answer" && request.url === "/settle") return void request.socket.destroy()
      // A kept connection that is cut later counts as a lost request, so each request has a new one.
      response.writeHead(given.status, { "content-type": "application/json", connection: "close" }).end(body)
    })
  })
  const listen = () => new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve))
  const close = () =>
    new Promise<void>((resolve) => {
      server.closeAllConnections()
      server.close(() => resolve())
    })
  await listen()
  return {
    url: `http://127.0.0.1:${port}`,
    arrived,
    close: () => (mode === "down" ? Promise.resolve() : close()),
    set: async (next: Mode) => {
      if (next === "down" && mode !== "down") await close()
      if (next !== "down" && mode === "down") await listen()
      mode = next
    }
  }
}

it.live(
  "no payment is taken twice and none is lost, whatever fails on the way to the first",
  () =>
    Effect.gen(function* () {
      const one = yield* startFacilitator({ closeMillis: 300 })
      const two = yield* startFacilitator({ ledgerUrl: one.ledgerUrl })
      const payTo = (yield* one.account(0n)).publicKey()
      const way = yield* Effect.acquireRelease(
        Effect.promise(() => startWay(one.url)),
        ({ close }) => Effect.promise(close)
      )
      const second = yield* Effect.acquireRelease(
        Effect.promise(() => startWay(two.url)),
        ({ close }) => Effect.promise(close)
      )
      const store = memoryStore()
      const client = () =>
        facilitators([facilitatorAt(way.url), facilitatorAt(second.url)], { store, attempts: 2, pauseMillis: 50 })
      const modes: ReadonlyArray<ReadonlyArray<Mode>> = [
        ["pass"],
        ["down"],
        ["lose the answer", "down", "pass"],
        ["lose the request", "down", "pass"],
        ["lose the answer", "lose the answer", "pass"],
        ["lose the request", "lose the answer", "pass"]
      ]
      const byFirst: Array<boolean> = []
      for (const [at, sequence] of modes.entries()) {
        const payer = yield* one.account(100_000n)
        const { body, transaction } = yield* one.payment({ payer, payTo, amount: 1_000n })
        const outcomes: Array<string> = []
        for (const mode of sequence) {
          yield* Effect.promise(() => way.set(mode))
          // Each time like another process of the seller: only the store is shared.
          const answer = yield* Effect.promise(() => client().settle(body.paymentPayload, body.paymentRequirements))
          outcomes.push(answer.success ? "success" : answer.errorReason)
        }
        yield* Effect.promise(() => way.set("pass"))
        const settledBefore = /^settle_ledger_already_settled$/
        const last = outcomes.at(-1)!
        expect([at, last === "success" || settledBefore.test(last)], outcomes.join()).toEqual([at, true])
        for (const earlier of outcomes.slice(0, -1)) expect([at, earlier]).toEqual([at, "settlement_pending"])
        expect([at, yield* one.balance(payer.publicKey())]).toEqual([at, 99_000n])
        byFirst.push(way.arrived.includes(transaction))
        // Exactly one of the two ever received a settle for it.
        expect([at, second.arrived.includes(transaction)]).toEqual([at, !way.arrived.includes(transaction)])
      }
      expect(byFirst).toEqual([true, false, true, true, true, true])
      expect(yield* one.balance(payTo)).toBe(6_000n)
      // Verify goes to the second one if the first does not answer, and only to the first while that holds a payment.
      yield* Effect.promise(() => way.set("down"))
      const payer = yield* one.account(100_000n)
      const { body } = yield* one.payment({ payer, payTo, amount: 1_000n })
      const verified = yield* Effect.promise(() => client().verify(body.paymentPayload, body.paymentRequirements))
      expect(verified).toMatchObject({ isValid: true })
      // A process that died while waiting has recorded no outcome: the outcome is unknown, and no other facilitator is
      // asked.
      const dead = facilitators([{ ...facilitatorAt(way.url), settle: () => new Promise(() => {}) }], { store })
      void dead.settle(body.paymentPayload, body.paymentRequirements)
      yield* Effect.sleep("100 millis")
      const arrived = second.arrived.length
      const after = yield* Effect.promise(() => client().settle(body.paymentPayload, body.paymentRequirements))
      expect(after).toMatchObject({ success: false, errorReason: "settlement_pending" })
      expect(second.arrived.length).toBe(arrived)
    }).pipe(Effect.scoped),
  240_000
)

it.live(
  "finds a payment that its first facilitator settled after it said busy",
  () =>
    Effect.gen(function* () {
      const one = yield* startFacilitator({ closeMillis: 300 })
      const two = yield* startFacilitator({ ledgerUrl: one.ledgerUrl })
      const payTo = (yield* one.account(0n)).publicKey()
      const payer = yield* one.account(100_000n)
      const { body } = yield* one.payment({ payer, payTo, amount: 1_000n })
      const way = yield* Effect.acquireRelease(
        Effect.promise(() => startWay(one.url)),
        ({ close }) => Effect.promise(close)
      )
      const store = memoryStore()
      const outcomes: Array<string> = []
      for (const mode of ["busy", "busy", "pass", "pass"] as const) {
        yield* Effect.promise(() => way.set(mode))
        const client = facilitators([facilitatorAt(way.url), facilitatorAt(two.url)], { store })
        const { paymentPayload, paymentRequirements } = body
        const answer = yield* Effect.promise(() => client.settle(paymentPayload, paymentRequirements, "k".repeat(32)))
        outcomes.push(answer.success ? "success" : answer.errorReason)
      }
      expect(outcomes).toEqual(["settlement_pending", "settlement_pending", "success", "success"])
      expect(yield* one.balance(payTo)).toBe(1_000n)
    }).pipe(Effect.scoped),
  240_000
)

/** Waits until the ledger, which begins at 1,000, has closed one. */
const untilLedger = async (url: string, sequence: number) => {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "getLatestLedger" })
  for (;;) {
    const given = await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body })
    if (((await given.json()) as any).result.sequence >= sequence) return
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

it.live(
  "a facilitator that forgets what it settled is believed only where the ledger agrees",
  () =>
    Effect.gen(function* () {
      const one = yield* startFacilitator({ closeMillis: 300 })
      const payTo = (yield* one.account(0n)).publicKey()
      const way = yield* Effect.acquireRelease(
        Effect.promise(() => startWay(one.url)),
        ({ close }) => Effect.promise(close)
      )
      const store = memoryStore()
      const forgetful = [{ ...facilitatorAt(way.url), keepsRecords: false }]
      const proof = ledgerProof({ rpcUrl: one.ledgerUrl })
      const client = (more: object = {}) => facilitators(forgetful, { store, attempts: 2, pauseMillis: 50, ...more })
      const settle = (made: ReturnType<typeof client>, { paymentPayload, paymentRequirements }: any) =>
        Effect.promise(() => made.settle(paymentPayload, paymentRequirements))
      // Settled, its answer lost, and refused afterwards: pending until the ledger is asked, which has it.
      const taken = (yield* one.payment({ payer: yield* one.account(100_000n), payTo, amount: 1_000n })).body
      yield* Effect.promise(() => way.set("lose the answer"))
      yield* settle(client(), taken)
      yield* Effect.promise(() => way.set("forget"))
      expect(yield* settle(client(), taken)).toMatchObject({ success: false, errorReason: "settlement_pending" })
      const shown = yield* settle(client({ proof }), taken)
      expect(shown).toMatchObject({ success: true, transaction: expect.stringMatching(/^[0-9a-f]{64}$/) })
      // It never arrived: pending while it may be spent, and refused once it cannot be. The proof reads every ledger of
      // its lifetime, so this local ledger has to be old enough.
      yield* Effect.promise(() => untilLedger(one.ledgerUrl, 1_040))
      const payer = yield* one.account(100_000n)
      const order = { payer, payTo, amount: 1_000n, maxTimeoutSeconds: 20, secondsPerLedger: 5 }
      const missed = (yield* one.payment(order)).body
      yield* Effect.promise(() => way.set("lose the request"))
      yield* settle(client({ proof }), missed)
      yield* Effect.promise(() => way.set("forget"))
      let last = yield* settle(client({ proof }), missed)
      expect(last.errorReason).toMatch(/^(settlement_pending|expired)$/)
      for (let turn = 0; last.errorReason === "settlement_pending" && turn < 100; turn++) {
        yield* Effect.sleep("100 millis")
        last = yield* settle(client({ proof }), missed)
      }
      expect(last).toMatchObject({ success: false, errorReason: "expired" })
      expect(yield* one.balance(payTo)).toBe(1_000n)
    }).pipe(Effect.scoped),
  240_000
)

it("a payment stays with its facilitator when their order changes", async () => {
  const asked: Array<string> = []
  const at = (url: string) => ({
    url,
    verify: async () => ({ isValid: true }),
    settle: async () => {
      asked.push(url)
      throw new Error("cut")
    }
  })
  const [first, second, store] = [at("http://one"), at("http://two"), memoryStore()]
  const requirements = { network: "stellar:testnet" }
  for (const clients of [
    [first, second],
    [second, first]
  ]) {
    const answer = await facilitators(clients, { store, attempts: 1 }).settle({ payload: { nonce: 1 } }, requirements)
    expect(answer.errorReason).toBe("settlement_pending")
  }
  expect(asked).toEqual(["http://one", "http://one"])
})

it("a payment that two processes send is asked of one facilitator alone", async () => {
  const asked: Array<string> = []
  const requirements = { network: "stellar:testnet" }
  const settled = { success: true, transaction: "a".repeat(64), network: "stellar:testnet" }
  const busy = { ...settled, success: false, errorReason: "settle_ledger_temporarily_unavailable" }
  const [firstAsked, bothAsked] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const verify = async () => ({ isValid: true })
  // The first facilitator records the second process's settle, while it refuses the first one's.
  const settle = async () => {
    asked.push("one")
    if (asked.length === 1) {
      firstAsked.resolve()
      await bothAsked.promise
      return busy
    }
    bothAsked.resolve()
    await new Promise((resolve) => setTimeout(resolve, 100))
    return settled
  }
  const other = async () => {
    asked.push("two")
    return settled
  }
  const clients = [
    { url: "http://one", verify, settle },
    { url: "http://two", verify, settle: other }
  ]
  const store = memoryStore()
  const process = () => facilitators(clients, { store, attempts: 1 }).settle({ payload: { nonce: 1 } }, requirements)
  const first = process()
  await firstAsked.promise
  const [early, late] = await Promise.all([first, process()])
  expect([early.errorReason, late.success]).toEqual(["settlement_pending", true])
  expect(asked).toEqual(["one", "one"])
})
