// The drafts' profiles and ours, over HTTP on the embedded ledger: each is verified by its maximum and settled by
// actual use, refuses the same payments as ours, and the audit matches the ledger for all of them.
import { assert, describe, it } from "@effect/vitest"
import { hash, Keypair, nativeToScVal, xdr } from "@stellar/stellar-sdk"
import { Effect } from "effect"
import { readFileSync } from "node:fs"
import { compare } from "../../../kernel/audit/compare.ts"
import { draftWasm } from "../../../plugins/x402-upto/contract/drafts/draftWasm.ts"
import { drafts } from "../../../plugins/x402-upto/profiles.ts"
import { callOf, invocationOf } from "../../../runtime/redteam/authorization.ts"
import { contractAddressOf, deployContract } from "../../support/deployContract.ts"
import { awaitTransaction, type RpcCall } from "../../../runtime/redteam/rpcCall.ts"
import { readBooks } from "../../support/readBooks.ts"
import type { UptoOptions, UptoTamper } from "../../support/uptoBuyer.ts"
import { draftProfiles, type UptoProfile } from "../../support/uptoProfiles.ts"
import { max, startUpto, type UptoFacilitator } from "./world.ts"

const deployer = Keypair.fromRawEd25519Seed(hash(Buffer.from("tollkeeper upto drafts")))
const modules = { "stateless-salt": "stateless", "stateful-nonce": "stateful", "seven-arguments": "seven" } as const
type DraftProfile = keyof typeof modules
const saltOf = (profile: DraftProfile) => new Uint8Array(32).fill(draftProfiles.indexOf(profile) + 1)
const contractOf = (profile: DraftProfile) => contractAddressOf(deployer, saltOf(profile))
const native = "CDLZFC3SYJYDZT7K67VZ75HPJVIEUVNIXF47ZG2FB2RMQQVU2HHGCYSC"
const stranger = Keypair.random()

const offering = (of: (profile: DraftProfile) => string = contractOf) =>
  `networks.ledger:testnet.upto_profiles={${draftProfiles.map((profile) => `${profile}: ${of(profile)}`).join()}}`

const deployed = (facilitator: UptoFacilitator, profile: DraftProfile) =>
  Effect.promise(() =>
    deployContract(
      facilitator.ledgerUrl,
      deployer,
      Buffer.from(draftWasm[modules[profile]].base64, "base64"),
      saltOf(profile)
    )
  )

const started = Effect.gen(function* () {
  const facilitator = yield* startUpto({ set: [offering()] })
  for (const profile of draftProfiles) yield* deployed(facilitator, profile)
  return facilitator
})

const pay = (
  facilitator: UptoFacilitator,
  profile: DraftProfile,
  options: Partial<UptoOptions> & Pick<UptoOptions, "payer" | "payTo">
) => facilitator.upto({ profile, contract: contractOf(profile), ...options })

/** Declared instructions and the fee charged, stroops, of a transaction on the ledger. */
const costOf = async (rpc: RpcCall, hash: string): Promise<ReadonlyArray<number>> => {
  const found = await awaitTransaction(rpc, hash)
  const envelope: any = xdr.TransactionEnvelope.schema.decode(Buffer.from(found.envelopeXdr, "base64"))
  const inner = envelope.feeBump?.tx.innerTx.v1 ?? envelope.v1
  const result: any = xdr.TransactionResult.schema.decode(Buffer.from(found.resultXdr, "base64"))
  return [Number(inner.tx.ext.sorobanData.resources.instructions), Number(result.feeCharged)]
}

const grouped = (value: number): string => String(value).replace(/\B(?=(\d{3})+$)/g, " ")

interface Breach {
  readonly what: string
  readonly reason: string
  readonly tamper?: (facilitator: UptoFacilitator) => UptoTamper
  readonly options?: (facilitator: UptoFacilitator, profile: DraftProfile) => Partial<UptoOptions>
  readonly of?: ReadonlyArray<DraftProfile>
}

const allowanceOf = (amount: bigint) => (honest: ReadonlyArray<xdr.SorobanAuthorizedInvocation>) =>
  honest.map((one, index) => {
    if (index > 0) return one
    const wire: any = one.toXdrObject()
    const { contractFn } = wire.function
    const args = [
      ...contractFn.args.slice(0, 2),
      nativeToScVal(amount, { type: "i128" }).toXdrObject(),
      contractFn.args[3]
    ]
    return xdr.SorobanAuthorizedInvocation.fromXdrObject({
      ...wire,
      function: { ...wire.function, contractFn: { ...contractFn, args } }
    })
  })

const breaches: ReadonlyArray<Breach> = [
  {
    what: "another profile's contract",
    options: (facilitator) => ({ contract: facilitator.contract }),
    reason: "payload_wrong_contract"
  },
  {
    what: "a contract of the drafts without its profile",
    options: () => ({ profile: "tollkeeper" as UptoProfile }),
    reason: "payload_wrong_contract"
  },
  { what: "another function", tamper: () => ({ functionName: "settle_all" }), reason: "payload_wrong_function_name" },
  {
    what: "an argument of another type",
    tamper: () => ({ args: (a) => a.map((one, i) => (i === 3 ? xdr.ScVal.scvVoid() : one)) }),
    reason: "payload_wrong_arguments",
    of: ["seven-arguments", "stateful-nonce"]
  },
  {
    what: "a flag of another type",
    tamper: () => ({ args: (a) => a.with(7, xdr.ScVal.scvVoid()) }),
    reason: "payload_wrong_arguments",
    of: ["stateless-salt"]
  },
  { what: "another token", tamper: () => ({ token: native }), reason: "payload_wrong_asset" },
  { what: "another recipient", tamper: () => ({ payTo: stranger.publicKey() }), reason: "payload_wrong_recipient" },
  { what: "a larger maximum", tamper: () => ({ max: max + 1n }), reason: "payload_invalid_max_amount" },
  {
    what: "another facilitator",
    tamper: () => ({ facilitator: stranger.publicKey() }),
    reason: "payload_wrong_facilitator",
    of: ["stateful-nonce"]
  },
  {
    what: "the sponsor as recipient",
    options: ({ sponsor }) => ({ payTo: sponsor }),
    reason: "payload_facilitator_is_recipient"
  },
  { what: "the payer as recipient", reason: "payload_self_payment" },
  {
    what: "an authorization of another call",
    tamper: () => ({ signedArgs: (args) => args.slice(0, -1) }),
    reason: "payload_missing_payer_signature"
  },
  {
    what: "a larger allowance",
    tamper: () => ({ subInvocations: allowanceOf(max + 1n) }),
    reason: "payload_wrong_subinvocations"
  },
  {
    what: "a further call below",
    tamper: () => ({
      subInvocations: (honest) => [...honest, invocationOf(callOf(native, "approve", []))]
    }),
    reason: "payload_wrong_subinvocations"
  },
  {
    what: "no end of the allowance where one is signed for",
    tamper: () => ({ subInvocations: ([opened]) => [opened!] }),
    reason: "payload_wrong_subinvocations",
    of: ["stateless-salt"]
  },
  {
    what: "a stranger's authorization",
    tamper: () => ({ authAddress: stranger.publicKey() }),
    reason: "payload_missing_payer_signature"
  },
  { what: "a last ledger that has passed", tamper: () => ({ deadline: 1_000 }), reason: "settlement_expired" },
  { what: "a last ledger too far", tamper: () => ({ deadline: 100_000 }), reason: "expiration_too_far" },
  {
    what: "a window in seconds that has ended",
    tamper: () => ({ endsAt: 1_000n }),
    reason: "settlement_expired",
    of: ["stateless-salt", "stateful-nonce"]
  },
  {
    what: "a window in seconds that has not begun",
    tamper: () => ({ beginsAt: 9_000_000_000n, endsAt: 9_000_000_100n }),
    reason: "settlement_not_yet_valid",
    of: ["stateless-salt", "stateful-nonce"]
  },
  {
    what: "one bit of the signature",
    tamper: () => ({ signature: (bytes) => bytes.with(9, bytes[9]! ^ 1) }),
    reason: "account_authentication"
  }
]

describe("the profiles of upto", () => {
  it("every upto profile is tested by a buyer", () => {
    assert.deepStrictEqual(
      drafts.map(({ name }) => name),
      [...draftProfiles]
    )
  })

  it.live(
    "each upto profile is announced, verified, settled and audited [S76, S84]",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* started
        const { kinds } = (yield* facilitator.ask("/supported")).json
        const { extra } = kinds.find(({ scheme }: any) => scheme === "upto")
        assert.strictEqual(extra.profile, "tollkeeper")
        assert.deepStrictEqual(
          extra.profiles.map((one: any) => [one.profile, one.uptoContract, one.facilitatorAddress !== undefined]),
          [
            ["tollkeeper", facilitator.contract, true],
            ...draftProfiles.map((profile) => [profile, contractOf(profile), profile === "stateful-nonce"])
          ]
        )
        for (const profile of draftProfiles) {
          for (const [actual, autoRevoke] of [
            [250n, true],
            [max, true],
            [0n, true],
            [250n, false],
            [0n, false]
          ] as const) {
            const { payTo, payer } = yield* facilitator.parties(5_000n)
            const payment = yield* pay(facilitator, profile, { payer, payTo, autoRevoke })
            const verified = yield* facilitator.verify(payment.verifyBody)
            assert.deepStrictEqual([profile, verified.json], [profile, { isValid: true, payer: payer.publicKey() }])
            const settled = yield* facilitator.settle(payment.settleBody(actual))
            assert.deepStrictEqual(
              [profile, settled.json.success, settled.json.amount, settled.json.errorMessage],
              [profile, true, String(actual), undefined]
            )
            const again = yield* facilitator.settle(payment.settleBody(actual))
            assert.strictEqual(again.json.errorReason, "settle_ledger_already_settled")
            assert.strictEqual(yield* facilitator.balance(payer.publicKey()), 5_000n - actual)
            assert.strictEqual(yield* facilitator.balance(payTo), actual)
          }
        }
        const { claims, view } = yield* readBooks(facilitator)
        const audit = compare(claims, view)
        assert.deepStrictEqual([audit.mismatches, audit.settlements], [[], 15])
      }).pipe(Effect.scoped) as Effect.Effect<void>,
    240_000
  )

  it.live(
    "each upto profile refuses the same breaches, and nothing moves [S219, S273]",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* started
        const { payTo, payer } = yield* facilitator.parties(5_000n)
        for (const profile of draftProfiles) {
          for (const { of = draftProfiles, options, reason, tamper, what } of breaches) {
            if (!of.includes(profile)) continue
            const changed = what === "the payer as recipient" ? { payTo: payer.publicKey() } : { payTo }
            const payment = yield* pay(facilitator, profile, {
              payer,
              ...changed,
              ...options?.(facilitator, profile),
              ...(tamper === undefined ? {} : { tamper: tamper(facilitator) })
            })
            const verified = yield* facilitator.verify(payment.verifyBody)
            const settled = yield* facilitator.settle(payment.settleBody(250n))
            assert.deepStrictEqual(
              [profile, what, verified.json.invalidReason, settled.json.errorReason],
              [profile, what, ...Array(2).fill(`invalid_upto_ledger_${reason}`)]
            )
          }
          const over = yield* pay(facilitator, profile, { payer, payTo })
          const settled = yield* facilitator.settle(over.settleBody(max + 1n))
          assert.strictEqual(settled.json.errorReason, "invalid_upto_ledger_settlement_exceeds_amount")
        }
        assert.strictEqual(yield* facilitator.balance(payer.publicKey()), 5_000n)
      }).pipe(Effect.scoped) as Effect.Effect<void>,
    240_000
  )

  it.live(
    "each upto profile costs what the README says, within a twentieth",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* started
        const readme = readFileSync(new URL("../../../plugins/x402-upto/README.md", import.meta.url), "utf8")
        const measured: Array<readonly [profile: string, numbers: ReadonlyArray<number>]> = []
        for (const profile of ["tollkeeper", ...draftProfiles] as const) {
          const numbers: Array<number> = []
          for (const actual of [250n, 0n]) {
            const { payTo, payer } = yield* facilitator.parties(5_000n)
            const payment = yield* profile === "tollkeeper"
              ? facilitator.upto({ payer, payTo })
              : pay(facilitator, profile, { payer, payTo })
            const settled = yield* facilitator.settle(payment.settleBody(actual))
            assert.strictEqual(settled.json.success, true)
            numbers.push(...(yield* Effect.promise(() => costOf(facilitator.rpc, settled.json.transaction))))
          }
          measured.push([profile, numbers])
        }
        const rowOf = ([profile, numbers]: (typeof measured)[number]) =>
          `| \`${profile}\` | ${numbers.map(grouped).join(" | ")} |`
        yield* Effect.log(measured.map(rowOf).join("\n"))
        for (const one of measured) {
          const lines = readme.split("\n").filter((line) => line.startsWith(`| \`${one[0]}\` | `))
          const stated = (lines.at(-1) ?? "").split("|").slice(2, -1)
          const isNear = one[1].every((number, index) => {
            const said = Number(stated[index]?.replaceAll(" ", ""))
            return Math.abs(said / number - 1) < 0.05
          })
          assert.isTrue(isNear, `measured ${rowOf(one)}, the README has ${lines.at(-1)}`)
        }
      }).pipe(Effect.scoped) as Effect.Effect<void>,
    240_000
  )

  it.live(
    "a contract with unregistered code is refused for its profile",
    () =>
      Effect.gen(function* () {
        const swapped = (profile: DraftProfile) =>
          contractOf(profile === "seven-arguments" ? "stateless-salt" : "seven-arguments")
        const facilitator = yield* startUpto({ set: [offering(swapped)] })
        yield* deployed(facilitator, "seven-arguments")
        const { payTo, payer } = yield* facilitator.parties()
        // One is another profile's code, the other is not on the ledger.
        for (const profile of ["stateless-salt", "seven-arguments"] as const) {
          const payment = yield* pay(facilitator, profile, { payer, payTo, contract: swapped(profile) })
          const verified = yield* facilitator.verify(payment.verifyBody)
          assert.strictEqual(verified.json.invalidReason, "invalid_upto_ledger_payload_wrong_contract")
        }
      }).pipe(Effect.scoped) as Effect.Effect<void>
  )
})
