// The Stellar Asset Contract: the built-in token contract of every asset. Each function checks in the network's own
// order (amount, asset and issuer, authorization, then the instance's TTL, then balances, then the event), because
// which error a caller sees depends on it. Amounts are i128 atomic units; errors carry the contract's published
// numbers.
import { AddressType, ScType } from "../xdr/types.ts"
import { HostError } from "../host/HostError.ts"
import { Price } from "../host/instructionPrices.ts"
import type { ContractHost, Frame } from "../host/HostTypes.ts"
import { allowanceOf, spendAllowance, writeAllowance } from "./SacAllowance.ts"
import { SacBalances, SacError } from "./SacBalances.ts"
import * as events from "./SacEvents.ts"
import { ADMIN_KEY, newSacStorage, readSacInstance, SAC_DECIMALS, type SacInstance } from "./SacInstance.ts"
import { createTrustLine } from "./sacTrust.ts"
import {
  address as addressVal,
  bool,
  i128,
  readAddress,
  readBool,
  readBytes,
  readI128,
  readU32,
  sym,
  u32,
  VOID
} from "../xdr/ScVal.ts"
import { accountAddress, equalAddress, publicKey, type ScAddress, type ScVal, codecAsset } from "../xdr/Xdr.ts"

const DAY_LEDGERS = 17_280
const INSTANCE_EXTEND_TO = 7 * DAY_LEDGERS
const INSTANCE_THRESHOLD = INSTANCE_EXTEND_TO - DAY_LEDGERS

interface Call {
  readonly host: ContractHost
  readonly frame: Frame
  readonly sac: SacInstance
  readonly balances: SacBalances
  readonly args: ReadonlyArray<ScVal>
}

const amountOf = (value: ScVal): bigint => {
  const amount = readI128(value)
  if (amount < 0n) throw HostError.contract(SacError.negativeAmount, "negative amount is not allowed", [i128(amount)])
  return amount
}

const notNative = ({ sac }: Call): void => {
  if (sac.issuer === undefined)
    throw HostError.contract(SacError.operationNotSupported, "operation invalid on native asset")
}

const notIssuer = ({ sac }: Call, address: ScAddress): void => {
  if (sac.issuer !== undefined && equalAddress(address, accountAddress(sac.issuer))) {
    throw HostError.contract(SacError.operationNotSupported, "operation invalid on issuer")
  }
}

const extendInstance = ({ host, frame }: Call): void =>
  host.storage.extend(frame.instanceKey, INSTANCE_THRESHOLD, INSTANCE_EXTEND_TO)

const authorize = (call: Call, address: ScAddress): void => {
  call.host.auth.require(address, call.args)
  extendInstance(call)
}

const adminOf = ({ sac }: Call): ScAddress => {
  if (sac.admin === undefined)
    throw HostError.of("Storage", "MissingValue", "key is missing from instance storage", [ADMIN_KEY])
  return sac.admin
}

/** A destination may be multiplexed: the underlying account, and the id that the event carries. */
const readDestination = (value: ScVal): { readonly to: ScAddress; readonly muxedId: bigint | undefined } => {
  if (value.type === ScType.address && value.address.type === AddressType.muxedAccount) {
    const { id, ed25519 } = value.address.muxedAccount
    return { to: accountAddress(publicKey(ed25519)), muxedId: id }
  }
  return { to: readAddress(value), muxedId: undefined }
}

type SacFunction = (call: Call) => ScVal

type Taking = readonly [arity: number, run: SacFunction]
const taking = (arity: number, run: SacFunction): Taking => [arity, run]

const functions: Readonly<Record<string, Taking>> = {
  transfer: taking(3, (call) => {
    const from = readAddress(call.args[0]!)
    const { to, muxedId } = readDestination(call.args[1]!)
    const amount = amountOf(call.args[2]!)
    if (muxedId !== undefined) call.host.meter.spend(Price.muxedDestination)
    authorize(call, from)
    call.balances.spend(from, amount)
    call.balances.receive(to, amount)
    events.transfer(call.host, call.sac, from, to, muxedId, amount)
    return VOID
  }),
  transfer_from: taking(4, (call) => {
    const spender = readAddress(call.args[0]!)
    const from = readAddress(call.args[1]!)
    const to = readAddress(call.args[2]!)
    const amount = amountOf(call.args[3]!)
    authorize(call, spender)
    spendAllowance(call.host, from, spender, amount)
    call.balances.spend(from, amount)
    call.balances.receive(to, amount)
    events.transfer(call.host, call.sac, from, to, undefined, amount)
    return VOID
  }),
  approve: taking(4, (call) => {
    const from = readAddress(call.args[0]!)
    const spender = readAddress(call.args[1]!)
    const liveUntil = readU32(call.args[3]!)
    const amount = amountOf(call.args[2]!)
    authorize(call, from)
    writeAllowance(call.host, from, spender, amount, liveUntil)
    events.approve(call.host, call.sac, from, spender, amount, liveUntil)
    return VOID
  }),
  allowance: taking(2, (call) => {
    const from = readAddress(call.args[0]!)
    const spender = readAddress(call.args[1]!)
    extendInstance(call)
    return i128(allowanceOf(call.host, from, spender))
  }),
  balance: taking(1, (call) => {
    const address = readAddress(call.args[0]!)
    extendInstance(call)
    return i128(call.balances.read(address))
  }),
  authorized: taking(1, (call) => {
    const address = readAddress(call.args[0]!)
    extendInstance(call)
    return bool(call.balances.isAuthorized(address))
  }),
  burn: taking(2, (call) => {
    const from = readAddress(call.args[0]!)
    const amount = amountOf(call.args[1]!)
    notNative(call)
    notIssuer(call, from)
    authorize(call, from)
    call.balances.spend(from, amount)
    events.burn(call.host, call.sac, from, amount)
    return VOID
  }),
  burn_from: taking(3, (call) => {
    const spender = readAddress(call.args[0]!)
    const from = readAddress(call.args[1]!)
    const amount = amountOf(call.args[2]!)
    notNative(call)
    notIssuer(call, from)
    authorize(call, spender)
    spendAllowance(call.host, from, spender, amount)
    call.balances.spend(from, amount)
    events.burn(call.host, call.sac, from, amount)
    return VOID
  }),
  clawback: taking(2, (call) => {
    const from = readAddress(call.args[0]!)
    const amount = amountOf(call.args[1]!)
    call.balances.checkClawback(from)
    notIssuer(call, from)
    authorize(call, adminOf(call))
    call.balances.spendUnchecked(from, amount)
    events.clawback(call.host, call.sac, from, amount)
    return VOID
  }),
  mint: taking(2, (call) => {
    const to = readAddress(call.args[0]!)
    const amount = amountOf(call.args[1]!)
    notIssuer(call, to)
    authorize(call, adminOf(call))
    call.balances.receive(to, amount)
    events.mint(call.host, call.sac, to, undefined, amount)
    return VOID
  }),
  set_authorized: taking(2, (call) => {
    const address = readAddress(call.args[0]!)
    const isAuthorized = readBool(call.args[1]!)
    authorize(call, adminOf(call))
    call.balances.setAuthorized(address, isAuthorized)
    events.setAuthorized(call.host, call.sac, address, isAuthorized)
    return VOID
  }),
  set_admin: taking(1, (call) => {
    const admin = readAddress(call.args[0]!)
    const previous = adminOf(call)
    authorize(call, previous)
    call.host.instancePut(ADMIN_KEY, addressVal(admin))
    events.setAdmin(call.host, call.sac, previous, admin)
    return VOID
  }),
  trust: taking(1, (call) => {
    const address = readAddress(call.args[0]!)
    extendInstance(call)
    createTrustLine(call.host, call.sac, address, call.args)
    return VOID
  }),
  admin: [0, (call) => addressVal(adminOf(call))],
  decimals: [0, () => u32(SAC_DECIMALS)],
  name: [0, (call) => call.sac.name],
  symbol: [0, (call) => call.sac.symbol]
}

/** Runs the asset contract's function of the current frame. */
export const callSac = (host: ContractHost, frame: Frame): ScVal => {
  if (frame.fn === "init_asset") return initAsset(host, frame)
  const known = Object.hasOwn(functions, frame.fn) ? functions[frame.fn] : undefined
  if (known === undefined) {
    throw HostError.of("Context", "MissingValue", "invoking unknown export in StellarAssetContract", [sym(frame.fn)])
  }
  const [arity, run] = known
  if (frame.args.length !== arity)
    throw HostError.of("Context", "UnexpectedSize", "wrong number of args to StellarAssetContract fn")
  const sac = readSacInstance(frame.instanceStorage)
  if (sac.issuer !== undefined) host.meter.spend(Price.issuedAssetFrame)
  return run({ host, frame, sac, balances: new SacBalances(host, frame, sac), args: frame.args })
}

const initAsset = (host: ContractHost, frame: Frame): ScVal => {
  if (frame.instanceStorage.length > 0) {
    throw HostError.contract(SacError.alreadyInitialized, "StellarAssetContract has been already initialized")
  }
  const asset = codecAsset.decode(readBytes(frame.args[0] ?? VOID))
  for (const { key, val } of newSacStorage(asset)) host.instancePut(key, val)
  return VOID
}
