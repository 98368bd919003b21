// The friendbot funds accounts in one transaction and contracts by calls of the assets' contracts, all of it in the
// history; if the ledger would refuse, nothing happens.
import { describe, expect } from "@effect/vitest"
import { Effect } from "effect"
import { Asset, Operation, scValToNative, StrKey, xdr } from "@stellar/stellar-sdk"
import { LocalLedger } from "../../../../plugins/ledger-local/LocalLedger.ts"
import {
  friendbotAccount,
  NATIVE_CONTRACT,
  USDC_CONTRACT,
  USDC_ISSUER
} from "../../../../plugins/ledger-local/node/accounts.ts"
import { testnet } from "../../../../plugins/ledger-local/engine/state/NetworkSettings.ts"
import { engineCrypto } from "../../../support/engineCrypto.ts"
import { fund, keypair, usdcAdmin, usdcAsset } from "../support.ts"
import { code, counts, done, lineOf, test } from "../transaction/classic.ts"

const USDC_NAME = `USDC:${USDC_ISSUER}`
const bot = friendbotAccount(engineCrypto).address

/** The events emitted by a ledger's transactions, from getEvents. */
const eventsIn = Effect.fnUntraced(function* (sequence: number) {
  const ledger = yield* LocalLedger
  const { events } = yield* ledger.call("getEvents", { startLedger: sequence, filters: [{ type: "contract" }] })
  return (events as ReadonlyArray<any>)
    .filter((event) => event.ledger === sequence)
    .map((event) => [
      ...event.topic.map((topic: string) => scValToNative(xdr.ScVal.fromXdr(topic, "base64"))),
      scValToNative(xdr.ScVal.fromXdr(event.value, "base64"))
    ])
    .filter(([name]) => name !== "fee")
})

/** The network's settings with entries that live at most three hundred ledgers. */
const shortLived = { ...testnet, ttl: { minTemporaryLedgers: 16, minPersistentLedgers: 100, maxEntryLedgers: 300 } }

const contract = StrKey.encodeContract(Buffer.alloc(32, 7))

/** A contract's balance by its own call, simulated. */
const balanceOf = Effect.fnUntraced(function* (asset: string, holder: string) {
  const { ledger } = yield* LocalLedger
  const entries = [...ledger.store.entries()].flatMap(({ data }) => (data.type === 6 ? [data.contractData] : []))
  const found = entries.find(
    ({ contract: { type, ...of }, key }) =>
      type === 1 &&
      StrKey.encodeContract((of as any).contractId) === asset &&
      key.type === 16 &&
      scValToNative(xdr.ScVal.fromXdrObject(key))[1] === holder
  )
  return found === undefined ? undefined : scValToNative(xdr.ScVal.fromXdrObject(found.val)).amount
})

describe("the friendbot", () => {
  test(
    "creates an account with XLM, USDC line and USDC in one recorded transaction",
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      const caller = keypair("newcomer")
      const funded = (yield* ledger.fund(caller.publicKey(), { usdcUnits: 5_0000000n }))!
      const { status, envelopeXdr } = yield* ledger.call("getTransaction", { hash: funded.hash })
      expect(status).toBe("SUCCESS")
      const { operations } = (xdr.TransactionEnvelope.fromXdr(envelopeXdr, "base64").value as any).tx
      expect(operations.map(({ body }: any) => body.type)).toEqual(["createAccount", "changeTrust", "payment"])
      expect(yield* eventsIn(funded.ledger)).toEqual([
        ["transfer", bot, caller.publicKey(), "native", 10_000_0000000n],
        ["mint", caller.publicKey(), USDC_NAME, 5_0000000n]
      ])
      expect(yield* counts(caller)).toMatchObject({ balance: 10_000_0000000n, subentries: 1 })
      expect((yield* lineOf(caller, usdcAsset))!.balance).toBe(5_0000000n)
    })
  )

  test(
    "funds existing accounts, keeps the line's limit; zero only opens it",
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      const party = yield* fund("party")
      expect(yield* lineOf(party, usdcAsset)).toBeUndefined()
      yield* ledger.fund(party.publicKey(), { usdcUnits: 0n })
      expect((yield* lineOf(party, usdcAsset))!.balance).toBe(0n)
      yield* done(party, Operation.changeTrust({ asset: usdcAsset, limit: "3" }))
      expect(yield* ledger.fund(party.publicKey(), { usdcUnits: 2_0000000n })).toBeDefined()
      expect(yield* lineOf(party, usdcAsset)).toMatchObject({ balance: 2_0000000n, limit: 3_0000000n })
      expect((yield* counts(party)).balance).toBe(30_000_0000000n - 100n)
    })
  )

  test(
    "funds nothing where the ledger would refuse",
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      const account = yield* fund("account", 0n)
      yield* done(account, Operation.changeTrust({ asset: usdcAsset, limit: "3" }))
      const before = yield* counts(account)
      const sequence = ledger.ledger.latest.sequence
      expect(yield* ledger.fund(account.publicKey(), { usdcUnits: 4_0000000n })).toBeUndefined()
      expect(yield* ledger.fund("GABC")).toBeUndefined()
      expect(yield* ledger.fund(keypair("account").secret())).toBeUndefined()
      expect(yield* ledger.fund(account.publicKey(), { usdcUnits: 1_000_000_000_0000001n })).toBeUndefined()
      expect(yield* counts(account)).toEqual(before)
      expect(ledger.ledger.latest.sequence).toBe(sequence)
    })
  )

  test(
    "opens no line for the issuer; only the friendbot opens lines without a signature",
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      expect(yield* ledger.fund(USDC_ISSUER, { usdcUnits: 5n })).toBeDefined()
      const [owner, thief] = [yield* fund("owner"), yield* fund("thief")]
      const open = Operation.changeTrust({ asset: usdcAsset, source: owner.publicKey() })
      expect(yield* code(thief, open)).toBe("opBadAuth")
      const mint = Operation.payment({
        destination: thief.publicKey(),
        asset: usdcAsset,
        amount: "1",
        source: USDC_ISSUER
      })
      expect(yield* code(thief, mint)).toBe("opBadAuth")
      expect(yield* code(thief, mint, [thief, yield* usdcAdmin])).toBe("paymentNoTrust")
    })
  )

  test(
    "funds a contract repeatedly by calls of the assets' contracts",
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      const first = (yield* ledger.fund(contract, { usdcUnits: 5_0000000n }))!
      expect(yield* eventsIn(first.ledger)).toEqual([
        ["transfer", bot, contract, "native", 10_000_0000000n],
        ["mint", contract, USDC_NAME, 5_0000000n]
      ])
      const { transactions } = yield* ledger.call("getTransactions", { startLedger: first.ledger })
      expect(transactions.map(({ status }: any) => status)).toEqual(["SUCCESS", "SUCCESS"])
      expect(transactions[0].txHash).toBe(first.hash)
      const second = (yield* ledger.fund(contract))!
      expect(yield* eventsIn(second.ledger)).toEqual([["transfer", bot, contract, "native", 10_000_0000000n]])
      expect(yield* balanceOf(NATIVE_CONTRACT, contract)).toBe(20_000_0000000n)
      expect(yield* balanceOf(USDC_CONTRACT, contract)).toBe(5_0000000n)
      expect(Asset.native().contractId("Test SDF Network ; September 2015")).toBe(NATIVE_CONTRACT)
    })
  )

  test(
    "restores a contract's archived balance on the way",
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      yield* ledger.fund(contract, { usdcUnits: 5_0000000n })
      yield* ledger.closeMany(500)
      const funded = (yield* ledger.fund(contract, { usdcUnits: 1n }))!
      expect((yield* eventsIn(funded.ledger)).map(([name]) => name)).toEqual(["transfer", "mint"])
      expect(yield* balanceOf(USDC_CONTRACT, contract)).toBe(5_0000001n)
      const { envelopeXdr } = yield* ledger.call("getTransaction", { hash: funded.hash })
      const { tx } = xdr.TransactionEnvelope.fromXdr(envelopeXdr, "base64").value as any
      expect(tx.ext.value.ext.value.archivedSorobanEntries).toHaveLength(2)
    }),
    { settings: shortLived }
  )
})
