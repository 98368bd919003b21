// When the work of a payment wakes the follower: if a ledger has closed between its record and the answer to its
// submission, because the close has woken the follower too early. Otherwise never, because in the ledger of the record
// nothing can have happened.
import { expect, it } from "@effect/vitest"
import { Keypair } from "@stellar/stellar-sdk"
import { xdr } from "@stellar/stellar-sdk/base"
import { Deferred, Effect, Layer, Option } from "effect"
import { Budget } from "../../../../kernel/budget/Budget.ts"
import { Limits } from "../../../../kernel/config/Limits.ts"
import { Network } from "../../../../kernel/config/Network.ts"
import { LedgerClock } from "../../../../kernel/ledger/LedgerClock.ts"
import { LedgerRpc } from "../../../../kernel/ledger/LedgerRpc.ts"
import { Flight } from "../../../../kernel/payment/settle/SingleFlight.ts"
import type { SettlementContext } from "../../../../kernel/payment/settle/recordSettlement.ts"
import { SettlementFollower, SettlementWorker } from "../../../../kernel/payment/settle/SettlementWorker.ts"
import { ChannelStore } from "../../../../kernel/settlement/channels/ChannelStore.ts"
import { ChannelPool } from "../../../../kernel/settlement/channels/ChannelPool.ts"
import { Settlements } from "../../../../kernel/settlement/store/Settlements.ts"
import { OwnerTags } from "../../../../kernel/settlement/OwnerTags.ts"
import { Sponsor } from "../../../../kernel/settlement/sponsor/Sponsor.ts"
import { Signer } from "../../../../kernel/signer/Signer.ts"
import { layer as cryptoLayer } from "../../../../runtime/platform/nodeCrypto.ts"
import { makePayment } from "../../../../runtime/redteam/buyer.ts"
import { limitValues } from "../../settlement/store.ts"
import { layerTest } from "../../../support/layerTest.ts"

const channel = Keypair.random().publicKey()
const [payer, seller] = [Keypair.random(), Keypair.random()]

const prepared = Effect.promise(async () => {
  const { transaction } = await makePayment({ latestLedger: 1_000, payer, payTo: seller.publicKey(), amount: 1n })
  const envelope = xdr.TransactionEnvelope.schema.decode(Uint8Array.from(atob(transaction), (c) => c.charCodeAt(0)))
  if (envelope.type !== 2 || envelope.v1.tx.ext.v !== 1) throw new Error("a plain envelope is required")
  return {
    operationXdr: xdr.Operation.schema.encode(envelope.v1.tx.operations[0]!),
    sorobanDataXdr: xdr.SorobanTransactionData.schema.encode(envelope.v1.tx.ext.sorobanData)
  }
})

const time = { closedAtSeconds: 1_700_000_000, secondsPerLedger: 1, fastestSecondsPerLedger: 1, isFirstWord: false }

/** Settles one payment over a ledger that closes a number of ledgers while it is being sent; counts wake-ups. */
const workWhile = Effect.fnUntraced(function* (ledgersClosing: number) {
  let sequence = 1_000
  let woken = 0
  const noted = yield* Deferred.make<number>()
  const services = Layer.mergeAll(
    cryptoLayer,
    Sponsor.layerAble,
    layerTest(Budget, {}),
    layerTest(OwnerTags, { preimageFor: () => new Uint8Array(32) }),
    Layer.succeed(Limits, limitValues),
    layerTest(ChannelPool, { release: () => Effect.void }),
    layerTest(Network, {
      feeCeilings: () => ({ resourceStroopsMax: 9n, inclusionStroopsMax: 10_000n, totalStroopsMax: 210_000n })
    }),
    layerTest(LedgerClock, {
      now: Effect.sync(() => ({ ...time, sequence })),
      fees: Effect.succeed({ p50: 100n, p90: 100n, p99: 100n, asked: 100n })
    }),
    layerTest(LedgerRpc, {
      send: () =>
        Effect.sync(() => {
          sequence += ledgersClosing
          return { _tag: "Pending" }
        })
    }),
    layerTest(Signer, {
      channels: [channel],
      isOurs: (address: string) => address === channel,
      signSettlement: () => Effect.succeed({ envelope: "AAAA", innerHash: "a1", outerHash: "b1", sponsor: channel })
    }),
    layerTest(Settlements, {
      record: () => Effect.succeed({ _tag: "Recorded" }),
      noteSent: (_id: string, _number: number, { ledger }: { readonly ledger: number }) =>
        Deferred.succeed(noted, ledger)
    }),
    layerTest(ChannelStore, { distrust: () => Effect.void }),
    Layer.succeed(SettlementFollower, { wake: Effect.sync(() => void (woken += 1)) })
  )
  const parts = yield* prepared
  const lease = Effect.succeedSome({ address: channel, fence: 1n, sequence: 7n })
  const settling = {
    payment: {
      requirements: { network: "ledger:testnet" },
      fingerprint: "f",
      principal: { owner: "key:a", source: "key:a", keyed: true },
      identifier: Option.none(),
      resourceUrl: Option.none()
    },
    scheme: { scheme: "exact", prepare: () => Effect.succeed(parts) },
    verified: { payer: payer.publicKey(), authorizationExpiresLedger: 1_060, resourceFeeStroops: 9n },
    ticket: { _tag: "Place", lease, leave: Effect.void },
    startedAt: { at: 0, elapsed: 0 },
    verifiedAt: 0
  } as unknown as SettlementContext
  // Closing the Scope waits for running work.
  return yield* Effect.gen(function* () {
    const ended = yield* Deferred.make<void>()
    const flight = new Flight(() => Deferred.doneUnsafe(ended, Effect.void))
    const started = yield* Deferred.await(yield* (yield* SettlementWorker).start(settling, flight))
    expect(started._tag).toBe("Recorded")
    const ledger = yield* Deferred.await(noted)
    // The follower is woken right after that, in the same fiber.
    for (let turn = 0; turn < 20; turn++) yield* Effect.yieldNow
    return { ledger, woken }
  }).pipe(Effect.provide(SettlementWorker.layer.pipe(Layer.provide(services))))
})

it.effect("does not wake the follower if the payment was sent in its record's ledger", () =>
  Effect.gen(function* () {
    expect(yield* workWhile(0)).toEqual({ ledger: 1_000, woken: 0 })
  })
)

it.effect("wakes the follower if a ledger closed while the payment was sent", () =>
  Effect.gen(function* () {
    expect(yield* workWhile(1)).toEqual({ ledger: 1_001, woken: 1 })
    expect(yield* workWhile(3)).toEqual({ ledger: 1_003, woken: 1 })
  })
)
