// Finds the transaction that spent an authorization: once per nonce for all its expiries, fairly among callers.
import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Option } from "effect"
import { TestClock } from "effect/testing"
import { describe } from "vitest"
import { LedgerRpc } from "../../../../kernel/ledger/LedgerRpc.ts"
import { type AdoptionRequest, makeAdopter } from "../../../../kernel/settlement/follower/adopt.ts"
import { createHash, createHmac } from "node:crypto"
import { formerTag, OwnerTags, ownerTagsOf } from "../../../../kernel/settlement/OwnerTags.ts"
import { cancelTransaction } from "../../../../kernel/stellar/Envelope.ts"
import { Authorizations } from "../../../../kernel/settlement/Authorizations.ts"
import {
  type AdoptAnswer,
  type AdoptedSettlement,
  Settlements
} from "../../../../kernel/settlement/store/Settlements.ts"
import { Signer } from "../../../../kernel/signer/Signer.ts"
import { executed } from "../lives.ts"
import { spendingEnvelope } from "../spendingEnvelope.ts"
import { layerTest } from "../../../support/layerTest.ts"

/** A key in the schemes' format: payer, nonce, expiry. */
const request = (nonce: number, expiry: number, caller = "key:a"): AdoptionRequest =>
  ({
    id: "id",
    network: "ledger:testnet",
    scheme: "exact",
    authorizationKey: `payer:${nonce}:${expiry}`,
    fingerprint: "f",
    principal: { owner: caller, source: caller, keyed: true },
    identifier: Option.none(),
    payer: "payer",
    payTo: "seller",
    asset: "asset",
    amount: 10n,
    resourceUrl: Option.none()
  }) as AdoptionRequest

/** The transaction that is found is ours, and carries another authorization. */
const elsewhere = { _tag: "Elsewhere", transaction: executed().innerHash, isOurs: true }

interface Ledger {
  /** The answer to storing it again. */
  readonly stored?: AdoptAnswer
  /** The channel belongs to an earlier rotation. */
  readonly isFormer?: boolean
  /** The ledger in the nonce's entry; the newest and the oldest that the node has. */
  readonly entry?: number | undefined
  readonly latest?: number
  readonly oldest?: number
  /** The ledger of the transaction, if the scan finds it there. */
  readonly usedIn?: number
  /** The oldest ledger is the network's first. */
  readonly isFirstLedger?: boolean
  /** Awaited by each ledger scan. */
  readonly gate?: Effect.Effect<void>
  /** The node shows the transaction that used the nonce. */
  readonly isShown?: boolean
  /** The authorization in that transaction. */
  readonly carried?: string
  /** The transaction's tag: owner and fingerprint; none, as in version 0.1. */
  readonly taggedFor?: readonly [owner: string, fingerprint: string] | "None"
  /** The tag is the 30 bits of the former version. */
  readonly isFormerTag?: boolean
  /** The installation's keys; the transaction was tagged with "a key". */
  readonly keys?: readonly [string, ...ReadonlyArray<string>]
  /** The owner according to the journal or an operator. */
  readonly namedOwner?: string
}

/** The transaction's transfers. */
const transfers = [{ contract: "asset", from: "payer", to: "seller", amount: 10n }]

const sha256 = (bytes: Uint8Array) => new Uint8Array(createHash("sha256").update(bytes).digest())
const hmacSha256 = (key: Uint8Array, bytes: Uint8Array) =>
  new Uint8Array(createHmac("sha256", key).update(bytes).digest())

const tagsOf = (...[first, ...others]: readonly [string, ...ReadonlyArray<string>]) =>
  ownerTagsOf([Buffer.from(first), ...others.map((key) => Buffer.from(key))], { sha256, hmacSha256 })

/** The transaction of our channel with an owner's tag. */
const taggedEnvelope = ({ isFormerTag = false, taggedFor = ["key:a", "f"] }: Ledger) => {
  const { channel, envelope } = spendingEnvelope
  const own = { channel, sequence: 7n, bounds: { ledgerMax: 1_011, timeMax: 0n } }
  const [owner = "", fingerprint = ""] = taggedFor === "None" ? [] : taggedFor
  const owned = { network: "ledger:testnet", owner, fingerprint }
  const hashSigner = sha256(tagsOf("a key").preimageFor(owned))
  const inner = cancelTransaction(isFormerTag || taggedFor === "None" ? own : { ...own, hashSigner }) as any
  if (isFormerTag) inner.cond.v2.timeBounds.minTime = formerTag({ sha256 }, owned)
  const bump = structuredClone(envelope) as any
  bump.feeBump.tx.innerTx.v1.tx = inner
  return bump as typeof envelope
}

/**
 * Fingerprints of a stranger's and of an owner's payment that differ in unsigned fields but have the same former tags,
 * found by a search over 120 000 of them.
 */
const collision = { stranger: "g79162", owner: "f28812" }

const adopter = Effect.fnUntraced(function* (ledger: Ledger) {
  const { carried = "", gate = Effect.void, isFormer = false, isShown = true, latest = 50, oldest = 1 } = ledger
  const { isFirstLedger = false } = ledger
  const { entry = 40, keys = ["a key"], namedOwner, stored = "Adopted", usedIn = 40 } = ledger
  let scans = 0
  const scanned: Array<readonly [number, number | undefined]> = []
  const adopted: Array<AdoptedSettlement> = []
  const { channel } = spendingEnvelope
  const envelope = taggedEnvelope(ledger)
  const ports = Layer.mergeAll(
    layerTest(LedgerRpc, {
      transaction: () => Effect.succeed({ _tag: "NotFound", latestLedger: latest, oldestLedger: oldest }),
      others: () => Effect.succeed([]),
      header: () => Effect.succeed({ hash: "", isFirst: isFirstLedger }),
      nonceSpent: () =>
        Effect.succeed({
          latestLedger: latest,
          spent: entry !== 0,
          inLedger: entry === 0 ? Option.none() : Option.some(entry)
        }),
      scan: ({ fromLedger, toLedger = latest }: { fromLedger: number; toLedger?: number }) =>
        Effect.gen(function* () {
          scans += 1
          scanned.push([fromLedger, toLedger])
          yield* gate
          const scannedTo = Math.min(toLedger, fromLedger + 9)
          const isMet = isShown && usedIn >= fromLedger && usedIn <= scannedTo
          return {
            scannedTo,
            oldestLedger: oldest,
            found: isMet
              ? [{ executed: executed({ ledger: usedIn, transfers: Option.some(transfers) }), envelope }]
              : []
          }
        })
    }),
    layerTest(Settlements, {
      adopt: (settlement) => Effect.sync(() => void adopted.push(settlement)).pipe(Effect.as(stored)),
      wasOwner: (_transaction: string, owner: string) => Effect.succeed(owner === namedOwner)
    }),
    Layer.succeed(OwnerTags, tagsOf(...keys)),
    layerTest(Signer, {
      channels: isFormer ? [] : [channel],
      sponsor: "sponsor",
      sponsors: ["sponsor"],
      formerChannels: isFormer ? [channel] : []
    }),
    layerTest(Authorizations, {
      nonceOf: ({ authorizationKey }) => ({
        address: "payer",
        nonce: BigInt(authorizationKey.split(":")[1]!)
      }),
      useIn: ({ amount, authorizationKey }) => (authorizationKey === carried && amount === 10n ? "same" : "other"),
      movementIn: () => ({ amount: 10n })
    })
  )
  const { adopt, find } = yield* Effect.provide(makeAdopter, ports)
  return { adopt, adopted, find, scans: () => scans, scanned }
})

describe("a spent authorization", () => {
  it.effect("searches a nonce once for all expiries and matches the carried one", () =>
    Effect.gen(function* () {
      const { adopt, scans } = yield* adopter({ carried: "payer:1:1010" })
      for (let expiry = 1_000; expiry < 1_010; expiry++) expect(yield* adopt(request(1, expiry))).toEqual(elsewhere)
      expect(yield* adopt(request(1, 1_010))).toEqual({ _tag: "Ours" })
      expect(scans()).toBe(1)
      yield* adopt(request(2, 1_010))
      expect(scans()).toBe(2)
    })
  )

  it.effect("records an adopted payment as its transaction shows it", () =>
    Effect.gen(function* () {
      const { adopt, adopted } = yield* adopter({ carried: "payer:1:1010" })
      expect(yield* adopt(request(1, 1_010))).toEqual({ _tag: "Ours" })
      const { channel, sponsor } = spendingEnvelope
      expect(adopted).toMatchObject([
        {
          ...request(1, 1_010),
          sponsor,
          channel,
          channelSequence: 7n,
          authorizationExpiresLedger: 1_010,
          resourceFeeStroops: 0n,
          inclusionStroops: 500n,
          feeChargedStroops: 4_321n,
          amountTransferred: 10n,
          ledger: 40
        }
      ])
    })
  )

  it.effect("adopts a payment only for the owner and terms of its tag", () =>
    Effect.gen(function* () {
      const carried = "payer:1:1010"
      const { adopt, adopted } = yield* adopter({ carried })
      const unclaimed = { _tag: "Unclaimed", transaction: executed().innerHash }
      expect(yield* adopt(request(1, 1_010, "key:b"))).toEqual(unclaimed)
      expect(yield* adopt({ ...request(1, 1_010), fingerprint: "other terms" })).toEqual(unclaimed)
      expect(adopted).toEqual([])
      expect(yield* adopt(request(1, 1_010))).toEqual({ _tag: "Ours" })
      // Without a tag: the owner from the journal or the operator, otherwise none.
      const named = yield* adopter({ carried, namedOwner: "key:b", taggedFor: "None" })
      expect(yield* named.adopt(request(1, 1_010))).toEqual(unclaimed)
      expect(yield* named.adopt(request(1, 1_010, "key:b"))).toEqual({ _tag: "Ours" })
      expect([...adopted, ...named.adopted].map(({ principal }) => principal.owner)).toEqual(["key:a", "key:b"])
    })
  )

  it.effect("recognizes tags of earlier keys and of the former version", () =>
    Effect.gen(function* () {
      const carried = "payer:1:1010"
      const rotated = yield* adopter({ carried, keys: ["a new key", "a key"] })
      expect(yield* rotated.adopt(request(1, 1_010))).toEqual({ _tag: "Ours" })
      const other = yield* adopter({ carried, keys: ["another key"] })
      expect(yield* other.adopt(request(1, 1_010))).toMatchObject({ _tag: "Unclaimed" })
      const former = yield* adopter({ carried, isFormerTag: true, keys: ["another key"] })
      expect(yield* former.adopt(request(1, 1_010, "key:b"))).toMatchObject({ _tag: "Unclaimed" })
      expect(yield* former.adopt(request(1, 1_010))).toEqual({ _tag: "Ours" })
    })
  )

  it.effect("a search over unsigned fields finds no other owner's tag", () =>
    Effect.gen(function* () {
      const carried = "payer:1:1010"
      const { owner, stranger } = collision
      const stolen = { ...request(1, 1_010, "key:b"), fingerprint: stranger }
      const { adopt } = yield* adopter({ carried, taggedFor: ["key:a", owner] })
      expect(yield* adopt(stolen)).toMatchObject({ _tag: "Unclaimed" })
      expect(yield* adopt({ ...request(1, 1_010), fingerprint: owner })).toEqual({ _tag: "Ours" })
      // By the former tag it belonged to the stranger.
      const former = yield* adopter({ carried, isFormerTag: true, taggedFor: ["key:a", owner] })
      expect(yield* former.adopt(stolen)).toEqual({ _tag: "Ours" })
    })
  )

  it.effect("finds the spending of a verified payment without storing anything", () =>
    Effect.gen(function* () {
      const { adopted, find } = yield* adopter({ carried: "payer:1:1010", taggedFor: ["key:a", "f for 10"] })
      const fingerprintFor = (amount: bigint) => `f for ${amount}`
      const verified = { ...request(1, 1_010), fingerprint: "f for 25", amount: 25n }
      expect(yield* find(verified, undefined, fingerprintFor)).toEqual({ _tag: "Ours" })
      const settled = { ...verified, fingerprint: "f for 10", amount: 10n }
      expect(yield* find(settled, undefined, fingerprintFor)).toEqual({ _tag: "Ours" })
      expect(yield* find({ ...settled, amount: 9n }, undefined, fingerprintFor)).toEqual(elsewhere)
      const another = { ...verified, principal: request(1, 1_010, "key:b").principal }
      expect(yield* find(another, undefined, fingerprintFor)).toMatchObject({ _tag: "Unclaimed" })
      expect(adopted).toEqual([])
    })
  )

  it.effect("an authorization is forgotten if the node keeps only its last ledger", () =>
    Effect.gen(function* () {
      const { adopt } = yield* adopter({ entry: 0, oldest: 40, isShown: false })
      expect(yield* adopt(request(1, 40), { expiresLedger: 40, lifeLedgers: 20 })).toEqual({ _tag: "Forgotten" })
    })
  )

  it.effect("does not report a foreign spending while its transaction is not available", () =>
    Effect.gen(function* () {
      const { adopt } = yield* adopter({ isShown: false })
      expect((yield* Effect.flip(adopt(request(1, 1_010))))._tag).toBe("LedgerUnavailable")
    })
  )

  it.effect("searches one caller's nonce although another caller asks for many", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const { adopt, scans } = yield* adopter({ gate: Deferred.await(gate) })
      const crowd = yield* Effect.forEach(
        Array.from({ length: 12 }, (_, nonce) => nonce),
        (nonce) => Effect.forkChild(Effect.exit(adopt(request(nonce, 1_010, "key:crowd"))))
      )
      yield* Effect.yieldNow
      const alone = yield* Effect.forkChild(adopt(request(99, 1_010, "key:alone")))
      yield* Effect.yieldNow
      yield* Deferred.succeed(gate, undefined)
      expect(yield* Fiber.join(alone)).toEqual(elsewhere)
      const exits = yield* Effect.forEach(crowd, Fiber.join)
      expect(exits.filter(({ _tag }) => _tag === "Failure")).toHaveLength(8)
      expect(scans()).toBe(5)
    })
  )

  it.effect("adopts a transaction on a former channel unless it ended another settlement", () =>
    Effect.gen(function* () {
      const former = yield* adopter({ carried: "payer:1:1010", isFormer: true })
      expect(yield* former.adopt(request(1, 1_010))).toEqual({ _tag: "Ours" })
      const known = yield* adopter({ carried: "payer:1:1010", stored: "Known" })
      expect(yield* known.adopt(request(1, 1_010))).toEqual({ _tag: "Ours" })
      const taken = yield* adopter({ carried: "payer:1:1010", stored: "TransactionTaken" })
      expect(yield* taken.adopt(request(1, 1_010))).toEqual(elsewhere)
    })
  )
})

describe("an expired authorization without a record", () => {
  const expired = { expiresLedger: 45, lifeLedgers: 30 }
  const carried = "payer:1:45"

  it.effect("scans every ledger of the authorization's life once its nonce entry is gone", () =>
    Effect.gen(function* () {
      const { adopt, scanned } = yield* adopter({ carried, entry: 0, usedIn: 41 })
      expect(yield* adopt(request(1, 45), expired)).toEqual({ _tag: "Ours" })
      expect(scanned).toEqual([
        [15, 45],
        [25, 45],
        [35, 45]
      ])
    })
  )

  it.effect("long searches for callers without a key rest, and others continue", () =>
    Effect.gen(function* () {
      const { adopt, scans } = yield* adopter({ entry: 0, usedIn: 14, gate: Effect.sleep("2 seconds") })
      const keyless = (nonce: number) => {
        const asked = request(nonce, 45, "ip:203.0.113.7")
        return { ...asked, principal: { ...asked.principal, keyed: false } }
      }
      const exitOf = (asked: AdoptionRequest) =>
        Effect.gen(function* () {
          const fiber = yield* Effect.forkChild(Effect.exit(adopt(asked, expired)))
          yield* TestClock.adjust("8 seconds")
          return (yield* Fiber.join(fiber))._tag
        })
      expect([yield* exitOf(keyless(1)), scans()]).toEqual(["Success", 4])
      expect([yield* exitOf(keyless(2)), scans()]).toEqual(["Failure", 4])
      expect([yield* exitOf(keyless(1)), yield* exitOf(request(3, 45)), scans()]).toEqual(["Success", "Success", 8])
      yield* TestClock.adjust("8 seconds")
      expect([yield* exitOf(keyless(2)), scans()]).toEqual(["Success", 12])
    })
  )

  it.effect("an expired authorization found in no ledger is unused, cached for all callers", () =>
    Effect.gen(function* () {
      const { adopt, scans } = yield* adopter({ carried, entry: 0, usedIn: 14 })
      for (let times = 0; times < 2; times++) expect(yield* adopt(request(1, 45), expired)).toEqual({ _tag: "Unused" })
      expect(scans()).toBe(4)
      // This does not apply to another authorization with the same nonce.
      expect(yield* adopt(request(1, 46), { expiresLedger: 46, lifeLedgers: 33 })).toMatchObject({ _tag: "Elsewhere" })
    })
  )

  it.effect("scans the nonce entry's ledger, unless that is after the expiry", () =>
    Effect.gen(function* () {
      const kept = yield* adopter({ carried, usedIn: 40 })
      expect(yield* kept.adopt(request(1, 45), expired)).toEqual({ _tag: "Ours" })
      expect(kept.scanned).toEqual([[40, 40]])
      const reused = yield* adopter({ carried, entry: 47, usedIn: 20 })
      expect(yield* reused.adopt(request(1, 45), expired)).toEqual({ _tag: "Ours" })
      expect(reused.scanned[0]).toEqual([15, 45])
    })
  )

  it.effect("an authorization is forgotten if no node has all ledgers of its life", () =>
    Effect.gen(function* () {
      const gone = yield* adopter({ carried, entry: 0, oldest: 46 })
      expect(yield* gone.adopt(request(1, 45), expired)).toEqual({ _tag: "Forgotten" })
      expect(gone.scans()).toBe(0)
      const young = yield* adopter({ carried, entry: 0, oldest: 46, isFirstLedger: true })
      expect((yield* young.adopt(request(1, 45), expired))?._tag).toBe("Unused")
      const part = yield* adopter({ carried, entry: 0, oldest: 30, usedIn: 29 })
      expect(yield* part.adopt(request(1, 45), expired)).toEqual({ _tag: "Forgotten" })
      expect(part.scanned[0]).toEqual([30, 45])
    })
  )

  it.effect("a node behind the expiry does not report an authorization unused", () =>
    Effect.gen(function* () {
      const behind = yield* adopter({ carried, entry: 0, latest: 44 })
      expect((yield* Effect.flip(behind.adopt(request(1, 45), expired)))._tag).toBe("LedgerUnavailable")
      // It also does not apply to an authorization that may still be used.
      const alive = { ...expired, isAlive: true }
      expect(yield* behind.adopt(request(1, 45), alive)).toEqual({ _tag: "Alive" })
      expect(yield* behind.find(request(1, 45), alive, String)).toEqual({ _tag: "Alive" })
      const used = yield* adopter({ carried, latest: 44 })
      expect(yield* used.adopt(request(1, 45), alive)).toEqual({ _tag: "Ours" })
      // Nothing of it is cached.
      expect((yield* Effect.flip(behind.adopt(request(1, 45), expired)))._tag).toBe("LedgerUnavailable")
      const at = yield* adopter({ carried, entry: 0, latest: 45 })
      expect(yield* at.adopt(request(1, 45), expired)).toEqual({ _tag: "Unused" })
    })
  )
})
