// Calls to the ledger for channels, counted at a proxy in front of it, which can also lack events.
import { createServer } from "node:http"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Fiber } from "effect"
import { LedgerClock } from "../../../kernel/ledger/LedgerClock.ts"
import { channelKey, receiverKey } from "../../../plugins/x402-batch/batchCalls.ts"
import type { BatchChannel } from "../../support/batchBuyer.ts"
import { eventually } from "../../support/eventually.ts"
import { type BatchFacilitator, startBatch } from "./world.ts"

/**
 * Lifetime of an entry in ledgers, if a test shortens it: longer than the range of events that is read after a pause.
 */
const livesLedgers = 1_500

const word = (reason: string) => `invalid_batch_settlement_ledger_${reason}`

/** Forwards calls to a ledger and counts the calls that contain a text; refuses the listed methods. */
const proxyOf = (target: string) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const refused = new Set<string>()
      /** Methods with answers that omit entries of contracts, as from a node that has archived them. */
      const hidden = new Set<string>()
      /** Methods that are answered as the last time, as by a node that froze. */
      const frozen = new Set<string>()
      const answers = new Map<string, object>()
      /** Entries are answered as the last time for the last of these alone. */
      const channelKeys = ["no channel"]
      const counts = new Map<string, number>()
      const bodies: Array<string> = []
      const server = createServer((request, response) => {
        const chunks: Array<Buffer> = []
        request.on("data", (chunk: Buffer) => chunks.push(chunk))
        request.on("end", async () => {
          const body = Buffer.concat(chunks).toString()
          const method = /"method"\s*:\s*"(\w+)"/.exec(body)?.[1] ?? ""
          counts.set(method, (counts.get(method) ?? 0) + 1)
          bodies.push(body)
          response.setHeader("content-type", "application/json")
          if (refused.has(method)) {
            const error = { code: -32_601, message: "method not found" }
            return response.end(JSON.stringify({ jsonrpc: "2.0", id: JSON.parse(body).id, error }))
          }
          const before = frozen.has(method) ? answers.get(method) : undefined
          if (before !== undefined) return response.end(JSON.stringify({ ...before, id: JSON.parse(body).id }))
          const headers = { "content-type": "application/json" }
          const answer = await fetch(`${target}${request.url}`, { method: "POST", headers, body })
          const text = await answer.text()
          if (method !== "getLedgerEntries" || body.includes(channelKeys.at(-1)!)) answers.set(method, JSON.parse(text))
          const parsed = hidden.has(method) ? JSON.parse(text) : undefined
          // Contract data, by its kind in the key: accounts are always shown.
          if (parsed?.result?.entries !== undefined)
            parsed.result.entries = parsed.result.entries.filter(
              ({ key }: { key: string }) => !key.startsWith("AAAABg")
            )
          return response.end(parsed === undefined ? text : JSON.stringify(parsed))
        })
      })
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
      return {
        url: `http://127.0.0.1:${(server.address() as { port: number }).port}`,
        refused,
        hidden,
        frozen,
        channelKeys,
        calls: (method: string) => counts.get(method) ?? 0,
        /** Calls that contain a text. */
        containing: (text: string) => bodies.filter((body) => body.includes(text)).length,
        stop: () => {
          server.closeAllConnections()
          server.close()
        }
      }
    }),
    ({ stop }) => Effect.sync(stop)
  )

/** A facilitator of the ledger, and one behind the proxy, with keys of its callers. */
const twoFor = Effect.fnUntraced(function* (environment: Readonly<Record<string, string>> = {}) {
  const first = yield* startBatch({ closeMillis: 500 })
  const proxy = yield* proxyOf(first.ledgerUrl)
  const second = yield* startBatch({
    ledgerUrl: proxy.url,
    environment,
    set: [
      "plugins=[x402-exact,x402-batch]",
      `networks.ledger:testnet.friendbot_url=${first.ledgerUrl}/friendbot`,
      `networks.ledger:testnet.batch_contract=${first.contract}`
    ]
  })
  const seller = yield* first.seller
  const channel = yield* first.open(seller, 1_000n)
  return { first, second, proxy, channel }
})
const two = twoFor()

const pay = ({ batch, verify }: BatchFacilitator, channel: BatchChannel, max = 200n) =>
  Effect.map(verify(batch.body(channel, batch.pay(channel, max), 100n)), ({ json }) => json)

const clockOf = ({ services }: BatchFacilitator) =>
  (Context.getUnsafe(services, LedgerClock as never) as LedgerClock["Service"]).now

/** Pays in each ledger until a number of them has passed. */
const payFor = Effect.fnUntraced(function* (facilitator: BatchFacilitator, channel: BatchChannel, ledgers: number) {
  const from = (yield* clockOf(facilitator)).sequence
  for (let at = from; at < from + ledgers; at = (yield* clockOf(facilitator)).sequence)
    assert.strictEqual((yield* pay(facilitator, channel)).isValid, true)
})

/** Starts a withdrawal at the other facilitator; the first reading of a ledger after it must refuse. */
const withdrawn = Effect.fnUntraced(function* ({ channel, first, second }: Effect.Success<typeof two>) {
  const start = yield* Effect.promise(() => first.batch.withdraw(channel, "Start"))
  const { json } = yield* first.settle(first.batch.body(channel, start, 0n))
  assert.strictEqual(json.success, true)
  const { ledger } = yield* Effect.promise(() => first.rpc("getTransaction", { hash: json.transaction }))
  yield* eventually(clockOf(second), ({ sequence }) => sequence > ledger)
  assert.strictEqual((yield* pay(second, channel)).invalidReason, word("withdrawal_started"))
})

describe("the state of a channel", () => {
  it.live("is read once, and again when an event of the contract names the channel", () =>
    Effect.gen(function* () {
      const world = yield* two
      const { channel, first, proxy, second } = world
      const reads = () => proxy.containing(channelKey(first.contract, channel.channelId))
      yield* payFor(second, channel, 2)
      const [before, events] = [reads(), proxy.calls("getEvents")]
      yield* payFor(second, channel, 12)
      // A turn that comes late is made up for by a read.
      assert.ok(reads() - before <= 4, `${reads() - before} reads in 12 ledgers`)
      assert.ok(proxy.calls("getEvents") > events, "events were asked for")
      const other = yield* first.open({ payTo: channel.config.receiver, authorizer: channel.receiverAuthorizer }, 500n)
      assert.strictEqual((yield* pay(second, other)).isValid, true)
      yield* withdrawn(world)
    }).pipe(Effect.scoped)
  )

  it.live("of many unknown channels is read by few calls, and proven before it is denied", () =>
    Effect.gen(function* () {
      const { channel, proxy, second } = yield* two
      const { batch } = second
      const others = Array.from({ length: 60 }, () =>
        batch.channel(channel.payer, channel.config.receiver, channel.receiverAuthorizer)
      )
      const counted = () => [proxy.calls("getLedgerEntries"), proxy.calls("simulateTransaction")] as const
      const [readsBefore, proofsBefore] = counted()
      const began = performance.now()
      const answers = yield* Effect.forEach(
        others,
        (other) => second.verify(batch.body(other, batch.pay(other, 200n), 100n)),
        { concurrency: "unbounded" }
      )
      const [readsAfter, proofsAfter] = counted()
      const seconds = Math.ceil((performance.now() - began) / 1_000)
      assert.ok(readsAfter - readsBefore < others.length, `${readsAfter - readsBefore} reads of 60 channels`)
      assert.ok(proofsAfter - proofsBefore <= 10 * (seconds + 1), `${proofsAfter - proofsBefore} in ${seconds} s`)
      // Beyond the limit on proofs the answer is busy, and never that the channel does not exist.
      const reasons = answers.map(({ json, status }) => (status === 503 ? "busy" : json.invalidReason))
      assert.ok(
        reasons.every((reason) => reason === "busy" || reason === word("channel_not_found")),
        String(reasons)
      )
      // The same channel by many requests at one time is one read.
      const reads = proxy.calls("getLedgerEntries")
      yield* Effect.forEach(Array.from({ length: 20 }), () => pay(second, channel), { concurrency: "unbounded" })
      assert.ok(proxy.calls("getLedgerEntries") - reads <= 3)
    }).pipe(Effect.scoped)
  )

  it.live("of one caller's invented channels leaves proofs to the others", () =>
    Effect.gen(function* () {
      const keys = { flood: "flood-secret-0123456789", shop: "shop-secret-0123456789" }
      const listed = Object.entries(keys).map(([label, secret]) => `${label}:${secret}`)
      const { channel, second } = yield* twoFor({ FACILITATOR_API_KEYS: listed.join() })
      const { batch } = second
      const ask = (key: string) => {
        const other = batch.channel(channel.payer, channel.config.receiver, channel.receiverAuthorizer)
        const body = batch.body(other, batch.pay(other, 200n), 100n)
        return second.verify(body, { authorization: `Bearer ${key}` })
      }
      const flood = Effect.forEach(Array.from({ length: 20 }), () => ask(keys.flood), { concurrency: "unbounded" })
      const flooding = yield* Effect.forkChild(Effect.forever(flood))
      for (let at = 0; at < 8; at++) {
        yield* Effect.sleep("450 millis")
        const { json, status } = yield* ask(keys.shop)
        assert.deepStrictEqual([status, json.invalidReason], [200, word("channel_not_found")])
      }
      yield* Fiber.interrupt(flooding)
    }).pipe(Effect.scoped)
  )

  it.live.each(["getLedgerEntries", "simulateTransaction"])(
    "before the last claim, by %s, does not end a sweep",
    (method) =>
      Effect.gen(function* () {
        const { channel, first, proxy, second } = yield* two
        const { batch } = first
        const { receiver, token } = channel.config
        const claim = Effect.fnUntraced(function* (total: bigint) {
          const body = batch.body(channel, batch.claim([{ channel, max: 1_000n, total }]), 0n)
          const { json, text } = yield* first.settled(body)
          assert.strictEqual(json.success, true, text)
          const { ledger } = yield* Effect.promise(() => first.rpc("getTransaction", { hash: json.transaction }))
          yield* eventually(clockOf(second), ({ sequence }) => sequence > ledger)
        })
        const sweep = batch.body(channel, batch.settle(receiver), 0n)
        const verified = Effect.map(second.verify(sweep), ({ json }) => json)
        if (method === "getLedgerEntries") {
          proxy.channelKeys.push(receiverKey(first.contract, receiver, token))
          yield* claim(100n)
          assert.strictEqual((yield* first.settled(sweep)).json.success, true)
        }
        yield* eventually(verified, ({ invalidReason }) => invalidReason === word("nothing_to_settle"))
        proxy.frozen.add(method)
        yield* claim(300n)
        // The node answers as before the claim. A sweep that ended by it would leave the amount in the contract.
        assert.strictEqual((yield* verified).invalidReason, "ledger_unavailable")
        proxy.frozen.delete(method)
        assert.strictEqual((yield* verified).isValid, true)
      }).pipe(Effect.scoped)
  )

  it.live("that no read shows is proven by a simulation, or the answer is busy", () =>
    Effect.gen(function* () {
      const { channel, proxy, second } = yield* two
      proxy.hidden.add("getLedgerEntries")
      // An archived entry: the node does not show it, but the contract has the channel.
      assert.strictEqual((yield* pay(second, channel)).isValid, true)
      proxy.refused.add("simulateTransaction")
      const { batch } = second
      const other = batch.channel(channel.payer, channel.config.receiver, channel.receiverAuthorizer)
      const { json, status } = yield* second.verify(batch.body(other, batch.pay(other, 200n), 100n))
      assert.deepStrictEqual([status, json.invalidReason], [503, "ledger_unavailable"])
    }).pipe(Effect.scoped)
  )

  it.live.each([
    ["the node", "getLatestLedger"],
    ["the part of it that shows entries", "getLedgerEntries"]
  ] as const)("is not believed for long after %s froze", ([, method]) =>
    Effect.gen(function* () {
      const { channel, first, proxy, second } = yield* two
      proxy.channelKeys.push(channelKey(first.contract, channel.channelId))
      proxy.refused.add("getEvents")
      assert.strictEqual((yield* pay(second, channel)).isValid, true)
      proxy.frozen.add(method)
      const began = performance.now()
      const start = yield* Effect.promise(() => first.batch.withdraw(channel, "Start"))
      assert.strictEqual((yield* first.settled(first.batch.body(channel, start, 0n))).json.success, true)
      const { invalidReason } = yield* eventually(pay(second, channel), ({ isValid }) => isValid !== true)
      assert.strictEqual(invalidReason, "ledger_unavailable")
      const seconds = (performance.now() - began) / 1_000
      assert.ok(seconds < 24, `believed for ${seconds} s`)
    }).pipe(Effect.scoped)
  )

  it.live("is read with each ledger where a node has no events", () =>
    Effect.gen(function* () {
      const world = yield* two
      world.proxy.refused.add("getEvents")
      yield* payFor(world.second, world.channel, 5)
      yield* withdrawn(world)
    }).pipe(Effect.scoped)
  )

  it.live("is read again after the ledger went far ahead", () =>
    Effect.gen(function* () {
      const facilitator = yield* startBatch()
      const { ledger } = facilitator.ledger
      // The network's months of life would be 700,000 ledgers to close, minutes of computing on a busy machine.
      Object.assign(ledger.options.settings.ttl, { minPersistentLedgers: livesLedgers, maxEntryLedgers: livesLedgers })
      const seller = yield* facilitator.seller
      const channel = yield* facilitator.open(seller, 1_000n)
      assert.strictEqual((yield* pay(facilitator, channel)).isValid, true)
      const archived = yield* facilitator.ledger.closeMany(2 * livesLedgers)
      // The ledger is followed closely while it is asked for.
      const asked = Effect.andThen(pay(facilitator, channel), Effect.option(clockOf(facilitator)))
      yield* eventually(asked, (now) => now._tag === "Some" && now.value.sequence >= archived)
      const params = { keys: [channelKey(facilitator.contract, channel.channelId)] }
      const { entries } = yield* Effect.promise(() => facilitator.rpc("getLedgerEntries", params))
      assert.ok(entries[0].liveUntilLedgerSeq < archived)
      // Its entry has been archived in between, but the node still shows it: the channel's balance can be claimed.
      assert.strictEqual((yield* pay(facilitator, channel)).isValid, true)
      const other = yield* facilitator.open(seller, 1_000n)
      assert.strictEqual((yield* pay(facilitator, other)).isValid, true)
    }).pipe(Effect.scoped)
  )
})
