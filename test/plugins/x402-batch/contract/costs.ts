// The cost of a call on the ledger: the resources as a simulation declares them, and their resource fee at the test
// network's prices, without the inclusion fee.
import {
  eventsFeeStroops,
  nonRefundableFeeStroops,
  rentFeeStroops
} from "../../../../plugins/ledger-local/engine/state/Fees.ts"
import type { HostSuccess } from "../../../../plugins/ledger-local/engine/host/HostResult.ts"
import { xdrText } from "../../../../plugins/ledger-local/engine/xdr/Xdr.ts"
import { paddedInstructions, paddedSize } from "../../../../plugins/ledger-local/rpc/simulationCost.ts"
import type { BatchWorld } from "./BatchWorld.ts"

export interface Cost {
  readonly instructions: number
  readonly feeStroops: bigint
  /** Bytes of the largest envelope, as a simulation assumes it. */
  readonly sizeBytes: number
  readonly writeEntries: number
  readonly footprintEntries: number
  readonly writeBytes: number
  readonly eventsBytes: number
}

/** The cost of the world's last call; authorizations are not counted in the size. */
export const costOf = (world: BatchWorld, done: HostSuccess): Cost => {
  const { footprint } = done
  const { args, fn } = world.lastCall
  const instructions = paddedInstructions(done.instructions, 0)
  const resources = {
    footprint,
    instructions,
    diskReadBytes: done.diskReadBytes,
    writeBytes: done.writeBytes
  }
  const invokeContract = { contractAddress: world.batch, functionName: xdrText(fn), args: [...args] }
  const hostFunction = { type: 0 as const, invokeContract }
  const body = { type: 24 as const, invokeHostFunctionOp: { hostFunction, auth: [] } }
  const sizeBytes = paddedSize(body, footprint)
  const fixed = nonRefundableFeeStroops(world.settings, resources, sizeBytes, done.restoredIndices.length)
  const refundable =
    rentFeeStroops(world.settings, done.rentChanges, world.ledger) + eventsFeeStroops(world.settings, done.eventsBytes)
  return {
    instructions,
    feeStroops: fixed + refundable,
    sizeBytes,
    writeEntries: footprint.readWrite.length,
    footprintEntries: footprint.readWrite.length + footprint.readOnly.length,
    writeBytes: done.writeBytes,
    eventsBytes: done.eventsBytes
  }
}
