// How many enforcing simulations of one exact payment the embedded ledger answers per second on one core: decode the
// envelope, run the host with the signed authorization, and encode the answer that an RPC would give. The bar is 1,500
// per second.
import {
  eventsFeeStroops,
  nonRefundableFeeStroops,
  rentFeeStroops
} from "../../plugins/ledger-local/engine/state/Fees.ts"
import { invokeHostFunction } from "../../plugins/ledger-local/engine/host/Host.ts"
import { testnet } from "../../plugins/ledger-local/engine/state/NetworkSettings.ts"
import { codec, publicKey, type TransactionEnvelope } from "../../plugins/ledger-local/engine/xdr/Xdr.ts"
import {
  crypto,
  ledgerSeq,
  networkId,
  paidWorld,
  payee,
  payer,
  sponsor,
  transferArgs
} from "../plugins/ledger-local/engine/World.ts"

/** Simulations per second that the local ledger must reach. */
const RATE_BAR = 1_500
const ROUND_MS = 1_000
const ROUNDS = 5

const world = paidWorld()
const root = world.invocation("transfer", transferArgs(payer, payee, 10n))
const envelope: TransactionEnvelope = {
  type: 2,
  v1: {
    tx: {
      sourceAccount: { type: 0, ed25519: sponsor.id.ed25519 },
      fee: 100,
      seqNum: 1n,
      cond: { type: 0 },
      memo: { type: 0 },
      operations: [
        {
          sourceAccount: null,
          body: {
            type: 24,
            invokeHostFunctionOp: {
              hostFunction: {
                type: 0,
                invokeContract: (root.function as Extract<typeof root.function, { type: 0 }>).contractFn
              },
              auth: [world.sign(payer, root)]
            }
          }
        }
      ],
      ext: { v: 0 }
    },
    signatures: []
  }
}
const request = Buffer.from(codec.TransactionEnvelope.encode(envelope)).toString("base64")
const base64 = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64")

const simulate = (text: string): string => {
  const decoded = codec.TransactionEnvelope.decode(new Uint8Array(Buffer.from(text, "base64")))
  if (decoded.type !== 2) throw new Error("unexpected envelope")
  const { tx } = decoded.v1
  const body = tx.operations[0]!.body
  if (body.type !== 24 || tx.sourceAccount.type !== 0) throw new Error("unexpected operation")
  const { hostFunction, auth } = body.invokeHostFunctionOp
  const result = invokeHostFunction({
    store: world.store,
    settings: testnet,
    ledgerSeq,
    closeTime: 1_700_000_000n,
    networkId,
    source: publicKey(tx.sourceAccount.ed25519),
    hostFunction,
    auth,
    access: { mode: "enforce-recording-footprint" },
    crypto
  })
  if (!result.ok) throw result.error
  const { footprint, instructions, diskReadBytes, writeBytes } = result
  const resources = {
    footprint,
    instructions: Math.max(instructions + 50_000, Math.floor(instructions * 1.04)),
    diskReadBytes,
    writeBytes
  }
  const sizeBytes = Math.floor(codec.TransactionEnvelope.encode(decoded).length * 1.1)
  const refundable =
    rentFeeStroops(testnet, result.rentChanges, ledgerSeq) + eventsFeeStroops(testnet, result.eventsBytes)
  const resourceFee = nonRefundableFeeStroops(testnet, resources, sizeBytes) + (refundable * 115n) / 100n
  return JSON.stringify({
    latestLedger: ledgerSeq,
    minResourceFee: String(resourceFee),
    transactionData: base64(codec.SorobanTransactionData.encode({ ext: { v: 0 }, resources, resourceFee })),
    results: [
      {
        auth: auth.map((entry) => base64(codec.SorobanAuthorizationEntry.encode(entry))),
        xdr: base64(codec.ScVal.encode(result.returnValue))
      }
    ],
    events: result.diagnostics.map((event) => base64(codec.DiagnosticEvent.encode(event))),
    stateChanges: footprint.readWrite.map((key) => {
      const before = world.store.getEntry(key)
      const after = result.changes.getEntry(key)
      return {
        type: before === undefined ? "created" : after === undefined ? "deleted" : "updated",
        key: base64(codec.LedgerKey.encode(key)),
        before: before === undefined ? null : base64(codec.LedgerEntry.encode(before)),
        after: after === undefined ? null : base64(codec.LedgerEntry.encode(after))
      }
    })
  })
}

interface Rate {
  /** Per second of the process's own processor time, that of its helper threads counted too. */
  readonly perCore: number
  /** Per second by the clock, which a busy machine lowers. */
  readonly byClock: number
}

const processorMillis = (): number => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000
}

/** Simulations per second in the best of a few rounds of one second each. */
export const simulationsPerSecond = (): Rate => {
  let best: Rate = { perCore: 0, byClock: 0 }
  for (let round = 0; round < ROUNDS; round++) {
    const [start, busyFrom] = [performance.now(), processorMillis()]
    let count = 0
    while (performance.now() - start < ROUND_MS) for (let i = 0; i < 50; i++, count++) simulate(request)
    const perCore = (count * 1_000) / (processorMillis() - busyFrom)
    if (perCore > best.perCore) best = { perCore, byClock: (count * 1_000) / (performance.now() - start) }
  }
  return best
}

/** Prints the figures and whether the one per core reaches the bar. */
export const bench = (): boolean => {
  const { perCore, byClock } = simulationsPerSecond()
  console.log(`envelope ${request.length} characters, answer ${simulate(request).length}`)
  console.log(
    `ledger: ${Math.round(perCore)} enforcing simulations per second on one core (bar ${RATE_BAR}), ` +
      `${Math.round(byClock)} by the clock`
  )
  return perCore >= RATE_BAR
}
