import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Latch } from "effect"
import { Keypair } from "@stellar/stellar-sdk"
import { databaseKinds } from "../../support/databases.ts"
import { eventually } from "../../support/eventually.ts"
import { eventNames } from "../../../plugins/x402-batch/batchCalls.ts"
import { stretchLedgers } from "../../../plugins/x402-batch/ledgerCalls.ts"
import { encodeValue, symbolValue } from "../../../kernel/stellar/Value.ts"
import { type BatchFacilitator, startBatch } from "./world.ts"

const word = (reason: string) => `invalid_batch_settlement_ledger_${reason}`

/** Calls of the contract on the ledger, by the event that each publishes. */
const contractCalls = ({ contract, rpc }: BatchFacilitator, kind: "claim" | "settle") =>
  Effect.promise(async () => {
    const name = kind === "claim" ? eventNames.claimed : eventNames.settled
    const topic = Buffer.from(encodeValue(symbolValue(name))).toString("base64")
    const { oldestLedger } = await rpc("getHealth")
    const filters = [{ type: "contract", contractIds: [contract], topics: [[topic, "**"]] }]
    const { events } = await rpc("getEvents", { startLedger: Math.max(1, oldestLedger), filters })
    return events.length as number
  })

describe("claims", () => {
  it.live.each(databaseKinds)(
    "of many channels are one transaction, and identical ones are one settlement, on %s",
    (database) =>
      Effect.gen(function* () {
        const facilitator = yield* startBatch({ channels: 10, database })
        const { batch } = facilitator
        const seller = yield* facilitator.seller
        const channels = yield* Effect.forEach(Array.from({ length: 8 }), () => facilitator.open(seller, 1_000n), {
          concurrency: 4
        })
        const claims = channels.map((channel, index) => ({ channel, max: 500n, total: 100n + BigInt(index) }))
        const body = batch.body(channels[0]!, batch.claim(claims), 0n, { maxTimeoutSeconds: 0 })
        const answers = yield* Effect.all([facilitator.settle(body), facilitator.settle(body)], {
          concurrency: "unbounded"
        })
        assert.strictEqual(answers.filter(({ json }) => json.success).length, 1, answers.map(({ text }) => text).join())
        const rows = yield* facilitator.sql<{ amount: string; moved: string; payer: string }>`
        select amount::text as amount, moved::text as moved, payer from kernel_settlements
        where starts_with(authorization_key, 'claim:')`
        assert.deepStrictEqual(rows, [{ amount: "828", moved: "0", payer: facilitator.contract }])
        const landed = yield* contractCalls(facilitator, "claim")
        assert.strictEqual(landed, 1, "transactions of two identical claims")
        const sweep = batch.body(channels[0]!, batch.settle(seller.payTo), 0n)
        const sweeps = yield* Effect.all([facilitator.settle(sweep), facilitator.settle(sweep)], {
          concurrency: "unbounded"
        })
        assert.deepStrictEqual(
          sweeps.filter(({ json }) => json.success).map(({ json }) => json.amount),
          ["828"]
        )
        assert.strictEqual(yield* facilitator.balance(seller.payTo), 828n)
        assert.strictEqual((yield* facilitator.settle(sweep)).json.errorReason, word("nothing_to_settle"))

        const later = batch.claim([{ channel: channels[0]!, max: 500n, total: 300n }])
        assert.strictEqual((yield* facilitator.settle(batch.body(channels[0]!, later, 0n))).json.success, true)
        assert.strictEqual((yield* facilitator.settle(sweep)).json.amount, "200")
        assert.strictEqual(yield* facilitator.balance(seller.payTo), 1_028n)
      }).pipe(Effect.scoped)
  )

  it.live("are refused by name, before anything is recorded", () =>
    Effect.gen(function* () {
      const facilitator = yield* startBatch()
      const { batch } = facilitator
      const seller = yield* facilitator.seller
      const first = yield* facilitator.open(seller, 1_000n)
      const second = yield* facilitator.open(seller, 1_000n)
      const unopened = batch.channel(first.payer, seller.payTo, seller.authorizer)
      const elsewhere = yield* facilitator.seller
      const foreign = batch.channel(first.payer, elsewhere.payTo, seller.authorizer)
      const settle = (payload: unknown) =>
        Effect.map(facilitator.settle(batch.body(first, payload, 0n)), ({ json }) => [
          json.errorReason,
          json.errorMessage
        ])
      const good = { channel: first, max: 500n, total: 100n }
      const refused = Effect.fnUntraced(function* (payload: unknown, reason: string, message: RegExp) {
        const [found, said] = yield* settle(payload)
        assert.strictEqual(found, word(reason), said)
        assert.match(said, message)
      })
      const above = { channel: second, max: 500n, total: 501n }
      yield* refused(
        batch.claim([good, above]),
        "charge_exceeds_signed_cumulative",
        /^claims\[1\]: totalClaimed is above/
      )
      yield* refused(batch.claim([good, { ...good, channel: foreign }]), "receiver_mismatch", /^claims\[1\]/)
      yield* refused(batch.claim([good, { ...good, channel: unopened }]), "channel_not_found", /^claims\[1\]/)
      const tooMuch = { channel: second, max: 2_000n, total: 1_001n }
      yield* refused(batch.claim([good, tooMuch]), "cumulative_exceeds_balance", /^claims\[1\]/)
      yield* refused(batch.claim([good], Keypair.random()), "authorizer_address_mismatch", /claimAuthorizerSignature/)
      const { claimAuthorizerSignature: _, ...unsigned } = batch.claim([good])
      yield* refused(unsigned, "authorizer_not_configured", /signs for none/)
      const wrong = { ...second, payerAuthorizer: Keypair.random() }
      yield* refused(batch.claim([good, { ...good, channel: wrong }]), "voucher_signature", /^claims\[1\]/)
      yield* refused(batch.claim(Array.from({ length: 200 }, () => good)), "too_many_claims", /199/)
      yield* refused(batch.claim([{ ...good, total: 0n }]), "nothing_to_claim", /above/)
      yield* refused(batch.settle(elsewhere.payTo), "receiver_mismatch", /payTo/)
      yield* refused({ type: "claims" }, "payload_type", /payload.type/)
      yield* refused(batch.refund(first, 100n, 900n, 1n), "refund_payload", /refundNonce/)
      yield* refused(batch.refund(first, 100n, 0n, 0n), "refund_amount_invalid", /zero/)
      const refund = batch.refund(first, 100n, 900n, 0n)
      const { claims, claimAuthorizerSignature } = batch.refund(second, 100n, 900n, 0n)
      yield* refused({ ...refund, claims, claimAuthorizerSignature }, "refund_payload", /another channel/)
      const { refundAuthorizerSignature } = batch.refund(first, 100n, 901n, 0n)
      yield* refused({ ...refund, refundAuthorizerSignature }, "authorizer_address_mismatch", /over this refund/)
      const rows = yield* facilitator.sql<{ n: number }>`select count(*)::int4 as n from kernel_settlements`
      assert.deepStrictEqual(rows, [{ n: 2 }])
    }).pipe(Effect.scoped)
  )

  it.live.each(databaseKinds)("that were recorded and never sent are sent by the follower on %s", (database) =>
    Effect.gen(function* () {
      const latch = Latch.makeUnsafe(true)
      const facilitator = yield* startBatch({
        database,
        set: ["limits.settle_timeout_ms=3000"],
        atStep: (step) => (step === "afterRecord" ? latch.await : Effect.void)
      })
      const { batch } = facilitator
      const seller = yield* facilitator.seller
      const channel = yield* facilitator.open(seller, 1_000n)
      yield* latch.close
      const body = batch.body(channel, batch.claim([{ channel, max: 500n, total: 100n }]), 0n)
      const { json } = yield* facilitator.settle(body)
      assert.strictEqual(json.success, false, "its sender waits for ever, as a killed one")
      const states = facilitator.sql<{ state: string }>`select state from kernel_settlements
        where starts_with(authorization_key, 'claim:')`
      yield* eventually(states, ([row]) => row?.state === "settled")
      yield* latch.open
      const swept = yield* facilitator.settle(batch.body(channel, batch.settle(seller.payTo), 0n))
      assert.strictEqual(swept.json.amount, "100", swept.text)
    }).pipe(Effect.scoped)
  )

  it.live.each(databaseKinds)(
    "sent again with refunds and sweeps in the next stretch of ledgers have their undelivered success, on %s",
    (database) =>
      Effect.gen(function* () {
        const facilitator = yield* startBatch({ channels: 5, database })
        const { batch } = facilitator
        const seller = yield* facilitator.seller
        const channel = yield* facilitator.open(seller, 1_000n)
        const sequence = Effect.sync(() => facilitator.ledger.ledger.latest.sequence)
        /** As if it had been recorded some stretches ago, and its caller had not received the answer. */
        const lose = Effect.fnUntraced(function* (kind: string, stretches: number) {
          // Not near an end of a stretch: the facilitator may be a ledger or two behind the ledger itself.
          const isWithin = (ledger: number) => ledger % stretchLedgers > 10 && ledger % stretchLedgers < 50
          const now = yield* eventually(sequence, isWithin)
          const stretch = String(Math.floor(now / stretchLedgers) - stretches)
          yield* facilitator.sql`update kernel_settlements set delivered_at = null,
            authorization_key = regexp_replace(authorization_key, '[0-9]+$', ${stretch})
            where starts_with(authorization_key, ${kind})`
        })
        const calls = [
          ["claim:", batch.claim([{ channel, max: 300n, total: 100n }]), 0n, "nothing_to_claim"],
          ["settle:", batch.settle(seller.payTo), 0n, "nothing_to_settle"],
          ["refund:", batch.refund(channel, 300n, 700n, 0n), 100n, "refund_payload"]
        ] as const
        for (const [kind, payload, price, left] of calls) {
          const body = batch.body(channel, payload, price)
          const first = yield* facilitator.settle(body)
          assert.strictEqual(first.json.success, true, first.text)
          for (const stretches of kind === "settle:" ? [0, 1] : [1]) {
            yield* lose(kind, stretches)
            assert.strictEqual((yield* facilitator.verify(body)).json.isValid, true, kind)
            const again = yield* facilitator.settle(body)
            assert.deepStrictEqual(
              [again.json.success, again.json.transaction, again.json.amount],
              [true, first.json.transaction, first.json.amount],
              again.text
            )
            // It is given once, and only to the same caller and terms.
            assert.strictEqual((yield* facilitator.settle(body)).json.errorReason, word(left))
          }
        }
        const claim = batch.body(channel, calls[0][1], 0n)
        yield* lose("claim:", 1)
        yield* facilitator.sql`update kernel_settlements set state = 'failed',
          reason = 'settle_ledger_transaction_failed'
          where starts_with(authorization_key, 'claim:')`
        assert.strictEqual((yield* facilitator.settle(claim)).json.errorReason, word("nothing_to_claim"))
        yield* facilitator.sql`update kernel_settlements set state = 'settled', principal = 'key:other'
          where starts_with(authorization_key, 'claim:')`
        assert.strictEqual((yield* facilitator.settle(claim)).json.errorReason, word("nothing_to_claim"))
      }).pipe(Effect.scoped)
  )

  it.live("count in their caller's rate by the checks that they cost", () =>
    Effect.gen(function* () {
      const facilitator = yield* startBatch({ set: ["limits.verify_per_second=10"] })
      const { batch } = facilitator
      const { authorizer, payTo } = yield* facilitator.seller
      // Invented channels, which cost their sender nothing.
      const invented = (count: number) =>
        Array.from({ length: count }, () => ({
          channel: batch.channel(Keypair.random(), payTo, authorizer),
          max: 1n,
          total: 1n
        }))
      const verified = (count: number) => {
        const claims = invented(count)
        return facilitator.verify(batch.body(claims[0]!.channel, batch.claim(claims), 0n))
      }
      const [one, most, next] = [yield* verified(1), yield* verified(199), yield* verified(199)]
      for (const { json } of [one, most]) assert.strictEqual(json.invalidReason, word("channel_not_found"))
      assert.deepStrictEqual([next.status, next.json.invalidReason], [429, "rate_limited"])
    }).pipe(Effect.scoped)
  )

  it.live.each(databaseKinds)("that land second are settled, and sold what they raised alone, on %s", (database) =>
    Effect.gen(function* () {
      const latch = Latch.makeUnsafe(true)
      let waiting = 0
      const other = yield* startBatch({ channels: 4 })
      const facilitator = yield* startBatch({
        database,
        ledgerUrl: other.ledgerUrl,
        set: [
          "plugins=[x402-exact,x402-batch,catalog,analytics]",
          `networks.ledger:testnet.batch_contract=${other.contract}`
        ],
        atStep: (step) => (step === "beforeRecord" ? Effect.andThen(counted, latch.await) : Effect.void)
      })
      const counted = Effect.sync(() => void (waiting += 1))
      const { batch } = other
      const seller = yield* other.seller
      const [first, second] = [yield* other.open(seller, 1_000n), yield* other.open(seller, 1_000n)]
      type Claims = Parameters<typeof batch.claim>[0]
      const bodyOf = (claims: Claims) => batch.body(first, batch.claim(claims), 0n)
      /** Ours was simulated when theirs lands. */
      const overtaken = Effect.fnUntraced(function* (ours: Claims, theirs: Claims) {
        const before = waiting
        yield* latch.close
        const settling = yield* Effect.forkChild(facilitator.settle(bodyOf(ours)))
        yield* eventually(
          Effect.sync(() => waiting),
          (now) => now > before
        )
        assert.strictEqual((yield* other.settle(bodyOf(theirs))).json.success, true)
        yield* latch.open
        return yield* Fiber.join(settling)
      })
      const one = { channel: first, max: 500n, total: 100n }
      const whole = yield* overtaken([one], [one])
      assert.deepStrictEqual([whole.json.success, whole.json.amount], [true, ""], whole.text)
      const raised = { channel: first, max: 500n, total: 300n }
      const rest = { channel: second, max: 500n, total: 150n }
      const part = yield* overtaken([raised, rest], [{ ...raised, total: 250n }])
      assert.strictEqual(part.json.success, true, part.text)
      const facts = yield* facilitator.sql<{ meant: string; sold: string | null }>`
        select b.data->'books'->>'sold' as meant, e.data->>'sold' as sold
        from kernel_facts b join kernel_facts e on e.subject = b.subject and e.type = 'settlement.settled'
        where b.type = 'settlement.recorded' order by b.position`
      assert.deepStrictEqual(facts, [
        { meant: "100", sold: "0" },
        { meant: "350", sold: "200" }
      ])
      const counts = facilitator.sql<{ amount: string }>`select amount::text as amount from analytics_settlements
        where scheme = 'batch-settlement:claim' and status = 'success' order by occurred_at`
      const booked = yield* eventually(counts, ({ length }) => length === 2)
      assert.deepStrictEqual(
        booked.map(({ amount }) => amount),
        ["0", "200"]
      )
    }).pipe(Effect.scoped)
  )
})
