// How a buyer of each profile of `upto` builds a call: the sent arguments, the signed ones among them, and the
// allowances below the call. Written from the drafts' interfaces and not from the plugin's own table, so that the two
// can differ.
import { Address, nativeToScVal, xdr } from "@stellar/stellar-sdk"

export type UptoProfile = "tollkeeper" | "stateless-salt" | "stateful-nonce" | "seven-arguments"
export const draftProfiles = ["stateless-salt", "stateful-nonce", "seven-arguments"] as const

/** The terms of a payment, in any order. Seconds are in the ledger's clock. */
export interface UptoTerms {
  readonly payer: string
  readonly payTo: string
  readonly token: string
  readonly max: bigint
  readonly validAfter: number
  readonly deadline: number
  readonly beginsAt: bigint
  readonly endsAt: bigint
  readonly facilitator: string
  readonly id: Uint8Array
  readonly autoRevoke: boolean
}

export interface Layout {
  readonly functionName: string
  readonly signed: ReadonlyArray<xdr.ScVal>
  /** The call's arguments, from the signed ones and the amount. */
  readonly sent: (signed: ReadonlyArray<xdr.ScVal>, amount: bigint) => ReadonlyArray<xdr.ScVal>
  /** Amount and last ledger of each allowance below the call. */
  readonly approvals: ReadonlyArray<readonly [amount: bigint, lastLedger: number]>
}

const u32 = (value: number) => xdr.ScVal.scvU32(value)
const u64 = (value: bigint) => nativeToScVal(value, { type: "u64" })
const i128 = (value: bigint) => nativeToScVal(value, { type: "i128" })
const address = (value: string) => new Address(value).toScVal()
const bytes = (value: Uint8Array) => xdr.ScVal.scvBytes(value)

export const layoutOf = (profile: UptoProfile, terms: UptoTerms): Layout => {
  const { autoRevoke, beginsAt, deadline, endsAt, facilitator, id, max, payTo, payer, token, validAfter } = terms
  switch (profile) {
    case "tollkeeper":
      return {
        functionName: "settle",
        signed: [
          ...[payer, payTo, token].map(address),
          i128(max),
          u32(validAfter),
          u32(deadline),
          address(facilitator),
          bytes(id)
        ],
        sent: (signed, amount) => [...signed, i128(amount)],
        approvals: [
          [max, deadline],
          [0n, deadline]
        ]
      }
    case "stateless-salt":
      return {
        functionName: "settle",
        signed: [
          ...[payTo, token].map(address),
          i128(max),
          u64(beginsAt),
          u64(endsAt),
          u32(deadline),
          bytes(id),
          xdr.ScVal.scvBool(autoRevoke)
        ],
        sent: (signed, amount) => [address(payer), ...signed, i128(amount)],
        approvals: autoRevoke
          ? [
              [max, deadline],
              [0n, 0]
            ]
          : [[max, deadline]]
      }
    case "stateful-nonce":
      return {
        functionName: "settle_upto",
        signed: [...[token, payTo, facilitator].map(address), i128(max), bytes(id), u64(beginsAt), u64(endsAt)],
        sent: ([of, to, by, most, nonce, begins, ends], amount) => [
          of!,
          address(payer),
          to!,
          by!,
          most!,
          i128(amount),
          nonce!,
          begins!,
          ends!,
          u32(deadline)
        ],
        approvals: [[max, deadline]]
      }
    case "seven-arguments":
      return {
        functionName: "settle",
        signed: [...[token, payer, payTo].map(address), i128(max), u32(deadline), bytes(id)],
        sent: (signed, amount) => [...signed, i128(amount)],
        approvals: [[max, deadline]]
      }
  }
}
