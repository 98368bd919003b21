import { describe, expect, it } from "vitest"
import { exploreDelivery } from "./delivery.ts"
import { models } from "./models.ts"
import { explore } from "./explore.ts"
import { wordTable } from "./words.ts"
import { defects, sound, worlds } from "./worlds.ts"

describe("the settlement code, in every state that a small world can bring it to", () => {
  it.each(worlds)(
    "$name: ends only with proof, and ends once conditions are calm [S83, S90, S94]",
    ({ small }) => {
      const { broken, states } = explore(small, sound)
      expect(broken).toBeUndefined()
      // A world without events would break no invariant.
      expect(states).toBeGreaterThan(10_000)
    },
    240_000
  )

  it.each(Object.entries(defects))("would be seen broken if %s", (_, product) => {
    expect(
      worlds.map(({ small }) => explore(small, product).broken).filter((broken) => broken !== undefined)
    ).not.toEqual([])
  })
})

describe("the delivery of a success", () => {
  it("is given once, or again after its process died before the confirmation", () => {
    const { broken, states } = exploreDelivery()
    expect(broken).toBeUndefined()
    expect(states).toBeGreaterThan(100)
  })

  it("every route, event and webhook has a true word for every state and caller", () => {
    expect(wordTable().filter(({ issue }) => issue !== undefined)).toEqual([])
  })
})

describe.each(models)("$name", ({ explore, rules }) => {
  it("keeps its promises in every state", () => {
    const { broken, states } = explore()
    expect(broken).toBeUndefined()
    expect(states).toBeGreaterThan(1_000)
  })

  it.each(rules)("would be seen broken without: %s", (rule) => {
    expect(explore(rule).broken).toBeDefined()
  })
})
