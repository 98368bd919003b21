// The registry of schemes: one name and one meaning per reason, for as long as the contributing plugin stays.
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Network, type NetworkValues } from "../../../kernel/config/Network.ts"
import { checkFeeSchemes } from "../../../kernel/payment/checkFeeSchemes.ts"
import type { RefusalRow } from "../../../kernel/payment/Refusal.ts"
import { type Scheme, Schemes } from "../../../kernel/payment/Scheme.ts"
import { refusals as exact } from "../../../plugins/x402-exact/refusals.ts"
import { refusals as upto } from "../../../plugins/x402-upto/refusals.ts"

const schemeWith = (scheme: string, refusals: ReadonlyArray<RefusalRow>) => ({ scheme, refusals }) as unknown as Scheme
const row = (reason: string, status: RefusalRow["status"] = 200): RefusalRow => ({ reason, check: "a check", status })

describe("schemes", () => {
  it.effect("a scheme contributes reasons with statuses for its lifetime", () =>
    Effect.gen(function* () {
      const schemes = yield* Schemes
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* schemes.register(schemeWith("barter", [row("invalid_barter", 409)]))
          assert.strictEqual(schemes.statusOf("invalid_barter"), 409)
        })
      )
      assert.deepStrictEqual([schemes.statusOf("invalid_barter"), schemes.all().length], [200, 0])
      yield* schemes.register(schemeWith("barter", [row("invalid_barter", 409)]))
    }).pipe(Effect.scoped, Effect.provide(Schemes.layer))
  )

  it.effect("refuses a scheme whose name or reason is taken", () =>
    Effect.gen(function* () {
      const schemes = yield* Schemes
      yield* schemes.register(schemeWith("barter", [row("invalid_barter")]))
      for (const [scheme, message] of [
        [schemeWith("barter", []), "offered twice"],
        [schemeWith("gift", [row("invalid_barter")]), "the word invalid_barter is taken"],
        [schemeWith("gift", [row("requirements_mismatch")]), "the word requirements_mismatch is taken"],
        [schemeWith("gift", [row("invalid_gift"), row("invalid_gift")]), "the word invalid_gift is taken"]
      ] as const)
        assert.strictEqual((yield* Effect.flip(schemes.register(scheme))).message, message)
      assert.strictEqual(schemes.statusOf("rate_limited"), 429)
      yield* schemes.register(schemeWith("gift", [row("invalid_gift")]))
    }).pipe(Effect.scoped, Effect.provide(Schemes.layer))
  )

  it.effect("refuses fee ceilings of a scheme that nothing offers", () =>
    Effect.gen(function* () {
      const schemes = yield* Schemes
      yield* schemes.register(schemeWith("batch-settlement", []))
      const check = (feeSchemes: ReadonlyArray<string>) =>
        checkFeeSchemes.pipe(
          Effect.provide(Network.layerTest({ id: "ledger:testnet", feeSchemes } as unknown as NetworkValues))
        )
      yield* check([])
      yield* check(["batch-settlement"])
      const { message, path } = yield* Effect.flip(check(["batch-settlement", "batch"]))
      assert.strictEqual(path, "networks.ledger:testnet.fees.batch")
      assert.match(message, /^no enabled plugin offers this scheme .*; did you mean batch-settlement\?$/)
    }).pipe(Effect.scoped, Effect.provide(Schemes.layer))
  )

  it.effect("this program's schemes have distinct reasons", () =>
    Effect.gen(function* () {
      const schemes = yield* Schemes
      yield* schemes.register(schemeWith("exact", exact))
      yield* schemes.register(schemeWith("upto", upto))
    }).pipe(Effect.scoped, Effect.provide(Schemes.layer))
  )
})
