// Setup of most catalog tests: a facilitator, a payer, the payee's account, and payments that carry a declaration.
import { Effect, type Scope } from "effect"
import { type Facilitator, type FacilitatorOptions, startFacilitator } from "../../support/facilitator.ts"
import { type Declared, declaring } from "./support.ts"

/** A facilitator without a pause between probes of an origin. */
export const startProbing = (database: NonNullable<FacilitatorOptions["database"]>, ...set: ReadonlyArray<string>) =>
  startFacilitator({
    database,
    closeMillis: 1_000,
    set: ["plugins=[ledger-local, x402-exact, catalog]", "catalog_security.probe_pause_seconds=0", ...set]
  })

/** Starts a facilitator unless the test passes one, and funds the payer; `payTo` is the payee. */
export const catalogWorld = Effect.fnUntraced(function* (
  given: FacilitatorOptions | Effect.Effect<Facilitator, unknown, Scope.Scope>
) {
  const facilitator = yield* Effect.isEffect(given) ? given : startFacilitator(given)
  const payer = yield* facilitator.account()
  const payTo = (yield* facilitator.account()).publicKey()
  /** A payment from the payer to the account, unless overridden. */
  const declare = (declared: Partial<Declared> = {}) => declaring(facilitator, { payer, payTo, ...declared })
  return { facilitator, payer, payTo, declare }
})
