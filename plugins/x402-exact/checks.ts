// The rules of an `exact` payment as a list of named checks, in the order in which they run: structure, terms, safety,
// authorization, signatures, expiry. They only need the payload, the terms and the ledger's time; no RPC. Each returns
// the reason and the message of its refusal, or undefined. Sources: the x402 `exact` scheme for Stellar and rules 1 and
// 3.
import { StrKey } from "@stellar/stellar-sdk/base"
import { verifyEd25519 } from "../../kernel/ledger/Ed25519.ts"
import { latestExpiry } from "../../kernel/ledger/latestExpiry.ts"
import type { LedgerTime } from "../../kernel/ledger/LedgerClock.ts"
import type { Terms } from "../../kernel/payment/Payment.ts"
import type { Crypto } from "../../kernel/platform/Crypto.ts"
import { memoize } from "../../kernel/cache/memoize.ts"
import { addressesIn, addressText } from "../../kernel/stellar/Address.ts"
import {
  type AuthEntry,
  authorizedCall,
  credentialsOf,
  keySignatures,
  signedPayload
} from "../../kernel/stellar/AuthEntry.ts"
import { type ContractCall, encodeInvoked } from "../../kernel/stellar/ContractCall.ts"
import { sameBytes } from "../../kernel/stellar/Envelope.ts"
import { isVoid } from "../../kernel/stellar/Value.ts"
import type { ExactPayload, TransferArgs } from "./ExactWire.ts"
import type { ExactReason } from "./refusals.ts"

export interface Subject {
  readonly terms: Terms
  readonly payload: ExactPayload
  /** Absent when the transaction is not one contract call. */
  readonly call: ContractCall | undefined
  readonly transfer: TransferArgs
  readonly time: LedgerTime
  readonly networkId: Uint8Array
  readonly isOurs: (address: string) => boolean
  readonly paymentMax: bigint
  readonly expiryToleranceLedgers: number
  readonly crypto: Crypto["Service"]
}

/** A refusal's reason and message, or nothing. */
export type CheckError = readonly [reason: ExactReason, message: string] | undefined

export interface Check {
  readonly name: string
  readonly find: (subject: Subject) => CheckError
}

/** Ledgers that must remain for a transaction to be built, sent and included. */
const ledgersLeftMin = 2

/** Capacity of the cache of payers' forms: payers come back. */
const payersMax = 4_096
const isAccount = memoize({ name: "payer-kinds", capacity: payersMax }, (address) =>
  StrKey.isValidEd25519PublicKey(address)
)

/** Checks an authorization's last ledger as of another. */
export const checkExpiry = (expiresLedger: number, latestLedger: number): CheckError =>
  expiresLedger < latestLedger + ledgersLeftMin
    ? ["invalid_ledger_auth_expired", `the authorization ends before ledger ${latestLedger + ledgersLeftMin}`]
    : undefined

const entriesOf = ({ call }: Subject): ReadonlyArray<AuthEntry> => call?.auth ?? []

const everyEntry = (subject: Subject, error: (entry: AuthEntry) => CheckError): CheckError => {
  for (const entry of entriesOf(subject)) {
    const found = error(entry)
    if (found !== undefined) return found
  }
  return undefined
}

const hasSubInvocations = (entry: AuthEntry): boolean => entry.rootInvocation.subInvocations.length > 0

const credentialAddress = (entry: AuthEntry): string | undefined => {
  const credentials = credentialsOf(entry)
  return credentials === undefined
    ? undefined
    : (addressText(credentials.address) ?? [...addressesIn(credentials.address)][0])
}

const named = (finds: Readonly<Record<string, Check["find"]>>): ReadonlyArray<Check> =>
  Object.entries(finds).map(([name, find]) => ({ name, find }))

export const checks: ReadonlyArray<Check> = named({
  "one contract call and nothing else": ({ call }) =>
    call === undefined
      ? ["invalid_exact_ledger_payload_wrong_operation", "the transaction is not exactly one contract call"]
      : undefined,
  "no source, signature or condition of ours": ({ call, isOurs, payload }) => {
    const source = call?.operation.sourceAccount
    const sources = [payload.source, ...(source == null ? [] : addressesIn(source))]
    return sources.some(isOurs)
      ? ["invalid_exact_ledger_payload_unsafe_tx_or_op_source", "an account of the facilitator is a source"]
      : undefined
  },
  "the contract is the asset": ({ call, terms }) =>
    call?.contract !== terms.asset
      ? ["invalid_exact_ledger_payload_wrong_asset", "the contract called is not the asset"]
      : undefined,
  "transfer with three arguments": ({ call }) =>
    call?.functionName !== "transfer" || call.args.length !== 3
      ? ["invalid_exact_ledger_payload_wrong_function_name", "the call is not transfer(from, to, amount)"]
      : undefined,
  "plain addresses": ({ terms, transfer }) =>
    transfer.muxed || terms.payTo.startsWith("M")
      ? ["invalid_exact_ledger_payload_muxed_address", "muxed addresses are not supported"]
      : undefined,
  "the facilitator is not the payer": ({ isOurs, transfer }) =>
    transfer.from !== undefined && isOurs(transfer.from)
      ? ["invalid_exact_ledger_payload_facilitator_is_payer", "an account of the facilitator is the payer"]
      : undefined,
  "the facilitator receives nothing": ({ isOurs, terms, transfer }) =>
    isOurs(terms.payTo) || (transfer.to !== undefined && isOurs(transfer.to))
      ? ["invalid_exact_ledger_payload_facilitator_is_recipient", "an account of the facilitator is the recipient"]
      : undefined,
  "the recipient is payTo": ({ terms, transfer }) =>
    transfer.to === undefined || transfer.to !== terms.payTo
      ? ["invalid_exact_ledger_payload_wrong_recipient", "the recipient is not payTo"]
      : undefined,
  "a payer": ({ transfer }) =>
    transfer.from === undefined
      ? ["invalid_exact_ledger_payload_missing_payer_signature", "the payer is no address"]
      : undefined,
  "payer and recipient differ": ({ terms, transfer }) =>
    transfer.from === terms.payTo
      ? ["invalid_exact_ledger_payload_self_payment", "payer and recipient are the same"]
      : undefined,
  "the amount is the required one, above zero, within the asset's bound": ({ paymentMax, terms, transfer }) => {
    const required = terms.amount._tag === "Some" ? terms.amount.value : undefined
    if (required === undefined || required <= 0n || transfer.amount !== required) {
      return ["invalid_exact_ledger_payload_wrong_amount", "the amount is not the required one, or not above zero"]
    }
    return required > paymentMax
      ? ["invalid_exact_ledger_payload_wrong_amount", "the amount is above this asset's largest payment"]
      : undefined
  },
  "authorized by entries": (subject) =>
    entriesOf(subject).length === 0
      ? ["invalid_exact_ledger_payload_no_auth_entries", "there is no authorization entry"]
      : undefined,
  "address credentials only": (subject) =>
    everyEntry(subject, (entry) =>
      credentialsOf(entry) === undefined
        ? ["invalid_exact_ledger_payload_unsupported_credential_type", "credentials of this kind are not accepted"]
        : undefined
    ),
  "no account of ours in any authorization": (subject) =>
    everyEntry(subject, (entry) =>
      [...addressesIn(entry)].some(subject.isOurs)
        ? [
            "invalid_exact_ledger_payload_facilitator_in_auth",
            "an account of the facilitator appears in an authorization"
          ]
        : undefined
    ),
  "no sub-invocations": (subject) =>
    everyEntry(subject, (entry) =>
      hasSubInvocations(entry)
        ? ["invalid_exact_ledger_payload_has_subinvocations", "the authorization covers further calls"]
        : undefined
    ),
  "exactly the payer authorizes, once": (subject) => {
    const [entry, ...others] = entriesOf(subject)
    if (entry === undefined || credentialAddress(entry) !== subject.transfer.from) {
      return ["invalid_exact_ledger_payload_missing_payer_signature", "the authorization is not the payer's"]
    }
    return others.length > 0
      ? ["invalid_exact_ledger_payload_unexpected_pending_signatures", "there are further authorization entries"]
      : undefined
  },
  "the payer authorizes this very call": ({ call }) => {
    const [entry] = call?.auth ?? []
    const authorized = entry === undefined ? undefined : authorizedCall(entry.rootInvocation)
    const same =
      authorized !== undefined &&
      call !== undefined &&
      sameBytes(encodeInvoked(authorized), encodeInvoked(call.invoked))
    return same
      ? undefined
      : ["invalid_exact_ledger_payload_missing_payer_signature", "the authorization is for another call"]
  },
  signed: (subject) =>
    everyEntry(subject, (entry) =>
      isVoid(credentialsOf(entry)?.signature)
        ? ["invalid_exact_ledger_payload_missing_payer_signature", "the authorization is not signed"]
        : undefined
    ),
  "not expired": (subject) =>
    everyEntry(subject, (entry) =>
      checkExpiry(credentialsOf(entry)?.signatureExpirationLedger ?? 0, subject.time.sequence)
    ),
  "not too far in the future": (subject) => {
    const latest = latestExpiry(subject.time, subject.terms.maxTimeoutSeconds, subject.expiryToleranceLedgers)
    return everyEntry(subject, (entry) => {
      const ends = credentialsOf(entry)?.signatureExpirationLedger ?? 0
      return ends > latest
        ? [
            "invalid_exact_ledger_signature_expiration_too_far",
            `the authorization ends at ledger ${ends}, beyond ledger ${latest}`
          ]
        : undefined
    })
  },
  "signatures by listed keys verify": (subject) =>
    everyEntry(subject, (entry) => {
      const credentials = credentialsOf(entry)
      const payload = signedPayload(subject.crypto, subject.networkId, entry)
      // A contract account's signature is its own contract's business: the simulation verifies it.
      if (credentials === undefined || payload === undefined || !isAccount(subject.transfer.from ?? ""))
        return undefined
      const signatures = keySignatures(credentials.signature)
      const valid =
        signatures !== undefined &&
        signatures.length > 0 &&
        signatures.every(({ key, signature }) => verifyEd25519(subject.crypto, key, payload, signature))
      return valid ? undefined : ["invalid_exact_ledger_payload_invalid_signature", "a signature does not verify"]
    })
})

const ofSignatures = new Set(["signed", "signatures by listed keys verify"])

/** Those that hold before anything is signed. */
export const unsignedChecks: ReadonlyArray<Check> = checks.filter(({ name }) => !ofSignatures.has(name))

/** The first failure, by the first check that finds one; `among` is all of them, in order. */
export const firstFailure = (subject: Subject, among: ReadonlyArray<Check> = checks): CheckError => {
  for (const check of among) {
    const error = check.find(subject)
    if (error !== undefined) return error
  }
  return undefined
}
