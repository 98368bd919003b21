// The stateless draft, clause by clause: payments that its text accepts are valid and settle, and payments that it
// refuses are refused.
import { assert, describe, it } from "@effect/vitest"
import { hash, Keypair } from "@stellar/stellar-sdk"
import { Effect } from "effect"
import { latestExpiry } from "../../../kernel/ledger/latestExpiry.ts"
import type { AuthEntry } from "../../../kernel/stellar/AuthEntry.ts"
import { credentialsKind } from "../../../kernel/stellar/kinds.ts"
import { checks, type Subject } from "../../../plugins/x402-upto/checks.ts"
import { draftWasm } from "../../../plugins/x402-upto/contract/drafts/draftWasm.ts"
import { type Profile, stateless, tollkeeper } from "../../../plugins/x402-upto/profiles.ts"
import type { SettleCall } from "../../../plugins/x402-upto/UptoWire.ts"
import { contractAddressOf, deployContract } from "../../support/deployContract.ts"
import type { UptoOptions, UptoPayment } from "../../support/uptoBuyer.ts"
import { startUpto, type UptoFacilitator } from "./world.ts"

const deployer = Keypair.fromRawEd25519Seed(hash(Buffer.from("tollkeeper upto drafts")))
const contract = contractAddressOf(deployer, new Uint8Array(32).fill(1))
const tenYears = 315_360_000n

const started = Effect.gen(function* () {
  const facilitator = yield* startUpto({
    closeMillis: 1_000,
    set: [`networks.ledger:testnet.upto_profiles={stateless-salt: ${contract}}`]
  })
  const code = Buffer.from(draftWasm.stateless.base64, "base64")
  yield* Effect.promise(() => deployContract(facilitator.ledgerUrl, deployer, code, new Uint8Array(32).fill(1)))
  return facilitator
})

interface Row {
  readonly clause: string
  readonly options?: (now: bigint, ledger: number) => Partial<UptoOptions>
  /** Of both bodies; the reason is then the refusal's, without its prefix. */
  readonly change?: (body: any) => void
  readonly reason?: string
}

/** Terms in the draft's form, without our names. */
const draftTerms = { profile: undefined, uptoContract: undefined, settlementContract: contract }
const changed = (body: any, extra: Record<string, unknown>, which: "accepted" | "required" | "both") => {
  const both = [body.paymentPayload.accepted, body.paymentRequirements]
  for (const one of which === "both" ? both : [both[which === "accepted" ? 0 : 1]]) Object.assign(one.extra, extra)
}

const rows: ReadonlyArray<Row> = [
  { clause: "terms of settlementContract alone", options: () => ({ extra: draftTerms }) },
  { clause: "terms of uptoProfile stateless", options: () => ({ extra: { ...draftTerms, uptoProfile: "stateless" } }) },
  { clause: "a payload of fields", options: () => ({ extra: draftTerms, asFields: true }) },
  { clause: "fields without revocation", options: () => ({ asFields: true, autoRevoke: false }) },
  {
    clause: "another uptoProfile",
    options: () => ({ extra: { ...draftTerms, uptoProfile: "contract" } }),
    reason: "payload_wrong_contract"
  },
  ...(["accepted", "required"] as const).flatMap((which): ReadonlyArray<Row> => [
    {
      clause: `another settlementContract, ${which}`,
      change: (body) => changed(body, { settlementContract: deployer.publicKey() }, which),
      reason: "payload_wrong_contract"
    },
    {
      clause: `areFeesSponsored false, ${which}`,
      change: (body) => changed(body, { areFeesSponsored: false }, which),
      reason: "fees_not_sponsored"
    }
  ]),
  {
    clause: "a deadline ten years off",
    options: (now) => ({ tamper: { endsAt: now + tenYears } }),
    reason: "expiration_too_far"
  },
  {
    clause: "a window longer than the timeout",
    options: (now) => ({ tamper: { beginsAt: now - 100n } }),
    reason: "expiration_too_far"
  },
  {
    clause: "a signature that ends later",
    options: (_, ledger) => ({ tamper: { deadline: ledger + 50, expirationLedger: ledger + 51 } }),
    reason: "payload_wrong_expiration"
  },
  {
    clause: "a signature that ends earlier",
    options: (_, ledger) => ({ tamper: { deadline: ledger + 51, expirationLedger: ledger + 50 } }),
    reason: "payload_wrong_expiration"
  },
  {
    clause: "fields without salt",
    options: () => ({ asFields: true }),
    change: ({ paymentPayload }) => delete paymentPayload.payload.salt,
    reason: "payload_malformed"
  },
  {
    clause: "fields of another maximum",
    options: () => ({ asFields: true }),
    change: ({ paymentPayload }) => (paymentPayload.payload.maxAmount = "999"),
    reason: "payload_invalid_max_amount"
  },
  {
    clause: "fields of another payer",
    options: () => ({ asFields: true }),
    change: ({ paymentPayload }) => (paymentPayload.payload.from = deployer.publicKey()),
    reason: "payload_missing_payer_signature"
  },
  {
    clause: "no entry among fields",
    options: () => ({ asFields: true }),
    change: ({ paymentPayload }) => (paymentPayload.payload.authEntries = []),
    reason: "payload_no_auth_entries"
  },
  {
    clause: "two entries among fields",
    options: () => ({ asFields: true, tamper: { authEntries: ([entry]) => [entry!, entry!] } }),
    reason: "payload_unexpected_pending_signatures"
  },
  {
    clause: "an entry that is none",
    options: () => ({ asFields: true }),
    change: ({ paymentPayload }) => (paymentPayload.payload.authEntries = ["AAAA"]),
    reason: "payload_malformed"
  }
]

const expectClause = Effect.fnUntraced(function* (facilitator: UptoFacilitator, row: Row) {
  const { payTo, payer } = yield* facilitator.parties(5_000n)
  const { closeTime, sequence } = yield* Effect.promise(() => facilitator.rpc("getLatestLedger"))
  const payment: UptoPayment = yield* facilitator.upto({
    profile: "stateless-salt",
    contract,
    payer,
    payTo,
    secondsPerLedger: 5,
    ...row.options?.(BigInt(closeTime), sequence)
  })
  const bodyOf = (body: any) => {
    const copy = structuredClone(body)
    row.change?.(copy)
    return copy
  }
  const verified = yield* facilitator.verify(bodyOf(payment.verifyBody))
  const settled = yield* facilitator.settle(bodyOf(payment.settleBody(250n)))
  assert.deepStrictEqual(
    [row.clause, verified.json.invalidReason, settled.json.errorReason],
    [row.clause, ...Array(2).fill(row.reason && `invalid_upto_ledger_${row.reason}`)]
  )
  assert.strictEqual(yield* facilitator.balance(payTo), row.reason === undefined ? 250n : 0n)
})

describe("the stateless draft of upto", () => {
  it("bounds the last ledger without the tolerance of other profiles", () => {
    const check = checks.find(({ name }) => name === "not too far in the future")!
    const subject = {
      time: { sequence: 1_000, fastestSecondsPerLedger: 5 },
      accepted: { maxTimeoutSeconds: 60 },
      expiryToleranceLedgers: 4
    } as unknown as Subject
    const entryOf = (signatureExpirationLedger: number) =>
      ({
        credentials: { type: credentialsKind.address, address: { signatureExpirationLedger } }
      }) as unknown as AuthEntry
    const reasonAt = (profile: Profile, deadline: number) => {
      const call = { profile, args: { deadline }, auth: [entryOf(deadline)] } as unknown as SettleCall
      return check.find(subject, call, call.args)?.[0]
    }
    const last = latestExpiry(subject.time, 60, 0)
    const tooFar = "invalid_upto_ledger_expiration_too_far"
    assert.deepStrictEqual(
      [last, last + 1, last + 4].map((at) => reasonAt(stateless, at)),
      [undefined, tooFar, tooFar]
    )
    assert.deepStrictEqual(
      [last + 4, last + 5].map((at) => reasonAt(tollkeeper, at)),
      [undefined, tooFar]
    )
  })

  it.live(
    "is followed clause by clause",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* started
        const { kinds } = (yield* facilitator.ask("/supported")).json
        const { profiles } = kinds.find(({ scheme }: any) => scheme === "upto").extra
        assert.strictEqual(profiles[1].settlementContract, contract)
        for (const row of rows) yield* expectClause(facilitator, row)
      }).pipe(Effect.scoped) as Effect.Effect<void>,
    240_000
  )
})
