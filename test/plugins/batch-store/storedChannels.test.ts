// A seller's channels in SQL: amounts are reserved and charged once, also when instances race and requests repeat, and
// the claimer's records of them.
import { expect, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { describe } from "vitest"
import { Claims, claimsOf } from "../../../plugins/batch-store/Claims.ts"
import type { Reserve } from "../../../plugins/batch-store/ChannelWire.ts"
import { type Place, StoredChannels } from "../../../plugins/batch-store/StoredChannels.ts"
import { databaseKinds, databaseLayer } from "../../support/databases.ts"

const channelConfig = {
  payer: "GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ",
  payerAuthorizer: "GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ",
  receiver: "GBRPYHIL2CI3FNQ4BXLFMNDLFJUNPU2HY3ZMFSHONUCEOASW7QC7OX2H",
  receiverAuthorizer: "GBRPYHIL2CI3FNQ4BXLFMNDLFJUNPU2HY3ZMFSHONUCEOASW7QC7OX2H",
  token: "CBIELTK6YBZJU5UP2WWQEUCYKLPU6AUNZ2BQ4WWFEIE3USCIHMXQDAMA",
  withdrawDelay: 900,
  salt: "00".repeat(32)
}
const state = { balance: "10000", totalClaimed: "0", withdrawRequestedAt: 0, refundNonce: 0 }
const network = "ledger:testnet"
let number = 0
const newId = () => (++number).toString(16).padStart(64, "0")
const payment = (name: string) => name.padEnd(16, "-")

const asked = (channelId: string, name: string, max: bigint, price = 100n): Reserve => ({
  channelConfig,
  payment: payment(name),
  price: String(price),
  state,
  voucher: { channelId, maxClaimableAmount: String(max), signature: "ab".repeat(64) }
})
/** The ledger's state of a channel. */
const shown = (withdrawRequestedAt: number) => ({
  balance: 10_000n,
  totalClaimed: 0n,
  withdrawRequestedAt,
  refundNonce: 0n
})
const options = { ttlSeconds: 60, channelsMax: 1_000 }
const shop: Place = { principal: "key:shop", network }

const services = (kind: (typeof databaseKinds)[number]) =>
  Layer.mergeAll(StoredChannels.layer, Claims.layer).pipe(
    Layer.provideMerge(databaseLayer(kind, ["kernel", "batch-store"]))
  )

/** Reserves and charges the whole price. */
const pay = Effect.fnUntraced(function* (place: Place, channelId: string, name: string, max: bigint, amount = 100n) {
  const channels = yield* StoredChannels
  const { status } = yield* channels.reserve(place, asked(channelId, name, max), options)
  const charged = yield* channels.charge(place, { payment: payment(name), channelId, amount: String(amount) })
  return { reserved: status, charged: charged.status, total: charged.channel?.chargedCumulativeAmount }
})

for (const kind of databaseKinds) {
  describe(`the channel store on ${kind}`, () =>
    layer(services(kind))((it) => {
      it.effect("charges less than the price, and the next voucher builds on what was charged", () =>
        Effect.gen(function* () {
          const channels = yield* StoredChannels
          const id = newId()
          expect(yield* pay(shop, id, "first", 100n, 30n)).toEqual({
            reserved: "reserved",
            charged: "charged",
            total: "30"
          })
          const signed = yield* channels.reserve(shop, asked(id, "second", 200n), options)
          expect([signed.status, signed.channel?.chargedCumulativeAmount]).toEqual(["stale", "30"])
          expect((yield* pay(shop, id, "third", 130n)).total).toBe("130")
          const stored = (yield* channels.get(shop, id))!
          expect(stored).toMatchObject({ signedMaxClaimable: "130", pendingRequest: null, balance: "10000" })
        })
      )

      it.effect("raises a restored record by a voucher that builds on more, and claims by it", () =>
        Effect.gen(function* () {
          const channels = yield* StoredChannels
          const id = newId()
          for (const [at, max] of [500n, 600n].entries()) yield* pay(shop, id, `before-${at}`, max)
          const newer = {
            ...asked(id, "newer", 1_700n),
            voucher: { ...asked(id, "", 1_700n).voucher, signature: "cd".repeat(64) }
          }
          const raised = yield* channels.reserve(shop, newer, options)
          expect([raised.status, raised.channel?.chargedCumulativeAmount]).toEqual(["reserved", "1600"])
          expect(raised.channel).toMatchObject({ signedMaxClaimable: "1700", signature: "cd".repeat(64) })
          // Also if the request is not charged: the amount charged before it can be claimed.
          yield* channels.release(shop, id, newer.payment)
          expect((yield* pay(shop, id, "after", 1_700n)).total).toBe("1700")
          // Below the newest voucher, the buyer's total is a separate error, which the record corrects.
          expect((yield* pay(shop, id, "less", 1_800n, 30n)).total).toBe("1730")
          expect((yield* channels.reserve(shop, asked(id, "more", 1_890n), options)).status).toBe("stale")
          // A smaller voucher takes no larger one's place.
          yield* channels.reserve(shop, asked(id, "tiny", 1_740n, 10n), options)
          const charged = yield* channels.charge(shop, { payment: payment("tiny"), channelId: id, amount: "10" })
          expect(charged.channel).toMatchObject({ chargedCumulativeAmount: "1740", signedMaxClaimable: "1800" })
        })
      )

      it.effect("raises and creates no record above the channel's balance", () =>
        Effect.gen(function* () {
          const channels = yield* StoredChannels
          const reserve = (id: string, name: string, max: bigint, held: string | undefined) => {
            const { state: _, ...rest } = asked(id, name, max)
            const request = held === undefined ? rest : { ...rest, state: { ...state, balance: held } }
            return Effect.map(channels.reserve(shop, request, options), ({ channel, status }) => [
              status,
              channel?.chargedCumulativeAmount,
              channel?.signedMaxClaimable
            ])
          }
          const id = newId()
          yield* pay(shop, id, "first", 600n)
          // Only a deposit in the same request would cover it, and may never be sent.
          expect(yield* reserve(id, "unsent", 1_101n, "1000")).toEqual(["stale", "600", "600"])
          // Without a reading the recorded balance counts.
          expect(yield* reserve(id, "unread", 10_101n, undefined)).toEqual(["stale", "600", "600"])
          expect(yield* reserve(id, "covered", 1_100n, "1000")).toEqual(["reserved", "1000", "1100"])
          const unknown = newId()
          expect(yield* reserve(unknown, "unsent", 101n, "0")).toEqual(["stale", undefined, undefined])
          expect(yield* reserve(unknown, "first", 100n, "0")).toEqual(["reserved", "0", "100"])
        })
      )

      it.effect("claims the charges of a lost record, even if its buyer's request fails", () =>
        Effect.gen(function* () {
          const channels = yield* StoredChannels
          const claims = yield* Claims
          const place = { ...shop, principal: `key:lost-record-${kind}` }
          const id = newId()
          yield* channels.reserve(place, asked(id, "returning", 1_600n), options)
          yield* channels.release(place, id, payment("returning"))
          const groups = yield* claims.due({ network, claimEverySeconds: 0 })
          expect(groups.filter(({ principal }) => principal === place.principal)).toHaveLength(1)
        })
      )

      it.effect("sells nothing below a signed refund until its nonce moved or its time is over", () =>
        Effect.gen(function* () {
          const channels = yield* StoredChannels
          for (const over of [{ refundNonce: 1, balance: "5000" }, { asOf: 1_001 }]) {
            const id = newId()
            yield* pay(shop, id, "first", 100n)
            yield* channels.reserve(shop, asked(id, "refund", 100n, 0n), options)
            const hold = (changes: object) =>
              channels.holdRefund(shop, {
                channelId: id,
                payment: payment("refund"),
                charged: "100",
                amount: 9_900n,
                expiresAt: 1_000,
                ...changes
              })
            for (const wrong of [{ payment: payment("other") }, { charged: "99" }, { amount: 9_901n }])
              expect(yield* hold(wrong)).toBeUndefined()
            expect((yield* hold({}))?.pendingRefund).toMatchObject({ amount: "9900", refundNonce: 0, expiresAt: 1_000 })
            expect(yield* hold({})).toBeUndefined()
            yield* channels.release(shop, id, payment("refund"))
            const reserve = (name: string, max: bigint, changes: object, price = 100n) =>
              Effect.map(
                channels.reserve(shop, { ...asked(id, name, max, price), state: { ...state, ...changes } }, options),
                ({ status }) => status
              )
            expect(yield* reserve("a", 200n, {})).toBe("busy")
            expect(yield* reserve("b", 200n, { asOf: 1_000 })).toBe("busy")
            expect(yield* reserve("c", 100n, {}, 0n)).toBe("busy")
            expect(yield* reserve("d", 200n, over)).toBe("reserved")
            expect((yield* channels.get(shop, id))?.pendingRefund).toBeNull()
          }
        })
      )

      it.effect("continues from what was claimed when a record is older, and sells nothing below it", () =>
        Effect.gen(function* () {
          const channels = yield* StoredChannels
          const id = newId()
          const claimed = { ...state, totalClaimed: "300" }
          const reserve = (name: string, max: bigint) =>
            Effect.map(
              channels.reserve(shop, { ...asked(id, name, max), state: claimed }, options),
              ({ channel, status }) => [status, channel?.chargedCumulativeAmount]
            )
          // No record: we accept the buyer's total if it is at least the ledger's.
          expect(yield* reserve("none", 399n)).toEqual(["stale", undefined])
          yield* pay(shop, id, "first", 100n)
          // A restored record: 100 charged, but 300 were claimed.
          expect(yield* reserve("low", 200n)).toEqual(["stale", "100"])
          expect(yield* reserve("right", 400n)).toEqual(["reserved", "300"])
          expect(yield* reserve("late", 400n)).toEqual(["busy", "300"])
          const charged = yield* channels.charge(shop, { payment: payment("right"), channelId: id, amount: "100" })
          expect(charged.channel?.chargedCumulativeAmount).toBe("400")
          const unknown = newId()
          const asking = { ...asked(unknown, "unknown", 400n), state: claimed }
          expect((yield* channels.reserve(shop, asking, options)).channel?.chargedCumulativeAmount).toBe("300")
        })
      )

      it.effect("gives one voucher to one of eight instances, which charges it once", () =>
        Effect.gen(function* () {
          const channels = yield* StoredChannels
          const id = newId()
          const tries = yield* Effect.forEach(
            Array.from({ length: 8 }, (_, index) => `instance-${index}`),
            (name) => pay(shop, id, name, 100n),
            { concurrency: 8 }
          )
          expect(tries.filter(({ charged }) => charged === "charged")).toHaveLength(1)
          expect((yield* channels.get(shop, id))?.chargedCumulativeAmount).toBe("100")
        })
      )

      it.effect("answers the same request again, and changes nothing", () =>
        Effect.gen(function* () {
          const channels = yield* StoredChannels
          const id = newId()
          yield* pay(shop, id, "again", 100n, 0n)
          const repeated = yield* Effect.forEach(Array.from({ length: 4 }), () => pay(shop, id, "again", 100n, 0n), {
            concurrency: 4
          })
          expect(new Set(repeated.map(({ reserved }) => reserved))).toEqual(new Set(["charged"]))
          expect(new Set(repeated.map(({ charged }) => charged))).toEqual(new Set(["charged"]))
          yield* pay(shop, id, "other", 100n)
          expect(
            (yield* channels.charge(shop, { payment: payment("other"), channelId: id, amount: "100" })).status
          ).toBe("charged")
          expect((yield* channels.get(shop, id))?.chargedCumulativeAmount).toBe("100")
        })
      )

      it.effect("holds a channel until it is released or its reservation expires", () =>
        Effect.gen(function* () {
          const channels = yield* StoredChannels
          const id = newId()
          yield* channels.reserve(shop, asked(id, "slow", 100n), options)
          expect((yield* channels.reserve(shop, asked(id, "next", 100n), options)).status).toBe("busy")
          expect(yield* channels.release(shop, id, payment("next"))).toBe(false)
          expect(yield* channels.release(shop, id, payment("slow"))).toBe(true)
          yield* channels.reserve(shop, asked(id, "short", 100n), { ...options, ttlSeconds: 0 })
          expect((yield* channels.reserve(shop, asked(id, "next", 100n), options)).status).toBe("reserved")
          // The one that expired has lost the channel.
          const late = yield* channels.charge(shop, { payment: payment("short"), channelId: id, amount: "100" })
          expect(late.status).toBe("busy")
        })
      )

      it.effect("refuses a channel or policy above its key's limit, and no known one", () =>
        Effect.gen(function* () {
          const channels = yield* StoredChannels
          const place = { principal: "key:busy", network }
          const few = { ...options, channelsMax: 2 }
          const reserve = (id: string, name: string, of = place) => channels.reserve(of, asked(id, name, 100n), few)
          const [first, second, third] = [newId(), newId(), newId()]
          for (const id of [first, second]) expect((yield* reserve(id, "one")).status).toBe("reserved")
          expect(yield* reserve(third, "one")).toEqual({ status: "full", channel: undefined })
          expect((yield* reserve(first, "one")).status).toBe("reserved")
          expect((yield* reserve(third, "one", { ...place, principal: "key:calm" })).status).toBe("reserved")

          const policy = { claimEverySeconds: 60, claimAt: undefined }
          for (let n = 0; n < 64; n++) expect(yield* channels.setPolicy(place, `C${n}`, policy)).toBe(true)
          expect(yield* channels.setPolicy(place, "C64", policy)).toBe(false)
          expect(yield* channels.setPolicy(place, "C0", { ...policy, claimAt: "5" })).toBe(true)
        })
      )

      it.effect("deletes channels with nothing to claim to make room for a new one", () =>
        Effect.gen(function* () {
          const channels = yield* StoredChannels
          const place = { principal: "key:crowded", network }
          const few = { ...options, channelsMax: 4 }
          const reserve = (id: string, balance = "0") =>
            channels.reserve(place, { ...asked(id, "one", 100n), state: { ...state, balance } }, few)
          const [paid, opened] = [newId(), newId()]
          yield* reserve(paid, "1000")
          yield* channels.charge(place, { payment: payment("one"), channelId: paid, amount: "100" })
          // A stranger's deposits that are never sent, after those of two buyers.
          const unsent = [newId(), newId()]
          for (const id of [opened, ...unsent]) {
            yield* reserve(id, id === opened ? "1000" : "0")
            yield* channels.release(place, id, payment("one"))
          }
          const next = newId()
          expect((yield* reserve(next)).status).toBe("reserved")
          expect((yield* channels.list(place, "")).map(({ channelId }) => channelId)).toEqual([paid, opened, next])
          // A channel in use and one with charges stay.
          const all = { ...few, channelsMax: 2 }
          expect((yield* channels.reserve(place, asked(newId(), "one", 100n), all)).status).toBe("full")
          expect((yield* channels.list(place, "")).map(({ channelId }) => channelId)).toEqual([paid, next])
        })
      )

      it.effect("answers a charged request whose channel was deleted, and stores nothing", () =>
        Effect.gen(function* () {
          const channels = yield* StoredChannels
          const place = { principal: "key:repeating", network }
          const few = { ...options, channelsMax: 1 }
          const id = newId()
          yield* pay(place, id, "paid", 100n)
          yield* channels.sync(place, id, { ...state, totalClaimed: "100" }, undefined)
          expect((yield* channels.reserve(place, asked(newId(), "new", 100n), few)).status).toBe("reserved")
          const { state: _, ...repeated } = asked(id, "paid", 100n)
          expect(yield* channels.reserve(place, repeated, few)).toEqual({ status: "charged", channel: undefined })
        })
      )

      it.effect("never charges above the voucher, an unknown channel, or another seller's", () =>
        Effect.gen(function* () {
          const channels = yield* StoredChannels
          const id = newId()
          yield* channels.reserve(shop, asked(id, "much", 100n), options)
          const charge = { payment: payment("much"), channelId: id, amount: "101" }
          expect((yield* channels.charge(shop, charge)).status).toBe("exceeded")
          expect((yield* channels.charge({ ...shop, principal: "key:other" }, charge)).status).toBe("missing")
          expect((yield* channels.get(shop, id))?.chargedCumulativeAmount).toBe("0")
        })
      )

      it.effect("records each channel in one claim, by the seller's policy, and a withdrawal immediately", () =>
        Effect.gen(function* () {
          const channels = yield* StoredChannels
          const claims = yield* Claims
          const place = { ...shop, principal: `key:claims-${kind}` }
          const ids = [newId(), newId(), newId()]
          for (const id of ids) yield* pay(place, id, `of-${id.slice(-4)}`, 100n)
          const due = { network, claimEverySeconds: 3_600 }
          const own = Effect.map(claims.due(due), (groups) => groups.filter((one) => one.principal === place.principal))
          expect(yield* own).toEqual([])
          yield* claims.seen(network, { ...place, channelId: ids[1]! }, shown(1_700_000_000))
          const [group] = yield* own
          expect(group).toMatchObject({ receiver: channelConfig.receiver, alone: false })
          expect(yield* claims.withdrawals(network)).toEqual({ unanswered: 1, firstEndsAt: 1_700_000_900 })
          expect(yield* claims.record(due, group!, 2)).toBe(2)
          expect(yield* claims.record(due, group!, 2)).toBe(1)
          expect(yield* claims.record(due, group!, 2)).toBe(0)
          const [first, second] = (yield* claims.open(network)).filter((one) => one.principal === place.principal)
          expect((first!.payload["claims"] as ReadonlyArray<unknown>)[0]).toEqual(
            expect.objectContaining({ totalClaimed: "100", signature: "ab".repeat(64) })
          )
          yield* claims.settled(first!, "ff".repeat(32))
          yield* claims.settled(first!, "ff".repeat(32))
          yield* claims.failed(second!, "invalid_batch_settlement_ledger_claim_simulation_failed")
          const totals = yield* Effect.forEach(ids, (id) => channels.get(place, id))
          expect(totals.filter((one) => one?.totalClaimed === "100")).toHaveLength(2)
          expect((yield* claims.withdrawals(network)).unanswered).toBe(0)
          const open = (yield* claims.open(network)).filter((one) => one.principal === place.principal)
          expect(open.map(({ kind }) => kind)).toEqual(["settle"])
        })
      )

      it.effect("pays out a claimed total, whichever reading shows it first", () =>
        Effect.gen(function* () {
          const channels = yield* StoredChannels
          const claims = yield* Claims
          const refunded = { ...state, balance: "100", totalClaimed: "100", refundNonce: 1 }
          const seen = { balance: 100n, totalClaimed: 100n, withdrawRequestedAt: 0, refundNonce: 1n }
          const next = (id: string) => ({ ...asked(id, "next", 200n), state: { ...state, totalClaimed: "100" } })
          const readings = {
            sync: (place: Place, id: string) => channels.sync(place, id, refunded, undefined),
            watch: (place: Place, id: string) => claims.seen(network, { ...place, channelId: id }, seen),
            reserve: (place: Place, id: string) => channels.reserve(place, next(id), options),
            "new record": (place: Place) => channels.reserve(place, next(newId()), options)
          }
          for (const [name, read] of Object.entries(readings)) {
            const place = { ...shop, principal: `key:refunding-${name}-${kind}` }
            const own = Effect.map(claims.open(network), (all) =>
              all.filter((one) => one.principal === place.principal)
            )
            const id = newId()
            yield* pay(place, id, "refunded", 100n)
            yield* read(place, id)
            // The seller's own reading, and an older one, arrive late.
            yield* channels.sync(place, id, refunded, undefined)
            expect(yield* channels.sync(place, id, state, undefined)).toMatchObject({ totalClaimed: "100" })
            const [settle, ...others] = yield* own
            expect([settle?.kind, settle?.payload, others.length], name).toEqual([
              "settle",
              { type: "settle", receiver: channelConfig.receiver, token: channelConfig.token },
              0
            ])
            // The settle was submitted before the next claim, so that claim needs another one.
            yield* claims.attempted(settle!)
            yield* channels.sync(place, id, { ...refunded, totalClaimed: "150" }, undefined)
            expect(
              (yield* own).map((one) => one.kind),
              name
            ).toEqual(["settle", "settle"])
          }
        })
      )

      it.effect("takes of an earlier reading the total alone, and calls it no new one", () =>
        Effect.gen(function* () {
          const channels = yield* StoredChannels
          const place = { ...shop, principal: `key:noting-${kind}` }
          const id = newId()
          yield* pay(place, id, "noted", 100n)
          const shown = { balance: "300", withdrawRequestedAt: 7, refundNonce: 1 }
          const read = (yield* channels.sync(place, id, { ...shown, totalClaimed: "0" }, undefined))!
          const claimed = { ...state, totalClaimed: "100", onchainSyncedAt: read.onchainSyncedAt ?? 0 }
          const { onchainSyncedAt } = read
          expect(yield* channels.sync(place, id, claimed, undefined)).toMatchObject({
            ...shown,
            totalClaimed: "100",
            onchainSyncedAt
          })
        })
      )

      it.effect("forgets a channel only once all that was charged is claimed", () =>
        Effect.gen(function* () {
          const channels = yield* StoredChannels
          const sql = yield* SqlClient.SqlClient
          const place = { ...shop, principal: `key:old-${kind}` }
          const [claimed, open] = [newId(), newId()]
          for (const id of [claimed, open]) yield* pay(place, id, `old-${id.slice(-4)}`, 100n)
          yield* channels.sync(place, claimed, { ...state, totalClaimed: "100" }, undefined)
          yield* sql`update batch_store_channels set requested_at = now() - interval '2 days'
            where principal = ${place.principal}`
          yield* channels.forget(3 * 86_400_000, 1_000)
          expect(yield* channels.list(place, "")).toHaveLength(2)
          yield* channels.forget(86_400_000, 1_000)
          expect((yield* channels.list(place, "")).map(({ channelId }) => channelId)).toEqual([open])
        })
      )

      it.effect("keeps a key's newest charges, and the newest of each channel", () =>
        Effect.gen(function* () {
          const channels = yield* StoredChannels
          const sql = yield* SqlClient.SqlClient
          const place = { ...shop, principal: `key:charging-${kind}` }
          const [early, late] = [newId(), newId()]
          yield* pay(place, early, "first", 100n)
          yield* pay(place, early, "second", 200n)
          for (let n = 1; n <= 6; n++) yield* pay(place, late, `late-${n}`, BigInt(n) * 100n)
          yield* channels.forget(86_400_000, 3)
          const left = yield* sql<{ payment: string }>`select payment from batch_store_charges
            where principal = ${place.principal} order by charged_at`
          expect(left.map(({ payment }) => payment.replace(/-+$/, ""))).toEqual([
            "second",
            "late-4",
            "late-5",
            "late-6"
          ])
          // A deleted charge is not made again: its voucher builds on an old total.
          expect((yield* channels.reserve(place, asked(late, "late-1", 100n), options)).status).toBe("stale")
        })
      )

      it.effect("claims in halves what does not fit one transaction", () =>
        Effect.gen(function* () {
          const claims = yield* Claims
          const sql = yield* SqlClient.SqlClient
          const place = { ...shop, principal: `key:halving-${kind}` }
          const ids = Array.from({ length: 5 }, newId)
          for (const id of ids) yield* pay(place, id, `halving-${id.slice(-4)}`, 100n)
          // Each payer has separate channels: a claim contains the channel's whole configuration.
          for (const [at, id] of ids.entries())
            yield* sql`update batch_store_channels set unclaimed_since = now() - interval '2 hours',
                config = jsonb_set(config, '{salt}', to_jsonb(${at.toString(16).padStart(64, "0")}::text))
              where principal = ${place.principal} and channel_id = ${id}`
          const due = { network, claimEverySeconds: 3_600 }
          const own = Effect.map(claims.due(due), (groups) => groups.filter((one) => one.principal === place.principal))
          const open = Effect.map(claims.open(network), (all) => all.filter((one) => one.principal === place.principal))
          expect(yield* claims.record(due, (yield* own)[0]!, 40)).toBe(5)
          const [whole] = yield* open
          // Its id was reused for a claim of other channels, because the database lost its last commits.
          const lost = { ...whole!, payload: { ...whole!.payload, claims: [] } }
          yield* claims.settled(lost, "ff".repeat(32))
          yield* claims.failed({ ...whole!, principal: "key:another" }, "unresolved")
          yield* claims.attempted(lost)
          expect(yield* open).toEqual([whole])
          yield* claims.halved(whole!, "too_many_claims")
          yield* claims.halved(whole!, "too_many_claims")
          const halves = yield* open
          expect(halves.map(({ payload }) => claimsOf(payload).length)).toEqual([3, 2])
          expect(halves.flatMap(({ payload }) => claimsOf(payload))).toEqual(claimsOf(whole!.payload))
          expect(yield* own, "each of its channels is in a claim").toEqual([])
          const held = yield* sql<{ readonly id: bigint; readonly n: number }>`
            select claim as id, count(*)::int4 as n from batch_store_channels where principal = ${place.principal}
            group by 1 order by 1`
          expect(held).toEqual(halves.map(({ id }, at) => ({ id, n: [3, 2][at] })))
          for (const half of halves) yield* claims.settled(half, "ff".repeat(32))
          const totals = yield* sql<{ readonly n: number }>`select count(*)::int4 as n from batch_store_channels
            where principal = ${place.principal} and total_claimed = 100 and claim is null`
          expect(totals).toEqual([{ n: 5 }])
        })
      )

      it.effect("claims one by one what failed together", () =>
        Effect.gen(function* () {
          const claims = yield* Claims
          const sql = yield* SqlClient.SqlClient
          const place = { ...shop, principal: `key:failing-${kind}` }
          for (const name of ["a", "b"]) yield* pay(place, newId(), `failing-${name}`, 100n)
          yield* sql`update batch_store_channels set unclaimed_since = now() - interval '2 hours'
            where principal = ${place.principal}`
          const due = { network, claimEverySeconds: 3_600 }
          const own = Effect.map(claims.due(due), (groups) => groups.filter((one) => one.principal === place.principal))
          const [group] = yield* own
          expect(yield* claims.record(due, group!, 40)).toBe(2)
          const open = Effect.map(claims.open(network), (all) => all.filter((one) => one.principal === place.principal))
          yield* claims.failed((yield* open)[0]!, "claim_simulation_failed")
          const [alone] = yield* own
          expect(alone!.alone).toBe(true)
          expect(yield* claims.record(due, alone!, 40)).toBe(1)
          expect(yield* claims.record(due, alone!, 40)).toBe(1)
          yield* claims.failed((yield* open)[0]!, "claim_simulation_failed")
          // It backs off before the next attempt.
          expect(yield* own).toEqual([])
        })
      )

      it.effect("watches each seller's row of a channel by itself", () =>
        Effect.gen(function* () {
          const claims = yield* Claims
          const id = newId()
          const [honest, other] = [
            { ...shop, principal: `key:watched-${kind}` },
            { ...shop, principal: `key:forger-${kind}` }
          ]
          yield* pay(honest, id, "watched", 100n)
          // A row with a larger voucher does not hide other rows.
          yield* pay(other, id, "forged", 1_000n, 50n)
          const first = yield* claims.watched(network, { principal: "", channelId: "" })
          const rows = first.filter(({ channelId }) => channelId === id)
          expect(rows.map(({ charged, principal }) => [principal, charged])).toEqual([
            [other.principal, "950"],
            [honest.principal, "100"]
          ])
          const [forged] = rows
          const rest = yield* claims.watched(network, forged!)
          expect(rest.filter(({ channelId }) => channelId === id)).toEqual([rows[1]])
        })
      )

      it.effect("submits for one seller after another, however much one has", () =>
        Effect.gen(function* () {
          const claims = yield* Claims
          const sql = yield* SqlClient.SqlClient
          const [busy, small] = [`key:busy-${kind}`, `key:small-${kind}`]
          for (const principal of [busy, busy, busy, small])
            yield* sql`insert into batch_store_claims (principal, network, kind, receiver, token, payload)
              values (${principal}, ${network}, 'settle', 'R', 'T', '{}'::jsonb)`
          const open = (yield* claims.open(network)).map(({ principal }) => principal)
          const own = open.filter((principal) => principal === busy || principal === small)
          expect(own).toEqual([busy, small, busy, busy])
          yield* sql`delete from batch_store_claims where principal in (${busy}, ${small})`

          // One has more groups than a turn records, all with withdrawals that it reported itself; the other has one
          // charge.
          const channel = newId()
          yield* pay({ ...shop, principal: small }, channel, "small", 100n)
          yield* sql`insert into batch_store_channels (principal, network, channel_id, config, receiver, token,
              withdraw_delay, delegated, charged, signed_max, signature, withdraw_requested_at)
            select ${busy}, network, 'busy' || n, config, 'R' || n, token, withdraw_delay, delegated, charged,
              signed_max, signature, 1
            from batch_store_channels, generate_series(1, 101) n where channel_id = ${channel}`
          const groups = yield* claims.due({ network, claimEverySeconds: 0 })
          expect(groups).toHaveLength(100)
          expect(groups.filter(({ principal }) => principal === small)).toHaveLength(1)
          yield* sql`delete from batch_store_channels where principal in (${busy}, ${small})`
        })
      )

      it.effect("settles later what was not settled, and rests longer the longer charges wait", () =>
        Effect.gen(function* () {
          const channels = yield* StoredChannels
          const claims = yield* Claims
          const sql = yield* SqlClient.SqlClient
          const place = { ...shop, principal: `key:resting-${kind}` }
          const id = newId()
          yield* pay(place, id, "resting", 100n)
          const due = { network, claimEverySeconds: 1 }
          const group = { principal: place.principal, ...channelConfig, alone: false }
          const open = Effect.map(claims.open(network), (all) => all.filter((one) => one.principal === place.principal))
          const rest = Effect.map(
            sql<{ readonly seconds: number }>`select round(extract(epoch from claim_after - clock_timestamp()))::float8
              as seconds from batch_store_channels where principal = ${place.principal}`,
            ([row]) => row!.seconds
          )
          const failAfter = Effect.fnUntraced(function* (hours: number, alone: boolean) {
            yield* sql`update batch_store_channels set claim_after = null,
                unclaimed_since = clock_timestamp() - make_interval(hours => ${hours})
              where principal = ${place.principal}`
            expect(yield* claims.record(due, { ...group, alone }, 40)).toBe(1)
            yield* claims.failed((yield* open)[0]!, "cumulative_exceeds_balance")
            return yield* rest
          })
          expect(yield* failAfter(0, false)).toBeCloseTo(60, -1)
          expect(yield* failAfter(2, true)).toBeCloseTo(720, -1)
          expect(yield* failAfter(48, true)).toBeCloseTo(3_600, -1)
          // A channel with a started withdrawal is retried sooner.
          yield* claims.seen(network, { ...place, channelId: id }, shown(1_700_000_000))
          expect(yield* failAfter(48, true)).toBeCloseTo(60, -1)
          yield* claims.seen(network, { ...place, channelId: id }, shown(0))
          expect(yield* claims.lost(network)).toEqual([])
          // Its payer has withdrawn: the charged amount cannot be claimed until the payer deposits again.
          yield* claims.seen(network, { ...place, channelId: id }, { ...shown(0), balance: 30n, refundNonce: 1n })
          const lost = { token: channelConfig.token, channels: 1, amount: "70", isRecent: true }
          expect(yield* claims.lost(network)).toEqual([lost])
          yield* claims.seen(network, { ...place, channelId: id }, { ...shown(0), refundNonce: 1n })
          expect(yield* claims.lost(network)).toEqual([])

          yield* channels.sync(place, id, { ...state, totalClaimed: "100" }, undefined)
          const [settle] = yield* open
          expect(settle?.kind).toBe("settle")
          yield* claims.failed(settle!, "settle_ledger_transaction_failed")
          yield* claims.failed(settle!, "settle_ledger_transaction_failed")
          expect(yield* open).toEqual([])
          const later = yield* sql<{ readonly n: number }>`select count(*)::int4 as n from batch_store_claims
            where principal = ${place.principal} and kind = 'settle' and state = 'open'
              and begun_at - clock_timestamp() between interval '5 minutes' and interval '10 minutes'`
          expect(later).toEqual([{ n: 1 }])
          // The next claim is paid out without it, and another seller's settle for this receiver does not count.
          yield* sql`insert into batch_store_claims (principal, network, kind, receiver, token, payload)
            select ${`key:rival-${kind}`}, network, kind, receiver, token, payload from batch_store_claims
            where id = ${settle!.id}`
          const again = {
            ...asked(id, "resting-again", 200n),
            state: { ...state, totalClaimed: "100", refundNonce: 1 }
          }
          yield* channels.reserve(place, again, options)
          yield* channels.charge(place, { payment: again.payment, channelId: id, amount: "100" })
          yield* sql`update batch_store_channels set claim_after = null where principal = ${place.principal}`
          expect(yield* claims.record(due, { ...group, alone: true }, 40)).toBe(1)
          yield* claims.settled((yield* open)[0]!, "ff".repeat(32))
          expect((yield* open).map((one) => one.kind)).toEqual(["settle"])
        })
      )

      it.effect("believes no reading from before a refund", () =>
        Effect.gen(function* () {
          const channels = yield* StoredChannels
          const claims = yield* Claims
          const place = { ...shop, principal: `key:behind-${kind}` }
          const id = newId()
          yield* pay(place, id, "before", 100n)
          const refunded = { ...state, balance: "100", refundNonce: 1 }
          yield* channels.sync(place, id, refunded, undefined)
          // A node that is behind still shows the balance before the refund.
          expect((yield* channels.reserve(place, asked(id, "behind", 200n), options)).status).toBe("busy")
          yield* channels.sync(place, id, state, undefined)
          yield* claims.seen(network, { principal: place.principal, channelId: id }, shown(7))
          expect(yield* channels.get(place, id)).toMatchObject({ ...refunded, withdrawRequestedAt: 0 })
        })
      )

      it.effect("forgets a channel whose only request never ended", () =>
        Effect.gen(function* () {
          const channels = yield* StoredChannels
          const sql = yield* SqlClient.SqlClient
          const place = { ...shop, principal: `key:late-${kind}` }
          const id = newId()
          // An abandoned request does not keep its channel.
          yield* channels.reserve(place, asked(id, "abandoned", 100n), options)
          yield* sql`update batch_store_channels set requested_at = now() - interval '2 days',
              pending_until = now() - interval '2 days' where principal = ${place.principal}`
          yield* channels.forget(86_400_000, 1_000)
          expect(yield* channels.list(place, "")).toEqual([])
        })
      )
    }))
}
