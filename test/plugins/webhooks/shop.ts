// Shared by the tests of webhooks: keys and secrets of a shop and of another caller, receivers as a setting, a
// facilitator that notifies them, and payments through it.
import { Keypair } from "@stellar/stellar-sdk"
import { Effect } from "effect"
import { type Facilitator, startFacilitator } from "../../support/facilitator.ts"

export const key = "shop-secret-0123456789"
export const otherKey = "other-secret-0123456789"
export const secret = "a-secret-that-signs-webhooks"
export const environment = {
  FACILITATOR_API_KEYS: `shop:${key},other:${otherKey}`,
  SHOP_HOOK: secret,
  OTHER_HOOK: `retired-${secret},${secret}`,
  SPONSOR_SECRET: Keypair.random().secret()
}
export const startLedger = startFacilitator({
  closeMillis: 500,
  channels: 1,
  set: ["plugins=[ledger-local,x402-exact]"]
})

export const quick = ["webhooks.retry_first_ms=50", "webhooks.retry_max_ms=200"]

export const receivers = (...list: ReadonlyArray<{ key: string; url: string; secret_env: string; name?: string }>) =>
  `webhooks.receivers=${JSON.stringify(list)}`

export const paying = Effect.fnUntraced(function* (ledger: Facilitator) {
  const payer = yield* ledger.account()
  const payTo = (yield* ledger.account()).publicKey()
  return (facilitator: Facilitator, bearer = key) =>
    Effect.flatMap(ledger.payment({ payer, payTo, amount: 10_000n, maxTimeoutSeconds: 300 }), ({ body }) =>
      facilitator.settle(body, { authorization: `Bearer ${bearer}` })
    )
})

export const start = (set: ReadonlyArray<string>, more: Readonly<Record<string, string>> = {}) =>
  startFacilitator({
    channels: 2,
    closeMillis: 300,
    environment: { ...environment, ...more },
    set: ["plugins=[ledger-local,x402-exact,webhooks,dashboard]", ...quick, ...set]
  })
