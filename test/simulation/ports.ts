// The ports of one replica: the store and the RPC of its world, the real signer over its keys, its settings. Signed
// envelopes are registered, so that the simulated ledger can use them without decoding.
import type { xdr } from "@stellar/stellar-sdk/base"
import { Duration, Effect, Layer } from "effect"
import { Limits } from "../../kernel/config/Limits.ts"
import { Network } from "../../kernel/config/Network.ts"
import type { Transaction } from "../../kernel/stellar/Envelope.ts"
import { LedgerRpc } from "../../kernel/ledger/LedgerRpc.ts"
import { Crypto } from "../../kernel/platform/Crypto.ts"
import { Sponsor } from "../../kernel/settlement/sponsor/Sponsor.ts"
import { ThisProcess } from "../../kernel/settlement/delivery/ThisProcess.ts"
import { OwnerTags, ownerTagsOf } from "../../kernel/settlement/OwnerTags.ts"
import { Signer } from "../../kernel/signer/Signer.ts"
import { resourceFeeStroops } from "./keys.ts"
import type { Replica } from "./Replica.ts"
import { simulatedRpc } from "./simulatedRpc.ts"
import { simulatedStore } from "./simulatedStore.ts"
import type { World } from "./World.ts"

/** The longest a settle request may take. */
export const settleTimeoutMillis = 25_000

const limitValues = {
  settleTimeout: Duration.millis(settleTimeoutMillis),
  settlePoll: Duration.millis(500),
  recoveryPeriod: Duration.seconds(15),
  rpcTimeout: Duration.seconds(5),
  channelLease: Duration.seconds(5),
  channelWait: undefined,
  pendingSettlementsMax: 1_000,
  sponsoredPerPrincipalPerDayStroopsMax: 0n,
  sponsoredPerDayStroopsMax: 0n,
  expiryToleranceLedgers: 4,
  verifyPerSecond: 0,
  settlePerSecond: 0
}

/** The number in the last argument of a simulated operation. */
const numberOf = (operation: xdr.OperationWire | undefined): number | undefined => {
  const body = operation?.body
  if (body?.type !== 24 || body.invokeHostFunctionOp.hostFunction.type !== 0) return undefined
  const last: xdr.ScValWire | undefined = body.invokeHostFunctionOp.hostFunction.invokeContract.args.at(-1)
  return last?.type === 5 ? Number(last.u64) : undefined
}

/** A replica's signer that registers signed envelopes, so that the ledger can use them without decoding. */
const registering = (world: World, { keys: { signer } }: Replica): Signer["Service"] => {
  const register = (
    transaction: Transaction,
    channel: string,
    signed: { innerHash: string; outerHash: string; envelope: string },
    inclusionStroops: bigint
  ) => {
    const number = numberOf(transaction.operations[0])
    const cond = transaction.cond as any
    world.submissions.set(signed.outerHash, {
      ...signed,
      kind: number === undefined ? "cancel" : "payment",
      channel,
      sequence: BigInt(transaction.seqNum),
      ledgerMax: cond.v2.ledgerBounds.maxLedger,
      timeMax: cond.v2.timeBounds.maxTime === 0n ? 1n << 60n : BigInt(cond.v2.timeBounds.maxTime),
      feeStroops: inclusionStroops + (number === undefined ? 0n : resourceFeeStroops),
      inclusionStroops,
      authorization: number === undefined ? undefined : world.authorizations.get(number)!
    })
    return signed as never
  }
  return Signer.of({
    ...signer,
    signSettlement: (request) =>
      Effect.map(signer.signSettlement(request), (signed) =>
        register(request.transaction, request.channel, signed, request.inclusionStroops)
      ),
    signCancel: (request) =>
      Effect.map(signer.signCancel(request), (signed) =>
        register(request.transaction, request.channel, signed, request.inclusionStroops)
      )
  })
}

/** Reports a dead process immediately. */
const presence = (world: World, { process }: Replica) =>
  Layer.effect(
    ThisProcess,
    Effect.sync(() => {
      world.store.processes.add(process)
      return ThisProcess.of({
        id: () => process,
        renewIfStale: Effect.void,
        renew: Effect.void,
        isPresent: Effect.succeed(true),
        onServedAnew: () => Effect.void
      })
    })
  )

/** The ports of one replica. */
export const ports = (world: World, replica: Replica) => {
  const { crypto, network } = replica.keys
  return Layer.mergeAll(
    simulatedStore(world, replica),
    Layer.succeed(LedgerRpc, simulatedRpc(world, replica)),
    Layer.succeed(Signer, registering(world, replica)),
    Layer.succeed(OwnerTags, ownerTagsOf([new Uint8Array(32)], crypto)),
    Layer.succeed(Network, network),
    Sponsor.layerAble,
    presence(world, replica),
    Layer.succeed(Limits, limitValues),
    Layer.succeed(Crypto, Crypto.of({ ...crypto, randomBytes: (length) => world.random.bytes(length) }))
  )
}
