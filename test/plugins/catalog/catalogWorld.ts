// What most tests of the catalog begin with: a facilitator, a payer, the account that is paid, and payments that carry
// a declaration.
import { Effect, type Scope } from "effect"
import { type Facilitator, type FacilitatorOptions, startFacilitator } from "../../support/facilitator.ts"
import { type Declared, declaring } from "./support.ts"

/** A facilitator that probes an origin as often as it is asked to. */
export const startProbing = (database: NonNullable<FacilitatorOptions["database"]>, ...set: ReadonlyArray<string>) =>
  startFacilitator({
    database,
    closeMillis: 1_000,
    set: ["plugins=[ledger-local, x402-exact, catalog]", "catalog_security.probe_pause_seconds=0", ...set]
  })

/** Starts a facilitator, unless the test does; the payer has money, and `payTo` is paid. */
export const catalogWorld = Effect.fnUntraced(function* (
  given: FacilitatorOptions | Effect.Effect<Facilitator, unknown, Scope.Scope>
) {
  const facilitator = yield* Effect.isEffect(given) ? given : startFacilitator(given)
  const payer = yield* facilitator.account()
  const payTo = (yield* facilitator.account()).publicKey()
  /** A payment of the payer's to the account, unless it says otherwise. */
  const declare = (declared: Partial<Declared> = {}) => declaring(facilitator, { payer, payTo, ...declared })
  return { facilitator, payer, payTo, declare }
})
