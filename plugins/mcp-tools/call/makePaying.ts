// Everything that paying needs, built only when there is a signer: the network and its RPC, the payer, the store of the
// budget with a database of its own where that is PostgreSQL, and the actor that decides what was left open. Without a
// signer none of it exists.
import { Context, Duration, Effect, Layer, Option } from "effect"
import { Network } from "../../../kernel/config/Network.ts"
import { Settings, SettingsRefused } from "../../../kernel/config/Settings.ts"
import { LedgerRpc } from "../../../kernel/ledger/LedgerRpc.ts"
import * as MakeLedgerRpc from "../../../kernel/ledger/makeLedgerRpc.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import type { BudgetStore } from "../budget/BudgetStore.ts"
import { openStore } from "../budget/openStore.ts"
import { startHolds } from "../budget/reconcileHolds.ts"
import { Config, type ConfigValues } from "../Config.ts"
import { makeBuildPayment } from "../payer/buildPayment.ts"
import { externalPayer } from "../payer/externalPayer.ts"
import { openKeystore } from "../payer/keystore.ts"
import type { Payer } from "../payer/Payer.ts"
import { readSeed, seedPayer } from "../payer/seedPayer.ts"
import type { Upstream } from "../Upstream.ts"
import type { PayingPolicy } from "./chooseTerms.ts"
import { makeJudge } from "./judgeResult.ts"
import { makePayInvocation } from "./payInvocation.ts"

const rpcTimeout = Duration.seconds(5)

/** The content of the variable that a setting names. */
const secretOf = Effect.fnUntraced(function* (path: string, variable: string) {
  const settings = yield* Settings
  return yield* Option.match(settings.secret(variable), {
    onNone: () =>
      Effect.fail(new SettingsRefused({ path, message: `the environment variable ${variable} is not set` })),
    onSome: Effect.succeed
  })
})

const makePayer = Effect.fnUntraced(function* (signer: ConfigValues["signer"], upstream: Upstream, network: string) {
  const crypto = yield* Crypto
  const settings = yield* Settings
  switch (signer.mode) {
    case "env-secret":
      return seedPayer(
        crypto,
        yield* readSeed(signer.secretEnv, yield* secretOf("signer.secret_env", signer.secretEnv))
      )
    case "encrypted-key": {
      const key = yield* secretOf("signer.keystore_key_env", signer.keystoreKeyEnv)
      return seedPayer(
        crypto,
        yield* readSeed("signer.keystore_file", yield* openKeystore(crypto, signer.keystoreFile, key))
      )
    }
    default: {
      const payer: Payer = externalPayer({
        upstream,
        url: signer.externalUrl,
        token: settings.secret(signer.externalTokenEnv),
        network
      })
      return payer
    }
  }
})

export interface PayingOptions {
  /** To the operator's own signer. */
  readonly signerUpstream: Upstream
  readonly spell: (network: string) => string
}

export const makePaying = Effect.fnUntraced(function* ({ signerUpstream, spell }: PayingOptions) {
  const { budget, confirmMillis, paidCallTimeoutMillis, signer } = yield* Config
  const crypto = yield* Crypto
  const network = Context.get(yield* Layer.build(Network.layer), Network)
  const rpcLayer = MakeLedgerRpc.layer({ urls: network.rpcUrls, passphrase: network.passphrase, timeout: rpcTimeout })
  const rpc = Context.get(yield* Layer.build(rpcLayer), LedgerRpc)
  const payer = yield* makePayer(signer, signerUpstream, spell(network.id))
  const store: BudgetStore["Service"] = yield* openStore(budget.store)
  yield* startHolds({ store, rpc })
  const policy: PayingPolicy = {
    network: network.id,
    assets: new Map([...network.assets].map(([contract, { paymentMax }]) => [contract, paymentMax])),
    perCall: budget.perCall,
    timeoutSecondsMax: network.timeoutSecondsMax
  }
  const paying = makePayInvocation({
    crypto,
    store,
    ceilings: { perSession: budget.perSession, perDay: budget.perDay },
    build: makeBuildPayment({ crypto, rpc, payer, passphrase: network.passphrase }),
    judge: makeJudge(rpc, confirmMillis),
    paidTimeoutMillis: paidCallTimeoutMillis,
    spell,
    scope: yield* Effect.scope
  })
  return { policy, paying }
})
