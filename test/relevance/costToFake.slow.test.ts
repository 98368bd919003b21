// No known attack below ten dollars and thirty days passes a listing with one genuine customer, and we measure the
// effect of more expensive ones.
import { Effect } from "effect"
import { expect, it } from "vitest"
import { attacks, costToFake, isBelowBar } from "./costToFake.ts"

it.each([5, 300])("nothing cheap passes or buries one of %i paid listings", { timeout: 600_000 }, async (count) => {
  const dearest = attacks.filter((attack) => !isBelowBar(attack)).slice(0, 1)
  const cheap = attacks.filter(isBelowBar)
  const played = count === 5 ? [...cheap, ...dearest] : cheap.slice(0, 4)
  for (const { asked, attack, browsed, buried, passed } of await Effect.runPromise(
    costToFake("pglite", count, 6, played)
  )) {
    expect(asked, attack.name).toBeGreaterThan(15)
    if (isBelowBar(attack)) expect([attack.name, passed, buried, browsed]).toEqual([attack.name, [], [], 0])
    else expect(passed.length, attack.name).toBeGreaterThan(asked / 2)
  }
})
