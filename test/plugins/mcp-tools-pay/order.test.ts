// The order of a payment: the budget reserves it before the signer is asked.
import { expect, it } from "@effect/vitest"
import { Keypair } from "@stellar/stellar-sdk"
import { Effect, Layer } from "effect"
import { Network, passphrases } from "../../../kernel/config/Network.ts"
import { LedgerRpc } from "../../../kernel/ledger/LedgerRpc.ts"
import { toolError } from "../../../plugins/mcp-tools/contract.ts"
import { Payer } from "../../../plugins/mcp-tools-pay/payer/Payer.ts"
import { PaymentBuilder } from "../../../plugins/mcp-tools-pay/payer/PaymentBuilder.ts"
import * as NodeCrypto from "../../../runtime/platform/nodeCrypto.ts"
import { testnetUsdc } from "../../../runtime/redteam/buyer.ts"
import { layerTest } from "../../support/layerTest.ts"

it.effect("nothing is signed before the budget's store holds the authorization [S102, S211]", () =>
  Effect.gen(function* () {
    const happened: Array<string> = []
    const services = Layer.mergeAll(
      NodeCrypto.layer,
      layerTest(LedgerRpc, { latestLedger: Effect.die("it is asked before") }),
      layerTest(Network, { id: "ledger:testnet", passphrase: passphrases["ledger:testnet"] }),
      layerTest(Payer, {
        address: Effect.succeed(Keypair.random().publicKey()),
        sign: () =>
          Effect.andThen(
            Effect.sync(() => happened.push("signed")),
            Effect.fail(toolError("PAYMENT_REJECTED", "no"))
          )
      })
    )
    const { build } = yield* Effect.provide(PaymentBuilder, PaymentBuilder.layer.pipe(Layer.provide(services)))
    const ledger = { sequence: 1_000, closedAtSeconds: 0, protocolVersion: 23, endpoint: 0 }
    const transfer = {
      payTo: Keypair.random().publicKey(),
      asset: testnetUsdc,
      amount: 1_000n,
      network: "ledger:testnet",
      maxTimeoutSeconds: 60
    } as never
    const refused = yield* Effect.flip(
      build(transfer, ledger, () =>
        Effect.andThen(
          Effect.sync(() => happened.push("asked")),
          Effect.fail(toolError("BUDGET_EXCEEDED", "the store has no room"))
        )
      )
    )
    expect([refused.code, happened]).toEqual(["BUDGET_EXCEEDED", ["asked"]])
    yield* Effect.flip(
      build(transfer, ledger, ({ expirationLedger }) => Effect.sync(() => happened.push(`${expirationLedger}`)))
    )
    expect(happened).toEqual(["asked", "1012", "signed"])
  })
)
