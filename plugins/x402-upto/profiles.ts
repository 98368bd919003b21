// The profiles of `upto`. A profile identifies a settlement contract by its code's hash. It lists the contract's
// arguments, the arguments that the payer signs and their order, the allowances below the call, and the contract's
// events. The first profile is ours; the others are the drafts that were published for this ledger. A profile is data:
// the same checks verify all of them.
import type { Terms } from "../../kernel/payment/Payment.ts"
import type { ContractEvent } from "../../kernel/stellar/TransferEvents.ts"
import { addressOf, fieldsOf, i128Of, vecOf } from "../../kernel/stellar/Value.ts"
import { draftWasm } from "./contract/drafts/draftWasm.ts"
import { wasmHash } from "./contract/settleWasm.ts"

/** The kinds of arguments of a settlement call. Ledgers are u32, seconds u64, an id 32 bytes. */
export type ArgumentName =
  | "payer"
  | "payTo"
  | "token"
  | "max"
  /** First and last ledger. */
  | "validAfter"
  | "deadline"
  /** First and last second. */
  | "beginsAt"
  | "endsAt"
  | "facilitator"
  | "settlementId"
  /** Whether the allowance ends with the call. */
  | "autoRevoke"
  | "actual"

/** The fields of the contract's event; undefined if it emits none. */
interface StatedEvent {
  readonly payer: string | undefined
  readonly payTo: string | undefined
  readonly token?: string | undefined
  readonly max: bigint | undefined
  readonly actual: bigint | undefined
}

export interface Profile {
  /** The name in `extra.profile`. */
  readonly name: string
  /** sha256 of the contract's code, hex: only a contract with this code is settled through by this profile. */
  readonly wasmHash: string
  readonly functionName: string
  readonly arguments: ReadonlyArray<ArgumentName>
  readonly signed: ReadonlyArray<ArgumentName>
  /** How the allowance ends: with the call, as the payer chose, or only by its last ledger. */
  readonly revokes: "always" | "as signed" | "never"
  /** The last ledger of the allowance of zero that ends the other: the deadline's, or none. */
  readonly revokedUntil: "deadline" | "zero"
  /** Whether a settlement of zero opens an allowance too. */
  readonly zeroApproves: boolean
  /** Whether the last second of the window still counts. */
  readonly lastSecondCounts: boolean
  /**
   * Whether the draft bounds a payment itself: sponsored fees and the contract in both copies of the terms, a window
   * within the timeout, and one last ledger for allowance and signature, without our tolerance.
   */
  readonly boundsTerms: boolean
  /** The fields of the contract's event; undefined: it emits none. */
  readonly stated: ((event: ContractEvent) => StatedEvent) | undefined
}

export const tollkeeper: Profile = {
  name: "tollkeeper",
  wasmHash,
  functionName: "settle",
  arguments: ["payer", "payTo", "token", "max", "validAfter", "deadline", "facilitator", "settlementId", "actual"],
  signed: ["payer", "payTo", "token", "max", "validAfter", "deadline", "facilitator", "settlementId"],
  revokes: "always",
  revokedUntil: "deadline",
  zeroApproves: false,
  lastSecondCounts: true,
  boundsTerms: false,
  stated: ({ body }) => {
    const fields = fieldsOf(body.v0.data)
    const [, payer, payTo, token] = body.v0.topics.map(addressOf)
    return { payer, payTo, token, max: i128Of(fields?.get("max")), actual: i128Of(fields?.get("actual")) }
  }
}

export const stateless: Profile = {
  name: "stateless-salt",
  wasmHash: draftWasm.stateless.hash,
  functionName: "settle",
  arguments: [
    "payer",
    "payTo",
    "token",
    "max",
    "beginsAt",
    "endsAt",
    "deadline",
    "settlementId",
    "autoRevoke",
    "actual"
  ],
  signed: ["payTo", "token", "max", "beginsAt", "endsAt", "deadline", "settlementId", "autoRevoke"],
  revokes: "as signed",
  revokedUntil: "zero",
  zeroApproves: true,
  lastSecondCounts: false,
  boundsTerms: true,
  stated: undefined
}

const stateful: Profile = {
  name: "stateful-nonce",
  wasmHash: draftWasm.stateful.hash,
  functionName: "settle_upto",
  arguments: [
    "token",
    "payer",
    "payTo",
    "facilitator",
    "max",
    "actual",
    "settlementId",
    "beginsAt",
    "endsAt",
    "deadline"
  ],
  signed: ["token", "payTo", "facilitator", "max", "settlementId", "beginsAt", "endsAt"],
  revokes: "never",
  revokedUntil: "deadline",
  zeroApproves: true,
  lastSecondCounts: true,
  boundsTerms: false,
  stated: ({ body }) => {
    const fields = fieldsOf(body.v0.data)
    const [, token, payer, payTo] = body.v0.topics.map(addressOf)
    return { payer, payTo, token, max: i128Of(fields?.get("max_amount")), actual: i128Of(fields?.get("actual_amount")) }
  }
}

const seven: Profile = {
  name: "seven-arguments",
  wasmHash: draftWasm.seven.hash,
  functionName: "settle",
  arguments: ["token", "payer", "payTo", "max", "deadline", "settlementId", "actual"],
  signed: ["token", "payer", "payTo", "max", "deadline", "settlementId"],
  revokes: "never",
  revokedUntil: "deadline",
  zeroApproves: true,
  lastSecondCounts: true,
  boundsTerms: false,
  stated: ({ body }) => {
    const [payer, payTo, max, actual] = vecOf(body.v0.data) ?? []
    return { payer: addressOf(payer), payTo: addressOf(payTo), max: i128Of(max), actual: i128Of(actual) }
  }
}

/** The profiles that a network's settings may offer in addition to ours. */
export const drafts: ReadonlyArray<Profile> = [stateless, stateful, seven]

const profiles: ReadonlyArray<Profile> = [tollkeeper, ...drafts]

/** A settlement contract of this network with its profile. */
export interface OfferedContract {
  readonly contract: string
  readonly profile: Profile
}

/** The profile that a contract's code is registered under. */
export const registeredAs = (codeHash: string | undefined): Profile | undefined =>
  profiles.find(({ wasmHash: known }) => known === codeHash)

/** Position of an argument in the call; -1 if the profile does not have the argument. */
export const positionIn = ({ arguments: names }: Profile, name: ArgumentName): number => names.indexOf(name)

export const profileIn =
  (offered: ReadonlyArray<OfferedContract>) =>
  (address: string): Profile =>
    offered.find(({ contract }) => contract === address)?.profile ?? tollkeeper

/** The contracts of this network, and the seller's terms. */
interface RequestedTerms {
  readonly offered: ReadonlyArray<OfferedContract>
  readonly terms: Pick<Terms, "extra">
}

/** The profile's name in terms: ours, its successor's (`uptoProfile`), or by the member that only the draft has. */
const profileNamed = ({ profile, settlementContract, uptoProfile }: Terms["extra"]): unknown => {
  if (profile !== undefined) return profile
  if (uptoProfile !== undefined) return uptoProfile === "stateless" ? stateless.name : uptoProfile
  return settlementContract === undefined ? undefined : stateless.name
}

/** The profile that the seller's terms name; ours without one. */
export const askedFor = ({ offered, terms }: RequestedTerms): OfferedContract | undefined => {
  const name = profileNamed(terms.extra) ?? offered[0]?.profile.name
  return offered.find(({ profile }) => profile.name === name)
}
