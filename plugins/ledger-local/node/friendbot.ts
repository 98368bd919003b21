// The friendbot: 10 000 XLM for an account or a contract, and on request an amount of USDC, by ordinary transactions in
// the history. An account gets both in one transaction, which opens a missing USDC trustline. That trustline's
// signature is waived, since the friendbot cannot give it. A contract gets each asset by a call of its contract. Each
// request closes a separate ledger and does not wait for the next one.
import { AddressType } from "../engine/xdr/types.ts"
import { invokeHostFunction } from "../engine/host/Host.ts"
import { keyString, trustLineKey } from "../engine/state/LedgerKeys.ts"
import {
  accountAddress,
  type Asset,
  contractAddress,
  equalBytes,
  type HostFunction,
  type PublicKey,
  type ScAddress,
  type Transaction,
  xdrText
} from "../engine/xdr/Xdr.ts"
import { address as addressVal, i128 } from "../engine/xdr/ScVal.ts"
import { INT64_MAX } from "../transaction/Accounts.ts"
import { assetContractId } from "../transaction/assetContractId.ts"
import { type Frame, transactionHash } from "../transaction/Frame.ts"
import { readAccount } from "../transaction/validate.ts"
import type { MuxedAccount, Operation } from "../transaction/Wire.ts"
import { friendbotAccount, type LocalAccount, usdc, usdcAdminAccount, usdcIssuerId } from "./accounts.ts"
import type { ClosedLedger, Ledger } from "./Ledger.ts"

const FRIENDBOT_STROOPS = 10_000_0000000n
const FEE_STROOPS = 100
/** Declared for a call of an asset's contract; unneeded rent is refunded. */
const RESOURCE_FEE_STROOPS = 5_0000000
/** USDC units (10^-7) that one request may ask for. */
export const USDC_UNITS_MAX = 1_000_000_000_0000000n

const native: Asset = { type: 0 }
const muxed = (id: PublicKey): MuxedAccount => ({ type: 0, ed25519: id.ed25519 })

/** A transaction of the friendbot, signed by it and by the others; `after` others of the same ledger. */
const framed = (
  ledger: Ledger,
  after: number,
  signers: ReadonlyArray<LocalAccount>,
  parts: Pick<Transaction, "operations" | "ext" | "fee">
): Frame => {
  const { crypto, networkId } = ledger.options
  const bot = friendbotAccount(crypto)
  const tx: Transaction = {
    sourceAccount: muxed(bot.id),
    seqNum: readAccount(ledger.store, bot.id)!.seqNum + 1n + BigInt(after),
    cond: { type: 0 },
    memo: { type: 0 },
    ...parts
  }
  const hash = transactionHash(crypto, networkId, tx)
  const signatures = [bot, ...signers].map(({ id, seed }) => ({
    hint: id.ed25519.slice(28),
    signature: crypto.ed25519Sign(seed, hash)
  }))
  return ledger.frame({ type: 2, v1: { tx, signatures } })!
}

const fundOperation = (ledger: Ledger, id: PublicKey): Operation => ({
  sourceAccount: null,
  body:
    readAccount(ledger.store, id) === undefined
      ? { type: 0, createAccountOp: { destination: id, startingBalance: FRIENDBOT_STROOPS } }
      : { type: 1, paymentOp: { destination: muxed(id), asset: native, amount: FRIENDBOT_STROOPS } }
})

/**
 * Opens the account's USDC trustline if it is missing, and pays it. The issuer needs neither, so the list is empty.
 */
const usdcOperations = (ledger: Ledger, id: PublicKey, units: bigint): ReadonlyArray<Operation> => {
  if (equalBytes(id.ed25519, usdcIssuerId.ed25519)) return []
  const operations: Array<Operation> = []
  if (!ledger.store.has(keyString(trustLineKey(id, usdc))))
    operations.push({ sourceAccount: muxed(id), body: { type: 6, changeTrustOp: { line: usdc, limit: INT64_MAX } } })
  if (units > 0n) {
    const paymentOp = { destination: muxed(id), asset: usdc, amount: units }
    operations.push({ sourceAccount: muxed(usdcIssuerId), body: { type: 1, paymentOp } })
  }
  return operations
}

const accountFrame = (ledger: Ledger, id: PublicKey, usdcUnits: bigint | undefined): Frame => {
  const more = usdcUnits === undefined ? [] : usdcOperations(ledger, id, usdcUnits)
  const operations = [fundOperation(ledger, id), ...more]
  const isMinted = (usdcUnits ?? 0n) > 0n && more.length > 0
  const signers = isMinted ? [usdcAdminAccount(ledger.options.crypto)] : []
  return framed(ledger, 0, signers, { operations, fee: FEE_STROOPS * operations.length, ext: { v: 0 } })
}

interface Transfer {
  readonly asset: Asset
  readonly from: PublicKey
  readonly amount: bigint
  readonly signers: ReadonlyArray<LocalAccount>
}

/** A call of the asset's contract, with the footprint of a trial run; undefined when the trial run fails. */
const contractFrame = (ledger: Ledger, after: number, to: ScAddress, transfer: Transfer): Frame | undefined => {
  const { crypto, networkId, settings } = ledger.options
  const { asset, from, amount, signers } = transfer
  const hostFunction: HostFunction = {
    type: 0,
    invokeContract: {
      contractAddress: contractAddress(assetContractId(crypto, networkId, asset)),
      functionName: xdrText("transfer"),
      args: [addressVal(accountAddress(from)), addressVal(to), i128(amount)]
    }
  }
  const trial = invokeHostFunction({
    store: ledger.store,
    settings,
    ledgerSeq: ledger.latest.sequence + 1,
    closeTime: ledger.latest.closeTime,
    networkId,
    source: from,
    hostFunction,
    auth: [],
    access: { mode: "record", randomNonce: () => 0n, useUpgradedAuth: false, allowNonRoot: false },
    crypto
  })
  if (!trial.ok) return undefined
  const { footprint, instructions, diskReadBytes, writeBytes, restoredIndices, recordedAuth } = trial
  return framed(ledger, after, signers, {
    operations: [
      {
        sourceAccount: muxed(from),
        body: { type: 24, invokeHostFunctionOp: { hostFunction, auth: [...(recordedAuth ?? [])] } }
      }
    ],
    fee: FEE_STROOPS + RESOURCE_FEE_STROOPS,
    ext: {
      v: 1,
      sorobanData: {
        ext:
          restoredIndices.length === 0
            ? { v: 0 }
            : { v: 1, resourceExt: { archivedSorobanEntries: [...restoredIndices] } },
        resources: {
          footprint,
          instructions: 2 * instructions,
          diskReadBytes: 2 * diskReadBytes,
          writeBytes: 2 * writeBytes
        },
        resourceFee: BigInt(RESOURCE_FEE_STROOPS)
      }
    }
  })
}

const contractFrames = (
  ledger: Ledger,
  to: ScAddress,
  usdcUnits: bigint | undefined
): ReadonlyArray<Frame> | undefined => {
  const { crypto } = ledger.options
  const transfers: Array<Transfer> = [
    { asset: native, from: friendbotAccount(crypto).id, amount: FRIENDBOT_STROOPS, signers: [] }
  ]
  if (usdcUnits !== undefined && usdcUnits > 0n)
    transfers.push({ asset: usdc, from: usdcIssuerId, amount: usdcUnits, signers: [usdcAdminAccount(crypto)] })
  const frames = transfers.map((transfer, i) => contractFrame(ledger, i, to, transfer))
  return frames.every((frame) => frame !== undefined) ? frames : undefined
}

/**
 * Computes the friendbot's ledger for one account or contract. `usdcUnits` undefined sends no USDC; 0 only opens an
 * account's trustline. Returns undefined, without any effect, when the ledger would refuse it, such as for a full line.
 */
export const prepareFunding = (
  ledger: Ledger,
  to: ScAddress,
  usdcUnits: bigint | undefined,
  now: bigint
): ClosedLedger | undefined => {
  if (to.type !== AddressType.account && to.type !== AddressType.contract) return undefined
  const frames =
    to.type === AddressType.account
      ? [accountFrame(ledger, to.accountId, usdcUnits)]
      : contractFrames(ledger, to, usdcUnits)
  if (frames === undefined) return undefined
  const closed = ledger.prepareAside(now, frames, to.type === AddressType.account ? to.accountId : undefined)
  return closed.record.transactions.every(({ succeeded }) => succeeded) ? closed : undefined
}
