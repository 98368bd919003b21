// Recommendations of a simulation: the metered resources with the RPC's padding, the size of the largest possible
// envelope of the transaction (twenty signatures, muxed sources, all preconditions), and the fee for both.
import { codecs, OperationType } from "../transaction/Wire.ts"
import type { NetworkSettings } from "../engine/state/NetworkSettings.ts"
import { eventsFeeStroops, nonRefundableFeeStroops, rentFeeStroops, type RentChange } from "../engine/state/Fees.ts"
import {
  codec,
  type LedgerFootprint,
  type SorobanResources,
  type SorobanTransactionData,
  type Transaction
} from "../engine/xdr/Xdr.ts"
import type { MuxedAccount, Operation, OperationBody, SignerKey } from "../transaction/Wire.ts"

const SIGNATURES_MAX = 20
const INSTRUCTIONS_ADDED = 50_000
const SIZE_ADDED = 500

const largestAccount: MuxedAccount = { type: 256, med25519: { id: 0n, ed25519: new Uint8Array(32) } }
const largestSigner: SignerKey = {
  type: 3,
  ed25519SignedPayload: { ed25519: new Uint8Array(32), payload: new Uint8Array(64) }
}

/** Size of the envelope that the transaction may grow to. */
const largestSize = (body: OperationBody, footprint: LedgerFootprint): number => {
  const operation: Operation = { sourceAccount: largestAccount, body }
  const tx: Transaction = {
    sourceAccount: largestAccount,
    fee: 0,
    seqNum: 0n,
    cond: {
      type: 2,
      v2: {
        timeBounds: { minTime: 0n, maxTime: 0n },
        ledgerBounds: { minLedger: 0, maxLedger: 0 },
        minSeqNum: 0n,
        minSeqAge: 0n,
        minSeqLedgerGap: 0,
        extraSigners: [largestSigner, largestSigner]
      }
    },
    memo: { type: 3, hash: new Uint8Array(32) },
    operations: [operation],
    ext: {
      v: 1,
      sorobanData: {
        ext: { v: 0 },
        resources: { footprint, instructions: 0, diskReadBytes: 0, writeBytes: 0 },
        resourceFee: 0n
      }
    }
  }
  const signatures = Array.from({ length: SIGNATURES_MAX }, () => ({
    hint: new Uint8Array(4),
    signature: new Uint8Array(64)
  }))
  return codec.TransactionEnvelope.encode({ type: 2, v1: { tx, signatures } }).length
}

const changingSize = (body: OperationBody, footprint: LedgerFootprint): number =>
  codecs.Operation.encode({ sourceAccount: null, body }).length +
  codec.SorobanResources.encode({ footprint, instructions: 0, diskReadBytes: 0, writeBytes: 0 }).length

const leastBody: OperationBody = { type: 26, restoreFootprintOp: { ext: { v: 0 } } }
const noFootprint: LedgerFootprint = { readOnly: [], readWrite: [] }
/** Fixed bytes around operation and footprint. */
const AROUND_BYTES = largestSize(leastBody, noFootprint) - changingSize(leastBody, noFootprint)

/** That size padded: the larger of 10 % and 500 bytes more. */
export const paddedSize = (body: OperationBody, footprint: LedgerFootprint): number => {
  const size = AROUND_BYTES + changingSize(body, footprint)
  return Math.max(size + SIZE_ADDED, Math.floor(size * 1.1))
}

export const paddedInstructions = (instructions: number, leeway: number): number =>
  Math.max(instructions + Math.max(INSTRUCTIONS_ADDED, leeway), Math.floor(instructions * 1.04))

interface CostInput {
  readonly settings: NetworkSettings
  readonly ledgerSeq: number
  readonly body: OperationBody
  readonly resources: SorobanResources
  readonly archivedIndices: ReadonlyArray<number>
  readonly rentChanges: ReadonlyArray<RentChange>
  readonly eventsBytes: number
}

/**
 * The contract data to put into the transaction; its resource fee is the recommended one, refundable part plus 15 %.
 */
export const recommendedData = (input: CostInput): SorobanTransactionData => {
  const { settings, resources, archivedIndices } = input
  const size = paddedSize(input.body, resources.footprint)
  const refundable =
    rentFeeStroops(settings, input.rentChanges, input.ledgerSeq) + eventsFeeStroops(settings, input.eventsBytes)
  const diskReads =
    input.body.type === OperationType.restoreFootprint ? resources.footprint.readWrite.length : archivedIndices.length
  const resourceFee = nonRefundableFeeStroops(settings, resources, size, diskReads) + (refundable * 115n) / 100n
  return {
    ext:
      archivedIndices.length === 0 ? { v: 0 } : { v: 1, resourceExt: { archivedSorobanEntries: [...archivedIndices] } },
    resources,
    resourceFee
  }
}
