// The follower over ports that a test controls: its requests to the ledger, and its changes to the store.
import { expect, it } from "@effect/vitest"
import { StrKey } from "@stellar/stellar-sdk/base"
import { Duration, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { describe } from "vitest"
import { Limits } from "../../../kernel/config/Limits.ts"
import { Network } from "../../../kernel/config/Network.ts"
import { LedgerClock } from "../../../kernel/ledger/LedgerClock.ts"
import { LedgerRpc, LedgerUnavailable, type TransactionAnswer } from "../../../kernel/ledger/LedgerRpc.ts"
import { Authorizations } from "../../../kernel/settlement/Authorizations.ts"
import { type ChannelLease, ChannelStore } from "../../../kernel/settlement/channels/ChannelStore.ts"
import { ChannelPool } from "../../../kernel/settlement/channels/ChannelPool.ts"
import { Leases } from "../../../kernel/settlement/Leases.ts"
import { Outcomes } from "../../../kernel/settlement/follower/Outcomes.ts"
import { startFollower } from "../../../kernel/settlement/follower/reconcileSettlements.ts"
import { ScanAbove } from "../../../kernel/settlement/follower/scanLedgers.ts"
import type { Attempt, Outcome, SettlementSnapshot } from "../../../kernel/settlement/state/Settlement.ts"
import {
  type NewAttempt,
  type OpenRecord,
  type ResolveAnswer,
  Settlements
} from "../../../kernel/settlement/store/Settlements.ts"
import { Sponsor } from "../../../kernel/settlement/sponsor/Sponsor.ts"
import { Signer } from "../../../kernel/signer/Signer.ts"
import { Supervisor } from "../../../kernel/actor/Supervisor.ts"
import { accountText } from "../../../kernel/stellar/Address.ts"
import { bumpIn, encodeEnvelope } from "../../../kernel/stellar/Envelope.ts"
import { spendingEnvelope } from "./spendingEnvelope.ts"
import { attempt, executed, expires, recordedLedger } from "./lives.ts"
import { layerTest } from "../../support/layerTest.ts"

/** Any account. */
const channel = StrKey.encodeEd25519PublicKey(new Uint8Array(32).fill(7))

const recordOf = (name: string, changes: Partial<OpenRecord> = {}, attempts?: ReadonlyArray<Attempt>): OpenRecord =>
  ({
    id: name,
    network: "ledger:testnet",
    scheme: "exact",
    authorizationKey: name,
    payer: "payer",
    payTo: "seller",
    asset: "asset",
    amount: 10n,
    innerHash: `inner ${name}`,
    channel,
    channelSequence: 7n,
    channelHeld: true,
    sponsor: "sponsor",
    authorizationExpiresLedger: expires,
    recordedLedger,
    recordedAt: new Date(0),
    resourceFeeStroops: 40_000n,
    attempts: attempts ?? [attempt({ innerHash: `inner ${name}`, outerHash: `outer ${name}`, envelope: name })],
    attemptCount: (attempts ?? [1]).length,
    ...changes
  }) as OpenRecord

const resolved: ResolveAnswer = { _tag: "Resolved", record: recordOf("any") }

interface World {
  readonly records: ReadonlyArray<OpenRecord>
  readonly ledger: number
  readonly transaction?: (hash: string) => TransactionAnswer | undefined
  readonly channelState?: Partial<Omit<SettlementSnapshot, "ledger">>
  readonly scanned?: ReadonlyArray<ReturnType<typeof executed>>
  /** The scanned transaction has this envelope, and uses the authorization as promised. */
  readonly spending?: typeof spendingEnvelope.envelope
  readonly former?: { readonly channels?: ReadonlyArray<string>; readonly sponsors?: ReadonlyArray<string> }
  /** Undefined: the effect is interrupted. */
  readonly resolves?: (outcome: Outcome) => ResolveAnswer | undefined
  readonly adds?: boolean
  /** The channel that is free. */
  readonly lease?: ChannelLease
  /** Duration of requests and writes. */
  readonly stay?: Duration.Input
  readonly nonceOf?: (name: string) => { readonly address: string; readonly nonce: bigint }
}

/** Maximum number of concurrent operations; each takes `stay`. */
const makeCrowd = (stay: Duration.Input) => {
  let [now, most] = [0, 0]
  const join = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.suspend(() => {
      now += 1
      most = Math.max(most, now)
      return Effect.andThen(stay === 0 ? Effect.void : Effect.sleep(stay), effect)
    }).pipe(Effect.ensuring(Effect.sync(() => (now -= 1))))
  return { join, most: () => most }
}

/** Runs turns of the follower over a world for a while, and returns its actions. */
const follow = Effect.fnUntraced(function* (world: World, scanAbove = 50, longest: Duration.Input = "10 seconds") {
  const asked: Array<string> = []
  const sent: Array<string> = []
  const ended: Array<readonly [string, Outcome]> = []
  const freed: Array<string> = []
  const signed: Array<string> = []
  const given: Array<string> = []
  const [asking, writing] = [makeCrowd(world.stay ?? 0), makeCrowd(world.stay ?? 0)]
  const latestLedger = world.ledger
  const rpc = {
    transaction: (hash: string) =>
      Effect.sync(() => {
        asked.push(hash)
        return world.transaction?.(hash) ?? { _tag: "NotFound", latestLedger, oldestLedger: 1 }
      }).pipe(asking.join),
    snapshots: (queries: ReadonlyArray<unknown>) =>
      Effect.succeed({
        latestLedger,
        snapshots: queries.map(() => ({ sequence: 6n, nonce: "unspent", ...world.channelState }))
      }),
    scan: () =>
      world.scanned === undefined
        ? Effect.fail(new LedgerUnavailable({ operation: "getTransactions", message: "no history" }))
        : Effect.succeed({
            scannedTo: latestLedger,
            oldestLedger: 1,
            found: world.scanned.map((one) => ({ executed: one, envelope: world.spending }))
          }),
    others: () => Effect.succeed([]),
    send: (envelope: string) => Effect.sync(() => void sent.push(envelope)).pipe(Effect.as({ _tag: "Pending" }))
  }
  const settlements = {
    open: () => Effect.sync(() => world.records.filter(({ id }) => !ended.some(([name]) => name === id))),
    addAttempt: () => Effect.succeed(world.adds === false ? undefined : 2),
    noteSent: () => Effect.void,
    rebuild: (id: string, lease: ChannelLease, { innerHash }: NewAttempt) =>
      Effect.sync(() => {
        given.push(`${id} on ${lease.sequence} as ${innerHash}`)
        return world.adds === false ? undefined : 2
      }),
    freeChannel: (id: string) => Effect.sync(() => freed.push(id) > 0),
    resolve: (id: string, outcome: Outcome) =>
      Effect.suspend(() => {
        const answer = world.resolves === undefined ? resolved : world.resolves(outcome)
        if (answer?._tag === "Resolved") ended.push([id, outcome])
        return answer === undefined ? Effect.interrupt : Effect.succeed(answer)
      }).pipe(writing.join),
    byIds: () => Effect.succeed([])
  }
  const ports = Layer.mergeAll(
    Layer.succeed(LedgerRpc, rpc as never),
    layerTest(Settlements, settlements),
    layerTest(LedgerClock, {
      now: Effect.succeed({
        sequence: latestLedger,
        closedAtSeconds: 0,
        secondsPerLedger: 5,
        fastestSecondsPerLedger: 5,
        isFirstWord: false
      }),
      attend: Effect.void,
      subscribe: () => Effect.void
    }),
    layerTest(Limits, { recoveryPeriod: Duration.seconds(15) }),
    layerTest(Leases, { hold: () => Effect.succeed(true) }),
    layerTest(Outcomes, { complete: () => Effect.void }),
    layerTest(Sponsor, { suspect: Effect.void }),
    layerTest(ChannelStore, {
      distrust: () => Effect.void,
      take: () => Effect.succeed(world.lease === undefined ? [] : [world.lease]),
      release: () => Effect.sync(() => void given.push("released"))
    }),
    layerTest(ChannelPool, { freed: Effect.void }),
    layerTest(Network, {
      feeCeilings: () => ({ resourceStroopsMax: 200_000n, inclusionStroopsMax: 10_000n, totalStroopsMax: 210_000n })
    }),
    layerTest(Signer, {
      sponsor: "sponsor",
      sponsors: ["sponsor", ...(world.former?.sponsors ?? [])],
      channels: [channel],
      formerChannels: world.former?.channels ?? [],
      isOurs: (address: string) => [channel, ...(world.former?.channels ?? [])].includes(address),
      signSettlement: ({ channel }: { channel: string }) =>
        Effect.sync(() => {
          signed.push(`payment on ${channel}`)
          return { envelope: "anew", innerHash: "inner anew", outerHash: "outer anew", sponsor: "sponsor" }
        }),
      signCancel: ({ inclusionStroops }: { inclusionStroops: bigint }) =>
        Effect.sync(() => {
          signed.push(`cancel for ${inclusionStroops}`)
          return { envelope: "cancel", innerHash: "no-op", outerHash: "no-op bumped", sponsor: "sponsor" }
        })
    }),
    layerTest(Authorizations, {
      nonceOf: ({ authorizationKey }: { authorizationKey: string }) =>
        world.nonceOf?.(authorizationKey) ?? { address: "payer", nonce: 1n },
      useIn: () => (world.spending === undefined ? "none" : "same"),
      movementIn: () => ({ amount: 10n })
    }),
    Supervisor.layer
  )
  yield* TestClock.adjust("1 minute")
  const run = Effect.andThen(startFollower, TestClock.adjust(longest))
  yield* Effect.scoped(Effect.provide(run, ports)).pipe(Effect.provideService(ScanAbove, scanAbove))
  return {
    asked,
    sent,
    ended,
    freed,
    given,
    signed,
    askedConcurrently: asking.most(),
    endedConcurrently: writing.most()
  }
})

const included = (innerHash: string): TransactionAnswer => ({
  _tag: "Included",
  executed: executed({ innerHash }),
  latestLedger: 1_004
})

describe("the follower", () => {
  it.effect("asks by the inner hash, and for the no-op's", () =>
    Effect.gen(function* () {
      const cancel = attempt({ number: 2, kind: "cancel", innerHash: "no-op", sentLedger: 1_001 })
      const one = recordOf("one", {}, [attempt({ innerHash: "inner one" }), cancel])
      const { asked } = yield* follow({ records: [one], ledger: 1_001 })
      expect(asked).toEqual(["inner one", "no-op"])
    })
  )

  it.effect("polls every 15 seconds without a ledger or a record [S92]", () =>
    Effect.gen(function* () {
      const polls = (longest: Duration.Input) =>
        Effect.map(follow({ records: [recordOf("one")], ledger: 1_001 }, 50, longest), ({ asked }) => asked.length)
      expect(yield* polls("14 seconds")).toBe(1)
      expect(yield* polls("16 seconds")).toBe(2)
      expect(yield* polls("46 seconds")).toBe(4)
    })
  )

  it.effect("ends a ledger's settlements in one batch, asking sixteen concurrently", () =>
    Effect.gen(function* () {
      const names = Array.from({ length: 60 }, (_, at) => `number ${at}`)
      const records = names.map((name) => recordOf(name))
      const seen = yield* follow({
        records,
        ledger: 1_004,
        stay: "1 second",
        scanned: names.map((name) => executed({ innerHash: `inner ${name}` }))
      })
      expect([seen.ended.length, seen.endedConcurrently, seen.asked]).toEqual([60, 50, []])
      const asked = yield* follow({ records, ledger: 1_004, stay: "1 second", transaction: included })
      expect([asked.ended.length, asked.askedConcurrently]).toEqual([60, 16])
    })
  )

  it.effect("a transaction from before a rotation, whose record was lost, has settled the payment", () =>
    Effect.gen(function* () {
      const { channel: former, envelope } = spendingEnvelope
      const payer = accountText(bumpIn(envelope)!.feeSource)
      const endOf = (changes: Partial<World>, record: Partial<OpenRecord> = {}) =>
        Effect.map(
          follow({
            records: [recordOf("one", record)],
            ledger: expires,
            channelState: { sequence: 7n, nonce: 1_003 },
            scanned: [executed({ innerHash: "lost" })],
            spending: envelope,
            ...changes
          }),
          ({ ended: [end] }) => [end?.[1].state, end?.[1].transaction]
        )
      const settled = ["settled", "lost"]
      expect((yield* endOf({}))[0]).toBe("failed")
      expect(yield* endOf({ former: { channels: [former] } })).toEqual(settled)
      expect(yield* endOf({ former: { sponsors: [payer] } })).toEqual(settled)
      expect(yield* endOf({}, { sponsor: payer })).toEqual(settled)
    })
  )

  it.effect("a defect in one settlement does not stop the others", () =>
    Effect.gen(function* () {
      const records = ["broken", "whole"].map((name) => recordOf(name))
      const { ended } = yield* follow({
        records,
        ledger: 1_004,
        transaction: (hash) => {
          if (hash === "inner broken") throw new Error("a defect")
          return included(hash)
        }
      })
      expect(ended.map(([name]) => name)).toEqual(["whole"])
    })
  )

  it.effect("an interrupted step of one settlement does not stop the others", () =>
    Effect.gen(function* () {
      const records = ["cut", "whole"].map((name) => recordOf(name))
      const { ended } = yield* follow({
        records,
        ledger: 1_004,
        transaction: included,
        resolves: (outcome) => (outcome.transaction === "inner cut" ? undefined : resolved)
      })
      expect(ended.map(([name]) => name)).toEqual(["whole"])
    })
  )

  it.effect("an unreadable key of one settlement does not stop the others", () =>
    Effect.gen(function* () {
      const { ended } = yield* follow({
        records: ["broken", "whole"].map((name) => recordOf(name)),
        ledger: expires,
        nonceOf: (name) => {
          if (name === "broken") throw new Error("no key of mine")
          return { address: "payer", nonce: 1n }
        }
      })
      expect(ended.map(([name, { state }]) => [name, state])).toEqual([["whole", "expired"]])
    })
  )

  it.effect("submits only attempts that the store recorded", () =>
    Effect.gen(function* () {
      const refused = attempt({ sentStatus: "Error", sentCode: "txMalformed", taken: false, envelope: "first" })
      const one = recordOf("one", { authorizationExpiresLedger: 1_060 }, [refused])
      const added = yield* follow({ records: [one], ledger: 1_006 })
      expect([added.signed, added.sent]).toEqual([["cancel for 10000"], ["cancel"]])
      const { sent } = yield* follow({ records: [one], ledger: 1_006, adds: false })
      expect(sent).toEqual([])
    })
  )

  it.effect("submits a former sponsor's recorded transactions and signs nothing for it", () =>
    Effect.gen(function* () {
      const { sent, signed } = yield* follow({ records: [recordOf("one", { sponsor: "former" })], ledger: 1_003 })
      expect([sent, signed]).toEqual([["one"], []])
    })
  )

  it.effect("frees a channel whose sequence is used although no ledger can be scanned", () =>
    Effect.gen(function* () {
      const { ended, freed } = yield* follow({
        records: [recordOf("one")],
        ledger: 1_005,
        channelState: { sequence: 7n, nonce: 1_004 }
      })
      expect([freed, ended]).toEqual([["one"], []])
    })
  )

  const another = StrKey.encodeEd25519PublicKey(new Uint8Array(32).fill(8))
  const overtaken = (changes: Partial<OpenRecord> = {}) => {
    const envelope = encodeEnvelope(spendingEnvelope.envelope)
    const refused = attempt({ sentStatus: "Error", sentCode: "txBadSeq", taken: false, envelope })
    return recordOf("one", { authorizationExpiresLedger: 1_060, ...changes }, [refused])
  }

  it.effect("rebuilds a settlement on another channel when its sequence was used", () =>
    Effect.gen(function* () {
      const lease = { address: another, fence: 3n, sequence: 40n }
      const world = { records: [overtaken()], ledger: 1_006, channelState: { sequence: 7n }, lease }
      const did = yield* follow(world, 50, "1 millis")
      expect(did).toMatchObject({ ended: [], freed: ["one"], signed: [`payment on ${another}`], sent: ["anew"] })
      expect(did.given).toEqual(["one on 40 as inner anew"])
      // No channel is free: nothing is signed, and the next turn tries again.
      const { lease: _, ...none } = world
      expect(yield* follow(none, 50, "1 millis")).toMatchObject({ ended: [], signed: [], sent: [], given: [] })
      // It has changed since it was read: the lease is released.
      const beaten = yield* follow({ ...world, adds: false }, 50, "1 millis")
      expect([beaten.given, beaten.sent]).toEqual([["one on 40 as inner anew", "released"], []])
      // Not without limit, and not with another sponsor.
      const often = yield* follow({ ...world, records: [overtaken({ attemptCount: 13 })] }, 50, "1 millis")
      expect(often.ended.map(([, { state }]) => state)).toEqual(["failed"])
      const rotated = yield* follow({ ...world, records: [overtaken({ sponsor: "former" })] }, 50, "1 millis")
      expect([rotated.signed, rotated.ended.length]).toEqual([[], 1])
    })
  )

  it.effect("a settlement whose transaction ended another one is spent", () =>
    Effect.gen(function* () {
      const { ended } = yield* follow({
        records: [recordOf("one")],
        ledger: 1_004,
        transaction: included,
        resolves: ({ transaction }) => (transaction === undefined ? resolved : { _tag: "TransactionTaken" })
      })
      expect(ended.map(([name, { reason, state }]) => [name, state, reason])).toEqual([
        ["one", "failed", "settle_ledger_authorization_spent"]
      ])
    })
  )

  it.effect("finds settlements in one ledger scan by either hash, ignoring others", () =>
    Effect.gen(function* () {
      const { asked, ended } = yield* follow(
        {
          records: ["one", "two", "three"].map((name) => recordOf(name)),
          ledger: 1_001,
          scanned: [
            executed({ innerHash: "unknown", outerHash: "outer one" }),
            executed({ innerHash: "inner two", outerHash: "unknown" }),
            executed({ innerHash: "foreign", outerHash: "foreign" })
          ]
        },
        0
      )
      expect(ended.map(([name]) => name).sort()).toEqual(["one", "two"])
      expect(asked).toEqual([])
    })
  )
})
