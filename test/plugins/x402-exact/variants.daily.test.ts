// Forms of a payment that are neither the official client's nor an attack, and forms that must not be mistaken for
// these: each is accepted or refused deliberately. On the local ledger, by its own account thresholds and credentials.
import { expect, layer } from "@effect/vitest"
import { Keypair, Networks, Operation, rpc, TransactionBuilder, xdr } from "@stellar/stellar-sdk"
import { Context, Effect, Layer } from "effect"
import type { PaymentTamper } from "../../../runtime/redteam/buyer.ts"
import { type Facilitator, startFacilitator } from "../../support/facilitator.ts"
import { awaitTransaction } from "../../../runtime/redteam/rpcCall.ts"

const price = 10_000n

class World extends Context.Service<World, Facilitator>()("test/World") {}

const paying = Effect.fnUntraced(function* (tamper: PaymentTamper, payer?: Keypair) {
  const facilitator = yield* World
  const buyer = payer ?? (yield* facilitator.account())
  const payTo = (yield* facilitator.account(0n)).publicKey()
  const { body } = yield* facilitator.payment({ payer: buyer, payTo, amount: price, tamper })
  const verified = yield* facilitator.verify(body)
  const settled = yield* facilitator.settle(body)
  return {
    verified: verified.json,
    settled: settled.json,
    paid: yield* facilitator.balance(payTo),
    payer: buyer.publicKey()
  }
})

/** Creates an account with transfers that require two signatures. */
const shareAccount = (facilitator: Facilitator, account: Keypair, other: Keypair) =>
  Effect.promise(async () => {
    const server = new rpc.Server(facilitator.ledgerUrl, { allowHttp: true })
    const source = await server.getAccount(account.publicKey())
    const built = new TransactionBuilder(source, { fee: "1000", networkPassphrase: Networks.TESTNET })
      .addOperation(
        Operation.setOptions({
          signer: { ed25519PublicKey: other.publicKey(), weight: 1 },
          lowThreshold: 1,
          medThreshold: 2,
          highThreshold: 2
        })
      )
      .setTimeout(60)
      .build()
    built.sign(account)
    const { hash } = await server.sendTransaction(built)
    const { status } = await server.pollTransaction(hash, { attempts: 100, sleepStrategy: () => 100 })
    if (status !== "SUCCESS") throw new Error(status)
  })

layer(Layer.effect(World, startFacilitator()), { timeout: 240_000, excludeTestServices: true })((it) => {
  it.effect(
    "credentials that name their address in the signed payload are accepted",
    () =>
      Effect.gen(function* () {
        const { paid, payer, settled, verified } = yield* paying({ credentials: "addressV2" })
        expect([verified, settled.success, paid]).toEqual([{ isValid: true, payer }, true, price])
      }),
    240_000
  )

  it.effect(
    "delegated credentials are refused, whichever account signed [S273]",
    () =>
      Effect.gen(function* () {
        const { paid, settled, verified } = yield* paying({ credentials: "delegates" })
        expect([verified.invalidReason, settled.errorReason, paid]).toEqual([
          "invalid_exact_ledger_payload_unsupported_credential_type",
          "invalid_exact_ledger_payload_unsupported_credential_type",
          0n
        ])
      }),
    240_000
  )

  it.effect(
    "a two-key account settles with both signatures only",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* World
        const [account, other] = [yield* facilitator.account(), Keypair.random()]
        yield* shareAccount(facilitator, account, other)
        for (const signers of [[account], [other]]) {
          const { paid, settled } = yield* paying({ signers }, account)
          expect([settled.errorReason, paid]).toEqual(["invalid_ledger_enforcing_simulation_failed", 0n])
        }
        const { paid, settled } = yield* paying({ signers: [account, other] }, account)
        expect([settled.success, paid]).toEqual([true, price])
      }),
    240_000
  )

  it.effect(
    "only the one operation of the client's envelope is used [S81]",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* World
        const { paid, settled } = yield* paying({
          transaction: (fields) => ({
            ...fields,
            fee: 4_000_000_000,
            seqNum: 123_456n,
            memo: xdr.Memo.memoText("a text of the client"),
            cond: xdr.Preconditions.precondTime(new xdr.TimeBounds({ minTime: 0n, maxTime: 1n }))
          })
        })
        expect([settled.success, paid]).toEqual([true, price])
        const included = yield* Effect.promise(() => awaitTransaction(facilitator.rpc, settled.transaction))
        const bump = TransactionBuilder.fromXDR(included.envelopeXdr, Networks.TESTNET)
        if (!("innerTransaction" in bump)) throw new Error("a fee bump is required")
        const inner = bump.innerTransaction
        expect([inner.memo.type, inner.operations.length, Number(bump.fee) < 210_001]).toEqual(["none", 1, true])
        expect(inner.ledgerBounds?.maxLedger).toBeGreaterThan(0)
      }),
    240_000
  )

  const wrapped = (envelope: xdr.TransactionEnvelope): xdr.TransactionEnvelope => {
    const inner = TransactionBuilder.fromXDR(envelope.toXdr("base64"), Networks.TESTNET)
    if ("innerTransaction" in inner) throw new Error("a plain transaction is required")
    const bump = TransactionBuilder.buildFeeBumpTransaction(Keypair.random(), "100000", inner, Networks.TESTNET)
    return xdr.TransactionEnvelope.fromXdr(bump.toXDR(), "base64")
  }

  for (const [name, tamper] of [
    ["a fee bump", { envelope: wrapped }],
    [
      "bytes behind the envelope",
      { base64: (text: string) => Buffer.concat([Buffer.from(text, "base64"), Buffer.alloc(4)]).toString("base64") }
    ],
    ["white space in the base64", { base64: (text: string) => `${text.slice(0, 80)}\n${text.slice(80)}` }],
    ["the other base64", { base64: (text: string) => `${text.slice(0, -8)}-_-_${text.slice(-4)}` }],
    ["half an envelope", { base64: (text: string) => text.slice(0, 120) }],
    ["no text", { payload: (payload: any) => ({ ...payload, payload: { transaction: 7 } }) }],
    ["nothing", { payload: (payload: any) => ({ ...payload, payload: {} }) }]
  ] as ReadonlyArray<readonly [string, PaymentTamper]>) {
    it.effect(
      `${name} is refused as malformed before any other check [S51, S273]`,
      () =>
        Effect.gen(function* () {
          const { paid, settled, verified } = yield* paying(tamper)
          expect([verified.invalidReason, settled.errorReason, settled.transaction, paid]).toEqual([
            "invalid_exact_ledger_payload_malformed",
            "invalid_exact_ledger_payload_malformed",
            "",
            0n
          ])
        }),
      240_000
    )
  }
})
