// The asset contract's events. Every one ends its topics with the asset's SEP-11 name; a transfer from the issuer is
// shown as a mint and one to it as a burn, unless both sides are the same. A multiplexed destination's id rides in the
// data.
import type { ContractHost } from "../host/HostTypes.ts"
import type { SacInstance } from "./SacInstance.ts"
import { address, bool, i128, structMap, sym, u32, u64, vec } from "../xdr/ScVal.ts"
import { accountAddress, equalAddress, type ScAddress, type ScVal } from "../xdr/Xdr.ts"

const isIssuer = (sac: SacInstance, candidate: ScAddress): boolean =>
  sac.issuer !== undefined && equalAddress(candidate, accountAddress(sac.issuer))

const amountData = (amount: bigint, muxedId: bigint | undefined): ScVal =>
  muxedId === undefined ? i128(amount) : structMap({ amount: i128(amount), to_muxed_id: u64(muxedId) })

export const transfer = (
  host: ContractHost,
  sac: SacInstance,
  from: ScAddress,
  to: ScAddress,
  muxedId: bigint | undefined,
  amount: bigint
): void => {
  if (!equalAddress(from, to)) {
    if (isIssuer(sac, from)) return mint(host, sac, to, muxedId, amount)
    if (isIssuer(sac, to)) return burn(host, sac, from, amount)
  }
  host.emit([sym("transfer"), address(from), address(to), sac.name], amountData(amount, muxedId))
}

export const mint = (
  host: ContractHost,
  sac: SacInstance,
  to: ScAddress,
  muxedId: bigint | undefined,
  amount: bigint
): void => host.emit([sym("mint"), address(to), sac.name], amountData(amount, muxedId))

export const burn = (host: ContractHost, sac: SacInstance, from: ScAddress, amount: bigint): void =>
  host.emit([sym("burn"), address(from), sac.name], i128(amount))

export const clawback = (host: ContractHost, sac: SacInstance, from: ScAddress, amount: bigint): void =>
  host.emit([sym("clawback"), address(from), sac.name], i128(amount))

export const approve = (
  host: ContractHost,
  sac: SacInstance,
  from: ScAddress,
  spender: ScAddress,
  amount: bigint,
  liveUntil: number
): void => host.emit([sym("approve"), address(from), address(spender), sac.name], vec([i128(amount), u32(liveUntil)]))

export const setAuthorized = (host: ContractHost, sac: SacInstance, id: ScAddress, isAuthorized: boolean): void =>
  host.emit([sym("set_authorized"), address(id), sac.name], bool(isAuthorized))

export const setAdmin = (host: ContractHost, sac: SacInstance, previous: ScAddress, admin: ScAddress): void =>
  host.emit([sym("set_admin"), address(previous), sac.name], address(admin))
