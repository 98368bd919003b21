// A sample of the hostile day: the whole one is `npm run bench -- hostile-day`.
import { expect, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Facts } from "../../../kernel/facts/Facts.ts"
import { Supervisor } from "../../../kernel/actor/Supervisor.ts"
import { describeDatabases } from "../../support/databases.ts"
import { hostileDay } from "./hostileDay.ts"

describeDatabases(
  "a hostile day",
  (database) => {
    const services = Facts.layer.pipe(Layer.provideMerge(database), Layer.provideMerge(Supervisor.layer))
    layer(services, { timeout: "240 seconds", excludeTestServices: true })((it) => {
      it.effect(
        "honest listings stay correct, found and within quota on a hostile day [S256]",
        () =>
          Effect.gen(function* () {
            // The same share per payer and origin as ten thousand by five hundred of two thousand.
            const settings = { newResourcesPerDayMax: 40 }
            const { figures } = yield* hostileDay({ payers: 25, spam: 500, sellers: 10, settings })
            expect(figures.honest).toEqual({ sellers: 10, refused: 0, right: 10, found: 10, withinQuota: 10 })
            expect(figures.spam.listed).toBeLessThanOrEqual(25 * 5)
            expect(figures.spam.rejected).toBeGreaterThan(0)
            expect(figures.rows.ofOnePayer).toBeLessThan(20)
          }).pipe(Effect.provide(TestClock.layer())),
        240_000
      )
    })
  },
  ["kernel", "catalog"]
)
