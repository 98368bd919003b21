// The classic operations: their effects, and each of their refusals.
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { Asset, type Keypair, MuxedAccount, Account, Operation, scValToNative, xdr } from "@stellar/stellar-sdk"
import { LocalLedger } from "../../../../plugins/ledger-local/LocalLedger.ts"
import {
  account,
  apply,
  fund,
  keypair,
  ledgerLayer,
  operationCode,
  transaction,
  usdcAdmin,
  usdcAsset
} from "../support.ts"
import { USDC_ISSUER } from "../../../../plugins/ledger-local/node/accounts.ts"

const test = (
  name: string,
  run: Effect.Effect<void, never, LocalLedger | import("../../../../kernel/platform/Crypto.ts").Crypto>
) => it.effect(name, () => run.pipe(Effect.provide(ledgerLayer())))

/** The inner code of a transaction of one operation. */
const code = Effect.fnUntraced(function* (
  source: Keypair,
  operation: xdr.Operation,
  signers: ReadonlyArray<Keypair> = [source]
) {
  const done = yield* apply(yield* transaction(source, [operation], { signers }))
  return operationCode(done.result) ?? done.code
})

const trustLine = Effect.fnUntraced(function* (owner: string, asset: Asset) {
  const ledger = yield* LocalLedger
  const key = xdr.LedgerKey.trustline(
    new xdr.LedgerKeyTrustLine({
      accountId: (yield* account(owner))!.accountId,
      asset: asset.toTrustLineXdrObject()
    })
  )
  const { entries } = yield* ledger.call("getLedgerEntries", { keys: [key.toXdr("base64")] })
  return entries.length === 0
    ? undefined
    : (xdr.LedgerEntryData.fromXdr(entries[0].xdr, "base64").value as xdr.TrustLineEntry)
})

const events = (meta: xdr.TransactionMeta | undefined) =>
  ((meta?.value as any)?.operations?.[0]?.events ?? []).map((event: any) => [
    ...event.body.v0.topics.map(scValToNative),
    scValToNative(event.body.v0.data)
  ])

describe("CreateAccount", () => {
  test(
    "CreateAccount derives the sequence from the ledger; refuses existing, underfunded, malformed",
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      const payer = yield* fund("payer")
      const fresh = keypair("fresh").publicKey()
      const create = (destination: string, startingBalance: string) =>
        Operation.createAccount({ destination, startingBalance })
      expect(yield* code(payer, create(fresh, "2"))).toBe("createAccountSuccess")
      const created = (yield* account(fresh))!
      expect(created.balance).toBe(2_0000000n)
      expect(created.seqNum).toBe(BigInt((yield* ledger.call("getLatestLedger")).sequence) << 32n)
      expect(yield* code(payer, create(fresh, "2"))).toBe("createAccountAlreadyExist")
      expect(yield* code(payer, create(keypair("poor").publicKey(), "0.9999999"))).toBe("createAccountLowReserve")
      expect(yield* code(payer, create(keypair("rich").publicKey(), "20000"))).toBe("createAccountUnderfunded")
      expect(yield* code(payer, create(payer.publicKey(), "2"))).toBe("createAccountMalformed")
    })
  )
})

describe("Payment", () => {
  test(
    "Payment moves native and issued assets, separates mint from burn, carries muxed ids",
    Effect.gen(function* () {
      const [buyer, seller] = [yield* fund("buyer", 10_0000000n), yield* fund("seller", 0n)]
      const admin = yield* usdcAdmin
      const pay = (to: string, amount: string, asset = usdcAsset, source?: string) =>
        Operation.payment({ destination: to, asset, amount, ...(source === undefined ? {} : { source }) })
      const done = yield* apply(yield* transaction(buyer, [pay(seller.publicKey(), "3")]))
      expect(events(done.meta)).toEqual([
        ["transfer", buyer.publicKey(), seller.publicKey(), `USDC:${USDC_ISSUER}`, 3_0000000n]
      ])
      const burned = yield* apply(yield* transaction(buyer, [pay(USDC_ISSUER, "1")]))
      expect(events(burned.meta)).toEqual([["burn", buyer.publicKey(), `USDC:${USDC_ISSUER}`, 1_0000000n]])
      const minted = yield* apply(
        yield* transaction(buyer, [pay(seller.publicKey(), "5", usdcAsset, USDC_ISSUER)], { signers: [buyer, admin] })
      )
      expect(events(minted.meta)).toEqual([["mint", seller.publicKey(), `USDC:${USDC_ISSUER}`, 5_0000000n]])
      expect((yield* trustLine(seller.publicKey(), usdcAsset))!.balance).toBe(8_0000000n)
      const muxed = new MuxedAccount(new Account(seller.publicKey(), "0"), "77").accountId()
      const native = yield* apply(yield* transaction(buyer, [pay(muxed, "2", Asset.native())]))
      expect(events(native.meta)).toEqual([
        ["transfer", buyer.publicKey(), seller.publicKey(), "native", { amount: 2_0000000n, to_muxed_id: 77n }]
      ])
    })
  )

  test(
    "refuses in the network's order",
    Effect.gen(function* () {
      const [buyer, seller, bare] = [yield* fund("buyer", 1_0000000n), yield* fund("seller", 0n), yield* fund("bare")]
      const admin = yield* usdcAdmin
      const pay = (to: string, amount: string, asset = usdcAsset) =>
        Operation.payment({ destination: to, asset, amount })
      expect(yield* code(buyer, pay(seller.publicKey(), "2"))).toBe("paymentUnderfunded")
      expect(yield* code(buyer, pay(seller.publicKey(), "20000", Asset.native()))).toBe("paymentUnderfunded")
      expect(yield* code(bare, pay(seller.publicKey(), "1"))).toBe("paymentSrcNoTrust")
      expect(yield* code(buyer, pay(bare.publicKey(), "1"))).toBe("paymentNoTrust")
      expect(yield* code(buyer, pay(keypair("absent").publicKey(), "1"))).toBe("paymentNoDestination")
      const flags = (trustor: string, authorized: boolean) =>
        Operation.setTrustLineFlags({ trustor, asset: usdcAsset, flags: { authorized }, source: USDC_ISSUER })
      expect(yield* code(bare, flags(seller.publicKey(), false), [bare, admin])).toBe("setTrustLineFlagsCantRevoke")
      expect(yield* code(bare, Operation.setOptions({ setFlags: 2 as any, source: USDC_ISSUER }), [bare, admin])).toBe(
        "setOptionsSuccess"
      )
      expect(yield* code(bare, flags(seller.publicKey(), false), [bare, admin])).toBe("setTrustLineFlagsSuccess")
      expect(yield* code(buyer, pay(seller.publicKey(), "1"))).toBe("paymentNotAuthorized")
      expect(yield* code(bare, flags(seller.publicKey(), true), [bare, admin])).toBe("setTrustLineFlagsSuccess")
      expect(yield* code(bare, flags(buyer.publicKey(), false), [bare, admin])).toBe("setTrustLineFlagsSuccess")
      expect(yield* code(buyer, pay(seller.publicKey(), "1"))).toBe("paymentSrcNotAuthorized")
      expect(yield* code(bare, flags(buyer.publicKey(), true), [bare, admin])).toBe("setTrustLineFlagsSuccess")
      expect(yield* code(seller, Operation.changeTrust({ asset: usdcAsset, limit: "0.5" }))).toBe("changeTrustSuccess")
      expect(yield* code(buyer, pay(seller.publicKey(), "1"))).toBe("paymentLineFull")
    })
  )
})

describe("ChangeTrust", () => {
  test(
    "opens, limits and closes a line, and counts it as a subentry",
    Effect.gen(function* () {
      const owner = yield* fund("owner")
      const trust = (limit: string, asset = usdcAsset) => Operation.changeTrust({ asset, limit })
      expect(yield* code(owner, trust("0"))).toBe("changeTrustInvalidLimit")
      expect(yield* code(owner, trust("10"))).toBe("changeTrustSuccess")
      expect((yield* account(owner.publicKey()))!.numSubEntries).toBe(1)
      expect((yield* trustLine(owner.publicKey(), usdcAsset))!.limit).toBe(10_0000000n)
      const payer = yield* fund("payer", 5_0000000n)
      yield* apply(
        yield* transaction(payer, [
          Operation.payment({ destination: owner.publicKey(), asset: usdcAsset, amount: "2" })
        ])
      )
      expect(yield* code(owner, trust("1"))).toBe("changeTrustInvalidLimit")
      expect(yield* code(owner, trust("0"))).toBe("changeTrustInvalidLimit")
      yield* apply(
        yield* transaction(owner, [Operation.payment({ destination: USDC_ISSUER, asset: usdcAsset, amount: "2" })])
      )
      expect(yield* code(owner, trust("0"))).toBe("changeTrustSuccess")
      expect((yield* account(owner.publicKey()))!.numSubEntries).toBe(0)
      expect(yield* trustLine(owner.publicKey(), usdcAsset)).toBeUndefined()
      expect(yield* code(owner, trust("1", new Asset("NONE", keypair("absent").publicKey())))).toBe(
        "changeTrustNoIssuer"
      )
      expect(yield* code(owner, trust("1", new Asset("OWN", owner.publicKey())))).toBe("changeTrustMalformed")
    })
  )
})

describe("SetOptions", () => {
  test(
    "SetOptions sorts signers, enforces thresholds and refuses invalid values",
    Effect.gen(function* () {
      const owner = yield* fund("owner")
      const signers = ["a", "b", "c"].map(keypair)
      for (const signer of signers) {
        expect(
          yield* code(owner, Operation.setOptions({ signer: { ed25519PublicKey: signer.publicKey(), weight: 1 } }))
        ).toBe("setOptionsSuccess")
      }
      const kept = (yield* account(owner.publicKey()))!
      expect(kept.numSubEntries).toBe(3)
      const keys = kept.signers.map(({ key }) => key.toXdr("hex"))
      expect(keys).toEqual([...keys].sort())
      expect(
        yield* code(owner, Operation.setOptions({ signer: { ed25519PublicKey: signers[1]!.publicKey(), weight: 0 } }))
      ).toBe("setOptionsSuccess")
      expect((yield* account(owner.publicKey()))!.signers).toHaveLength(2)
      expect(
        yield* code(owner, Operation.setOptions({ signer: { ed25519PublicKey: owner.publicKey(), weight: 1 } }))
      ).toBe("setOptionsBadSigner")
      expect(yield* code(owner, Operation.setOptions({ setFlags: 2 as any, clearFlags: 2 as any }))).toBe(
        "setOptionsBadFlags"
      )
      expect(yield* code(owner, Operation.setOptions({ setFlags: 16 as any }))).toBe("setOptionsUnknownFlag")
      expect(yield* code(owner, Operation.setOptions({ setFlags: 8 as any }))).toBe("setOptionsAuthRevocableRequired")
      expect(yield* code(owner, Operation.setOptions({ inflationDest: keypair("absent").publicKey() }))).toBe(
        "setOptionsInvalidInflation"
      )
      expect(yield* code(owner, Operation.setOptions({ homeDomain: "é" }))).toBe("setOptionsInvalidHomeDomain")
      expect(yield* code(owner, Operation.setOptions({ setFlags: 4 as any }))).toBe("setOptionsSuccess")
      expect(yield* code(owner, Operation.setOptions({ setFlags: 1 as any }))).toBe("setOptionsCantChange")
    })
  )

  test(
    "a transaction hash signer signs once and is removed",
    Effect.gen(function* () {
      const owner = yield* fund("owner")
      const sequence = (yield* account(owner.publicKey()))!.seqNum
      const promised = yield* transaction(owner, [Operation.bumpSequence({ bumpTo: "0" })], {
        signers: [],
        sequence: sequence + 2n
      })
      yield* apply(
        yield* transaction(owner, [
          Operation.setOptions({
            signer: { preAuthTx: Buffer.from(promised.hash()).toString("hex"), weight: 1 } as any
          })
        ])
      )
      expect((yield* account(owner.publicKey()))!.signers).toHaveLength(1)
      expect((yield* apply(promised)).status).toBe("SUCCESS")
      expect((yield* account(owner.publicKey()))!.signers).toHaveLength(0)
      expect((yield* account(owner.publicKey()))!.numSubEntries).toBe(0)
    })
  )
})

describe("the other operations", () => {
  test(
    "AccountMerge transfers the balance and deletes the account, unless blocked",
    Effect.gen(function* () {
      const [owner, heir] = [yield* fund("owner", 0n), yield* fund("heir")]
      const merge = (destination: string) => Operation.accountMerge({ destination })
      expect(yield* code(owner, merge(heir.publicKey()))).toBe("accountMergeHasSubEntries")
      expect(yield* code(owner, merge(keypair("absent").publicKey()))).toBe("accountMergeNoAccount")
      expect(yield* code(owner, merge(owner.publicKey()))).toBe("accountMergeMalformed")
      yield* apply(yield* transaction(owner, [Operation.changeTrust({ asset: usdcAsset, limit: "0" })]))
      const before = (yield* account(heir.publicKey()))!.balance
      const left = (yield* account(owner.publicKey()))!.balance - 100n
      const done = yield* apply(yield* transaction(owner, [merge(heir.publicKey())]))
      expect(operationCode(done.result)).toBe("accountMergeSuccess")
      expect(yield* account(owner.publicKey())).toBeUndefined()
      expect((yield* account(heir.publicKey()))!.balance).toBe(before + left)
      const far = yield* fund("far")
      yield* apply(yield* transaction(far, [Operation.bumpSequence({ bumpTo: (1n << 62n).toString() })]))
      expect(yield* code(far, merge(heir.publicKey()))).toBe("accountMergeSeqnumTooFar")
    })
  )

  test(
    "BumpSequence goes forward only",
    Effect.gen(function* () {
      const owner = yield* fund("owner")
      const start = (yield* account(owner.publicKey()))!.seqNum
      expect(yield* code(owner, Operation.bumpSequence({ bumpTo: (start + 100n).toString() }))).toBe(
        "bumpSequenceSuccess"
      )
      expect(yield* code(owner, Operation.bumpSequence({ bumpTo: "5" }))).toBe("bumpSequenceSuccess")
      expect((yield* account(owner.publicKey()))!.seqNum).toBe(start + 101n)
    })
  )

  test(
    "ManageData sets, changes and deletes",
    Effect.gen(function* () {
      const owner = yield* fund("owner")
      const data = (value: string | null) => Operation.manageData({ name: "greeting", value })
      expect(yield* code(owner, data(null))).toBe("manageDataNameNotFound")
      expect(yield* code(owner, data("hello"))).toBe("manageDataSuccess")
      expect(yield* code(owner, data("world"))).toBe("manageDataSuccess")
      expect((yield* account(owner.publicKey()))!.numSubEntries).toBe(1)
      expect(yield* code(owner, data(null))).toBe("manageDataSuccess")
      expect((yield* account(owner.publicKey()))!.numSubEntries).toBe(0)
    })
  )

  test(
    "Clawback takes back only what was opened for it",
    Effect.gen(function* () {
      const [issuer, holder] = [yield* fund("issuer"), yield* fund("holder")]
      const asset = new Asset("CLAW", issuer.publicKey())
      const claw = (amount: string) => Operation.clawback({ asset, amount, from: holder.publicKey() })
      expect(yield* code(issuer, claw("1"))).toBe("clawbackNoTrust")
      yield* apply(yield* transaction(holder, [Operation.changeTrust({ asset })]))
      expect(yield* code(issuer, claw("1"))).toBe("clawbackNotClawbackEnabled")
      yield* apply(yield* transaction(holder, [Operation.changeTrust({ asset, limit: "0" })]))
      yield* apply(yield* transaction(issuer, [Operation.setOptions({ setFlags: (2 | 8) as any })]))
      yield* apply(yield* transaction(holder, [Operation.changeTrust({ asset })]))
      yield* apply(
        yield* transaction(issuer, [Operation.payment({ destination: holder.publicKey(), asset, amount: "5" })])
      )
      expect(yield* code(issuer, claw("6"))).toBe("clawbackUnderfunded")
      const done = yield* apply(yield* transaction(issuer, [claw("2")]))
      expect(events(done.meta)).toEqual([["clawback", holder.publicKey(), `CLAW:${issuer.publicKey()}`, 2_0000000n]])
      expect((yield* trustLine(holder.publicKey(), asset))!.balance).toBe(3_0000000n)
      const allow = (authorize: number) =>
        Operation.allowTrust({ trustor: holder.publicKey(), assetCode: "CLAW", authorize: authorize as any })
      expect(yield* code(issuer, allow(0))).toBe("allowTrustSuccess")
      expect((yield* trustLine(holder.publicKey(), asset))!.flags & 1).toBe(0)
    })
  )

  test(
    "a sponsor pays reserves; an open sponsorship fails the transaction",
    Effect.gen(function* () {
      const sponsor = yield* fund("sponsor")
      const fresh = keypair("fresh")
      const sponsoredId = fresh.publicKey()
      const begin = Operation.beginSponsoringFutureReserves({ sponsoredId })
      const create = Operation.createAccount({ destination: sponsoredId, startingBalance: "0" })
      const end = Operation.endSponsoringFutureReserves({ source: sponsoredId })
      const done = yield* apply(
        yield* transaction(sponsor, [begin, create, end], { fee: "100", signers: [sponsor, fresh] })
      )
      expect(done.status).toBe("SUCCESS")
      expect((yield* account(sponsoredId))!.balance).toBe(0n)
      const open = yield* apply(yield* transaction(sponsor, [begin], { signers: [sponsor] }))
      expect(open.code).toBe("txBadSponsorship")
      expect(yield* code(sponsor, Operation.endSponsoringFutureReserves({}))).toBe(
        "endSponsoringFutureReservesNotSponsored"
      )
      const twice = yield* apply(yield* transaction(sponsor, [begin, begin]))
      expect(operationCode(twice.result, 1)).toBe("beginSponsoringFutureReservesAlreadySponsored")
      expect(yield* code(sponsor, Operation.accountMerge({ destination: sponsoredId }))).toBe("accountMergeIsSponsor")
    })
  )

  test(
    "a failed transaction applies no operation but spends fee and sequence number",
    Effect.gen(function* () {
      const [payer, seller] = [yield* fund("payer"), yield* fund("seller")]
      const before = (yield* account(payer.publicKey()))!
      const pay = (amount: string) =>
        Operation.payment({ destination: seller.publicKey(), asset: Asset.native(), amount })
      const failed = yield* apply(yield* transaction(payer, [pay("1"), pay("90000")]))
      expect(failed.status).toBe("FAILED")
      expect([operationCode(failed.result, 0), operationCode(failed.result, 1)]).toEqual([
        "paymentSuccess",
        "paymentUnderfunded"
      ])
      expect((failed.meta!.value as any).operations).toEqual([])
      const after = (yield* account(payer.publicKey()))!
      expect(after.balance).toBe(before.balance - 200n)
      expect(after.seqNum).toBe(before.seqNum + 1n)
    })
  )
})
